//! The fate that tenants of the shared domain have in common: how MPS is, and who went with it.
//!
//! A death is noticed by the kernel at once, the fault that caused it when somebody reads the service's log. So whoever
//! leaves is remembered for a while, and counts as a victim if a fault is told of shortly before or after.

use std::collections::VecDeque;
use std::path::PathBuf;

use model::Nanos;

use crate::report;
use crate::shared::News;

/// Within so long before or after a fault, who leaves was taken along by it.
const NEAR: Nanos = Nanos::from_millis(5_000);
/// So long a fault is worth a sentence.
const NEWS_FOR: Nanos = Nanos::from_millis(600_000);
/// No more are named.
const MOST: usize = 32;

#[derive(Debug)]
pub struct Fate {
    pipes: PathBuf,
    up: bool,
    faults: u64,
    restarts: u64,
    /// Why it is not up.
    trouble: Option<String>,
    /// The last fault, and the service's words about it.
    fault: Option<(Nanos, String)>,
    /// Who left lately.
    left: VecDeque<(Nanos, String)>,
    /// Who went with the last fault.
    victims: Vec<String>,
}

impl Fate {
    pub fn new(pipes: PathBuf) -> Fate {
        let (left, victims) = (VecDeque::new(), Vec::new());
        Fate { pipes, up: true, faults: 0, restarts: 0, trouble: None, fault: None, left, victims }
    }

    pub fn pipes(&self) -> &std::path::Path {
        &self.pipes
    }

    /// What to say about news, for the log.
    pub fn hear(&mut self, news: News, now: Nanos) -> String {
        match news {
            News::Fault(words) => {
                // One fault is told of in several lines.
                let same = self.fault.as_ref().is_some_and(|(at, _)| now.since(*at) < NEAR);
                if !same {
                    self.faults += 1;
                    self.victims = self.left.iter().map(|(_, name)| name.clone()).collect();
                    self.fault = Some((now, words.clone()));
                }
                format!("a fault of one tenant is the fault of all in the shared domain: {words}")
            }
            News::Down(reason) => {
                self.up = false;
                self.trouble = Some(reason.clone());
                format!("MPS is started anew: {reason}")
            }
            News::Failed(reason) => {
                self.up = false;
                self.trouble = Some(reason.clone());
                format!("MPS cannot be started: {reason}")
            }
            News::Up => {
                self.up = true;
                self.trouble = None;
                self.restarts += 1;
                "MPS runs again".to_owned()
            }
        }
    }

    /// A process has left its seat.
    pub fn leaves(&mut self, name: &str, pid: u32, now: Nanos) {
        let called = format!("{name} ({pid})");
        if self.fault.as_ref().is_some_and(|(at, _)| now.since(*at) < NEAR) && self.victims.len() < MOST {
            self.victims.push(called.clone());
        }
        self.left.push_back((now, called));
        while self.left.len() > MOST || self.left.front().is_some_and(|(at, _)| now.since(*at) > NEAR) {
            self.left.pop_front();
        }
    }

    /// Called now and then, so that who left long ago is not taken for a victim of what comes.
    pub fn forget(&mut self, now: Nanos) {
        self.left.retain(|(at, _)| now.since(*at) <= NEAR);
    }

    pub fn is_up(&self) -> bool {
        self.up
    }

    pub fn report(&self) -> report::Mps {
        report::Mps {
            pipes: self.pipes.display().to_string(),
            up: self.up,
            faults: self.faults,
            restarts: self.restarts,
            victims: self.victims.clone(),
        }
    }

    /// What is not as it should be, for people.
    pub fn sentences(&self, now: Nanos) -> Vec<String> {
        let mut sentences = Vec::new();
        if let Some((at, words)) = self.fault.as_ref().filter(|(at, _)| now.since(*at) < NEWS_FOR) {
            let ago = Nanos(now.since(*at).0 / 1_000_000_000 * 1_000_000_000);
            let victims = match self.victims.as_slice() {
                [] => "nobody has ended since".to_owned(),
                victims => format!("{} ended with it", victims.join(", ")),
            };
            sentences.push(format!(
                "In the shared domain a fault of one tenant is everybody's: {ago} ago MPS said `{words}`; {victims}."
            ));
        }
        if let Some(trouble) = &self.trouble {
            sentences.push(format!(
                "MPS is down, so that tenants who come now get no GPU: {trouble}; it is started again."
            ));
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Nanos {
        Nanos::from_millis(seconds * 1_000)
    }

    fn fault() -> News {
        News::Fault("Client process 7 encountered a fatal GPU error.".to_owned())
    }

    #[test]
    fn who_leaves_shortly_before_or_after_a_fault_went_with_it() {
        let mut fate = Fate::new("/p".into());
        fate.leaves("long-gone", 1, at(1));
        fate.leaves("before", 2, at(99));
        fate.forget(at(100));
        fate.hear(fault(), at(100));
        fate.hear(fault(), at(101));
        fate.leaves("after", 3, at(102));
        fate.leaves("much-later", 4, at(200));
        assert_eq!(fate.report().victims, ["before (2)", "after (3)"]);
        assert_eq!(fate.report().faults, 1, "one fault is told of in several lines");
        let said = fate.sentences(at(103)).join(" ");
        assert!(said.contains("before (2), after (3) ended with it") && said.contains("3 s ago"), "{said}");
        assert_eq!(fate.sentences(at(10_000)), Vec::<String>::new());
    }

    #[test]
    fn a_service_that_is_down_is_said_to_be_until_it_is_up() {
        let mut fate = Fate::new("/p".into());
        assert!(fate.report().up && fate.sentences(at(1)).is_empty());
        fate.hear(News::Down("the control daemon is gone".to_owned()), at(1));
        assert!(!fate.report().up && fate.sentences(at(2))[0].contains("the control daemon is gone"));
        fate.hear(News::Failed("no GPU".to_owned()), at(3));
        assert!(fate.sentences(at(4))[0].contains("no GPU"));
        fate.hear(News::Up, at(5));
        assert_eq!((fate.report().up, fate.report().restarts), (true, 1));
        assert!(fate.sentences(at(6)).is_empty());
    }
}
