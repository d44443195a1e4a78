//! Whether the board says that this process has work on the GPU.
//!
//! A latency tenant looks there to see whether its request was alone. The keeper of a best-effort tenant says it at each look,
//! but looks seldom while nobody wants anything of it; so the thread that hands over the first work after none says it itself.

use std::sync::atomic::{Ordering, fence};

use board::{Need, Seat};
use model::Nanos;

use super::post::Post;

impl Post {
    /// The first work after none. A latency tenant that looks whether it is alone finds it on the board, before the keeper looks again.
    #[cold]
    pub(super) fn say_running(&self) {
        let Some(seat) = self.seat().filter(|_| self.runs.load(Ordering::Relaxed)) else { return };
        // SYNC(says-runs): see `look_for_need`.
        if !self.says_runs.swap(true, Ordering::AcqRel) {
            seat.say_running();
        }
    }

    /// The keeper is about to see whether there is work on the GPU. What is handed over from here on says so itself.
    pub fn look_for_need(&self) {
        // SYNC(says-runs): lowered before `given` is read; a thread adds to `given` before it looks here. So the keeper sees the
        // work, or the thread says so itself.
        self.says_runs.store(false, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// The keeper has seen how things are. Work that was handed over meanwhile may not have been seen.
    pub fn say_need(&self, seat: &Seat, need: Need, now: Nanos) {
        seat.say_need(need, now);
        // SYNC(says-runs): see `look_for_need`.
        if need.runs {
            self.says_runs.store(true, Ordering::Release);
        } else if self.says_runs.load(Ordering::Acquire) {
            seat.say_running();
        }
    }
}
