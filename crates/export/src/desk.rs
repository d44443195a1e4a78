//! How a reader asks for an observation, or for whatever else the daemon's thread knows.
//!
//! The daemon has one thread, which waits for everybody at once. So a question rings a bell that can be waited for together with
//! everything else, and whoever asks waits for the answer, not the daemon for whoever asks. All questions that lie on the desk at
//! once have one answer.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use crate::Observation;

/// Questions that lie on the desk. Whoever comes when there are more is not served.
const QUESTIONS: usize = 64;

/// The side that asks. It may be copied to as many threads as there are.
#[derive(Debug)]
pub struct Asker<T = Observation> {
    bell: Arc<OwnedFd>,
    questions: SyncSender<SyncSender<Arc<T>>>,
}

/// The side that answers.
#[derive(Debug)]
pub struct Desk<T = Observation> {
    bell: Arc<OwnedFd>,
    questions: Receiver<SyncSender<Arc<T>>>,
}

/// A desk, and who may come to it.
pub fn desk<T>() -> std::io::Result<(Asker<T>, Desk<T>)> {
    let bell = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
    let (sender, receiver) = sync_channel(QUESTIONS);
    Ok((Asker { bell: bell.clone(), questions: sender }, Desk { bell, questions: receiver }))
}

impl<T> Clone for Asker<T> {
    fn clone(&self) -> Asker<T> {
        Asker { bell: self.bell.clone(), questions: self.questions.clone() }
    }
}

impl<T> Asker<T> {
    /// What there is to say now. `None`: nobody answers in time, or at all.
    pub fn ask(&self, patience: Duration) -> Option<Arc<T>> {
        // With room for the answer, so that nobody waits to give it.
        let (sender, answer) = sync_channel(1);
        match self.questions.try_send(sender) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => return None,
        }
        // A bell that has been rung so often that it cannot be rung again is heard all the same.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        answer.recv_timeout(patience).ok()
    }
}

impl<T> Desk<T> {
    /// Answers everybody who has asked so far.
    pub fn answer(&self, observe: impl FnOnce() -> T) {
        // Before the questions are looked at: whoever comes later rings again.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        let asked: Vec<_> = self.questions.try_iter().collect();
        if asked.is_empty() {
            return;
        }
        let answer = Arc::new(observe());
        for question in asked {
            // Who has not waited does without.
            let _ = question.try_send(answer.clone());
        }
    }
}

impl<T> AsFd for Desk<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;
    use crate::{Disconnects, Health, Reload};

    fn observation() -> Observation {
        Observation {
            version: "1".to_owned(),
            gpus: Vec::new(),
            disconnects: Disconnects::default(),
            health: Health::default(),
            reload: Reload { successful: true, at: 0.0 },
        }
    }

    fn rings(desk: &Desk) -> bool {
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(desk, PollFlags::IN)], Some(&now)).unwrap() == 1
    }

    #[test]
    fn all_who_ask_at_once_are_given_one_answer() {
        let (asker, desk) = desk::<Observation>().unwrap();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let asker = asker.clone();
                std::thread::spawn(move || asker.ask(Duration::from_secs(60)).unwrap().version.clone())
            })
            .collect();
        let mut made = 0;
        while others.iter().any(|other| !other.is_finished()) {
            rings(&desk);
            desk.answer(|| {
                made += 1;
                observation()
            });
        }
        assert!((1..=2).contains(&made));
        assert!(others.into_iter().all(|other| other.join().unwrap() == "1"));
        // Who asks puts the question down and rings then, and may have been answered in between.
        desk.answer(|| unreachable!("nobody asks any more"));
        assert!(!rings(&desk), "a bell that was heard is silent");
    }

    #[test]
    fn nobody_waits_for_a_desk_that_is_gone_or_full() {
        let (asker, desk) = desk::<Observation>().unwrap();
        for _ in 0..QUESTIONS {
            assert!(asker.ask(Duration::ZERO).is_none());
        }
        assert!(rings(&desk));
        assert!(asker.ask(Duration::from_secs(600)).is_none(), "full");
        let mut asked = 0;
        desk.answer(|| {
            asked += 1;
            observation()
        });
        assert_eq!(asked, 1);
        drop(desk);
        assert!(asker.ask(Duration::from_secs(600)).is_none(), "gone");
    }
}
