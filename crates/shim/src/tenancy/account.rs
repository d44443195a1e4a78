//! What a post counts: launches, and the time for which there is work.
//!
//! Threads of the program say what they hand over and what they have waited for; the keeper sees to the rest.

use std::sync::atomic::Ordering;

use model::Nanos;

use super::burst::Change;
use super::key::Key;
use super::post::Post;
use super::streams;

impl Post {
    /// Kernels were launched. They are counted at once: whoever is killed in the next moment has launched them all the same.
    #[inline]
    pub fn launched(&self, kernels: u64) {
        match self.seat() {
            Some(seat) => seat.tally().launches.add(kernels),
            None => drop(self.launches.fetch_add(kernels, Ordering::Relaxed)),
        }
    }

    /// What was launched before there was a seat.
    pub fn early_launches(&self) -> u64 {
        self.launches.swap(0, Ordering::Relaxed)
    }

    pub fn say_runs(&self, runs: bool) {
        self.runs.store(runs, Ordering::Relaxed);
    }

    /// The program ends in the ordinary way: counts what was not counted yet.
    pub fn farewell(&self) {
        let Some(seat) = self.seat() else { return };
        let (tally, spent) = (seat.tally(), self.spent(board::now()));
        tally.launches.add(self.early_launches());
        if self.runs.load(Ordering::Relaxed) {
            seat.count_gpu_time(spent);
        }
        tally.farewells.add(1);
    }

    /// For how long there was work since this was last asked.
    pub fn spent(&self, now: Nanos) -> Nanos {
        let since = self.work.busy_since().unwrap_or_default();
        let before = self.under_way.swap(since.0, Ordering::Relaxed);
        // Who has just begun may not have said when; at the next look it has.
        if since != Nanos::ZERO && since.0 == before {
            self.meter.count(since, now);
        }
        self.meter.take()
    }

    /// A thread has waited for a stream.
    #[inline]
    pub fn waited(&self, key: Key) {
        let now = board::now();
        self.streams.waited(key);
        self.ceased(self.work.waited(key, now));
        if self.is_latency() {
            self.burst(self.bursts.waited(key, now));
        }
    }

    /// What a stream was given will be done in a moment. That is not to be relied on, but it is to be counted: otherwise a program
    /// that copies something and then does nothing would seem to be at work until somebody looks.
    pub fn all_but_done(&self, key: Key) {
        self.ceased(self.work.waited(key, board::now()));
    }

    /// A thread has waited for everything.
    pub fn waited_for_all(&self) {
        let now = board::now();
        self.streams.waited_for_all();
        self.all_done(now);
        if self.is_latency() {
            self.bursts.waited_for_all(now, &mut |change| self.burst(change));
        }
    }

    /// Nothing is on the GPU any more.
    pub fn all_done(&self, now: Nanos) {
        self.work.waited_for_all(now, &mut |change| self.ceased(change));
    }

    /// Sees whether anything is left to do, of a program that does not wait for its work. What cannot be asked about is taken to be done
    /// when nothing was added between two looks.
    pub fn look_for_end(&self, now: Nanos) {
        if !self.work.is_open() {
            return;
        }
        let given = self.work.work();
        match self.streams.work() {
            streams::Work::Done if self.work.work() == given => self.all_done(now),
            streams::Work::Unknown => drop(self.work.abandon(now, &mut |change| self.ceased(change))),
            _ => {}
        }
    }

    fn ceased(&self, change: Change) {
        if let Change::Ended { at, idle: Some(since), .. } = change {
            self.meter.count(since, at);
        }
    }

    /// An event is recorded in a stream.
    pub fn recorded(&self, event: usize, key: Key) {
        self.work.recorded(event, key);
        if self.is_latency() {
            self.bursts.recorded(event, key);
        }
    }

    /// An event has happened.
    pub fn happened(&self, event: usize) {
        let now = board::now();
        self.ceased(self.work.happened(event, now));
        if self.is_latency() {
            self.burst(self.bursts.happened(event, now));
        }
    }
}
