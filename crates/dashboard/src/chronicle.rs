//! What was decided about tenants, out of what they write down.
//!
//! A best-effort tenant may be stopped and let go on hundreds of times a second, and nobody reads hundreds of lines a second.
//! So what goes on happening to a tenant for one reason is one line: since when, until when, and how often. A line that has
//! grown for a minute is done, and the next begins.

use std::collections::{BTreeMap, BTreeSet};

use daemon::picture::{Picture, reason};
use daemon::report::Process;
use model::Nanos;
use serde::Serialize;
use telemetry::{Event, What};

use crate::shelf::{Shelf, everybody};

/// What is older is not told to whoever has just come.
const REMEMBERED: Nanos = Nanos::from_millis(60_000);
/// What has not happened for so long happens anew, and so does what has gone on for so long.
const PAUSE_MS: u64 = 10_000;
const WHOLE_MS: u64 = 60_000;

/// What happened to a tenant, once or more often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    pub id: u64,
    /// When it happened first and last.
    pub since_ms: u64,
    pub unix_ms: u64,
    pub tenant: String,
    pub name: String,
    /// `run`, `stop`, `turn`, `left`, `late`, `seat`, `lost`.
    pub kind: &'static str,
    pub words: String,
    pub count: u64,
    /// The longest of the times that belong to it.
    pub longest_ns: Option<u64>,
}

/// A tenant, a kind and words: what is the same is one line.
type Topic = (String, &'static str, String);

/// Reads logs again and again.
#[derive(Debug, Default)]
pub struct Chronicle {
    /// Lines that grow.
    open: BTreeMap<Topic, Line>,
    lines: u64,
}

impl Chronicle {
    /// Lines that are new or have grown since the last time, in the order in which they began.
    pub fn read(&mut self, picture: &Picture, shelf: &mut Shelf) -> Vec<Line> {
        let mut changed = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for process in everybody(&picture.report).filter(|process| seen.insert(process.pid)) {
            let follower = shelf.of(process.pid).and_then(|slot| slot.follower.as_mut());
            for event in follower.map(|follower| follower.course()).unwrap_or_default() {
                changed.extend(self.note(process, &event, picture));
            }
        }
        let now = picture.unix_ns / 1_000_000;
        let lines = self.open.values().filter(|line| changed.contains(&line.id));
        let mut lines: Vec<_> = lines.cloned().collect();
        lines.sort_by_key(|line| (line.since_ms, line.id));
        self.open.retain(|_, line| now < line.unix_ms + PAUSE_MS && now < line.since_ms + WHOLE_MS);
        lines
    }

    /// Enters an event, and says in which line it is.
    fn note(&mut self, process: &Process, event: &Event, picture: &Picture) -> Option<u64> {
        let ago = picture.at.since(event.time);
        let (kind, words, span) = told(&event.what).filter(|_| ago <= REMEMBERED)?;
        let unix_ms = picture.unix_ns.saturating_sub(ago.0) / 1_000_000;
        let topic = (process.tenant.clone(), kind, words.clone());
        let lines = &mut self.lines;
        let line = self.open.entry(topic).or_insert_with(|| {
            *lines += 1;
            let (tenant, name) = (process.tenant.clone(), process.name.clone());
            let (id, since_ms) = (*lines, unix_ms);
            Line { id, since_ms, unix_ms, tenant, name, kind, words, count: 0, longest_ns: None }
        });
        line.count += 1;
        line.unix_ms = line.unix_ms.max(unix_ms);
        line.longest_ns = line.longest_ns.max(span.map(|Nanos(nanos)| nanos));
        Some(line.id)
    }
}

/// Of what kind something is, in which words, and how long it took.
fn told(what: &What) -> Option<(&'static str, String, Option<Nanos>)> {
    let told = |kind, words: &str, span| Some((kind, words.to_owned(), span));
    match *what {
        What::Decided { why, runs, .. } => {
            let (word, sentence) = reason(why)?;
            // Reasons to let somebody run, and one that speaks neither for nor against it.
            let lets = ["idle", "gap", "slack", "waited", "nothing-to-do"].contains(&word);
            match (runs, lets) {
                (true, true) => told("run", sentence, None),
                (true, false) => {
                    Some(("run", format!("{sentence}, but what stops soon enough may start"), None))
                }
                (false, true) => Some((
                    "stop",
                    format!("{sentence}, but it could not leave in time, or another goes first"),
                    None,
                )),
                (false, false) => told("stop", sentence, None),
            }
        }
        What::Held { waited } => told("turn", "it was given its turn", Some(waited)),
        What::Stopped { rung, took } => {
            Some(("left", format!("it has left the GPU, by {}", rung.name()), Some(took)))
        }
        What::Request { late: true, lasted, .. } => {
            told("late", "a request took longer than its objective", Some(lasted))
        }
        What::Seated { class, domain } => {
            Some(("seat", format!("it has a seat, as {class}, in the {domain} domain"), None))
        }
        What::Sliced { slice, lengthened: true } => told(
            "slice",
            "its timeslice was lengthened, because nothing got done with the short one",
            Some(slice),
        ),
        What::Left => told("lost", "it has lost its daemon and works by the board alone", None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{picture, process};

    fn event(time: u64, what: What) -> Event {
        Event { time: Nanos(time), post: 0, what }
    }

    #[test]
    fn what_goes_on_for_one_reason_is_one_line() {
        let mut chronicle = Chronicle::default();
        let (picture, process) = (picture(Vec::new()), process("train", "best-effort"));
        let stopped = |time, took| {
            let what = What::Stopped { rung: model::Rung::Switch, took: Nanos(took) };
            event(picture.at.0 - time, what)
        };
        let first = chronicle.note(&process, &stopped(2_000_000, 7), &picture);
        let second = chronicle.note(&process, &stopped(1_000_000, 5), &picture);
        assert_eq!((first, second), (Some(1), Some(1)));
        let line = chronicle.open.values().next().unwrap();
        assert_eq!((line.count, line.longest_ns, line.unix_ms - line.since_ms), (2, Some(7), 1));
        let long_ago = stopped(REMEMBERED.0 + 1, 1);
        assert_eq!(chronicle.note(&process, &long_ago, &picture), None);
        let launch = What::Launch { kernel: 1, stream: 1, blocks: 1 };
        assert_eq!(chronicle.note(&process, &event(picture.at.0, launch), &picture), None);
    }

    #[test]
    fn a_reason_that_speaks_against_what_was_decided_is_explained() {
        let decided = |why, runs| told(&What::Decided { why, runs, longest: Nanos::MAX }).unwrap().1;
        assert_eq!(decided(0, true), "no latency tenant has work or is about to");
        assert!(decided(0, false).ends_with("or another goes first"));
        assert!(decided(2, true).ends_with("what stops soon enough may start"));
        assert!(told(&What::Decided { why: 200, runs: true, longest: Nanos(1) }).is_none());
    }
}
