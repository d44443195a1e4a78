//! How far a job has come.
//!
//! A job that is taken off the GPU, or that must wait for it, is late from then on. Let `done` be its work so far and `T` the moment
//! at which it goes on: then it is as if everything had been shifted by `lag = T - begin - done`, and kernel `k` starts at
//!
//! ```text
//! begin + D[k] + max(lag, M[k])
//! ```
//!
//! because what the host has handed over meanwhile runs without a gap until the host is caught up with. One number remembers all
//! interruptions. The host is late as well if it had to wait for the GPU: because its queue was full while nothing ran, or
//! because it wants to see a result before it goes on. It is late by `stall` for the launches at hand, and by `next_stall` from
//! launch `stalled` on. (One stall ahead is kept, of those that an interruption may bring: that of the wait for a result
//! before that of a full queue, whichever kernel comes first.)

use model::Nanos;

use crate::score::{ONE, Score};

mod sprint;

pub use sprint::Track;

#[derive(Clone, Debug)]
pub struct Cursor {
    /// When the host began.
    pub begin: Nanos,
    /// How long this job is, times what the score says, in 65,536ths.
    pub factor: u64,
    /// Which job of its tenant this is.
    pub job: u64,
    done: u64,
    /// The kernel that is under way or comes next, as `done` says.
    kernel: usize,
    lag: u64,
    stall: u64,
    next_stall: u64,
    stalled: usize,
}

/// A kernel on the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    pub kernel: usize,
    /// How much of it is done.
    pub into: u64,
}

impl Cursor {
    pub fn new(begin: Nanos, factor: u64, job: u64) -> Cursor {
        Cursor {
            begin,
            factor,
            job,
            done: 0,
            kernel: 0,
            lag: 0,
            stall: 0,
            next_stall: 0,
            stalled: usize::MAX,
        }
    }

    pub fn scaled(&self, span: u64) -> u64 {
        if self.factor == ONE { span } else { ((u128::from(span) * u128::from(self.factor)) >> 16) as u64 }
    }

    pub fn done(&self) -> u64 {
        self.done
    }

    pub fn is_over(&self, score: &Score) -> bool {
        self.done >= self.scaled(score.total())
    }

    /// The kernel that is under way or comes next; as many as there are when all are done.
    pub fn kernel(&self) -> usize {
        self.kernel
    }

    /// The kernel that is under way and how far it has come; `None`: between two.
    pub fn under_way(&self, score: &Score) -> Option<Running> {
        let kernel = self.kernel;
        let into = self.done - self.scaled(score.work[kernel]).min(self.done);
        (into > 0).then_some(Running { kernel, into })
    }

    fn stall(&self, kernel: usize) -> u64 {
        if kernel >= self.stalled { self.next_stall } else { self.stall }
    }

    fn lateness(&self, score: &Score, kernel: usize) -> u64 {
        self.lag.max(self.scaled(score.lateness[kernel]) + self.stall(kernel))
    }

    /// Whether the host is ahead of the GPU from the first of these kernels to the last: none starts later than the one before it ends.
    pub fn is_gapless(&self, score: &Score, first: usize, last: usize) -> bool {
        // Nobody gets less late.
        self.lateness(score, first) == self.lateness(score, last)
    }

    /// When a kernel starts, if the GPU is free from now on.
    pub fn start(&self, score: &Score, kernel: usize) -> Nanos {
        self.begin + Nanos(self.scaled(score.work[kernel]) + self.lateness(score, kernel))
    }

    /// When the kernel is ready, so far as its host is concerned.
    pub fn ready(&self, score: &Score, kernel: usize) -> Nanos {
        self.begin + Nanos(self.scaled(score.ready[kernel]) + self.stall(kernel))
    }

    /// When the host calls for the launch of it.
    pub fn call(&self, score: &Score, kernel: usize) -> Nanos {
        self.ready(score, score.called_with(kernel)) - Nanos(score.launch)
    }

    /// On the GPU, undisturbed, until `at`.
    pub fn run(&mut self, score: &Score, at: Nanos) {
        let from = self.kernel;
        let begun = partition(from, score.kernels(), |kernel| self.start(score, kernel) <= at);
        let Some(last) = begun.checked_sub(1).filter(|&last| last >= from) else { return };
        let end = self.scaled(score.work[last + 1]);
        let reached = self.scaled(score.work[last]) + at.since(self.start(score, last)).0;
        self.kernel = last;
        self.set_done(score, self.done.max(reached.min(end)));
    }

    /// It was not on the GPU, or must wait for it, until `at`.
    pub fn resume(&mut self, score: &Score, at: Nanos) {
        let kernel = self.kernel;
        self.lag = self.lag.max(at.since(self.begin).0.saturating_sub(self.done));
        if kernel >= self.stalled {
            (self.stall, self.stalled) = (self.next_stall, usize::MAX);
        }
        if let Some(sync) = score.next_sync(kernel) {
            let stall = self.lateness(score, sync - 1) - self.scaled(score.lateness[sync - 1]);
            self.stall_from(sync, stall);
        } else if kernel + score.ahead < score.kernels() && !score.graph {
            // The call for this launch waits until the kernel that makes room for it has run.
            let full = kernel + score.ahead;
            let room =
                at + Nanos(self.scaled(score.work[kernel + 1]).saturating_sub(self.done) + score.launch);
            self.stall_from(full, room.since(self.begin).0.saturating_sub(self.scaled(score.ready[full])));
        }
    }

    fn stall_from(&mut self, kernel: usize, stall: u64) {
        if stall > self.stall(kernel) {
            (self.next_stall, self.stalled) = (stall, kernel);
        }
    }

    /// Everything before this kernel was done at `at`: if the host has waited for that, it goes on from there.
    pub fn passed(&mut self, score: &Score, kernel: usize, at: Nanos) {
        if kernel == 0 || score.syncs.is_empty() || score.syncs.binary_search(&kernel).is_err() {
            return;
        }
        let late = at.since(self.begin).0.saturating_sub(self.done);
        let stall = late.saturating_sub(self.scaled(score.lateness[kernel - 1]));
        (self.stall, self.stalled) = (stall.max(self.stall(kernel)), usize::MAX);
    }

    /// From `now`, on the GPU: until when it keeps it busy without a gap. `now` itself: there is nothing to run at the moment.
    pub fn busy_until(&self, score: &Score, now: Nanos) -> Nanos {
        let kernel = self.kernel;
        if kernel >= score.kernels() || self.next_start(score) > now {
            return now;
        }
        let late = self.lateness(score, kernel);
        let gap = partition(kernel + 1, score.kernels(), |k| self.lateness(score, k) <= late);
        self.begin + Nanos(self.scaled(score.work[gap]) + late)
    }

    /// The next gap inside the job, of at least `least` until the host calls for the launch that ends it, which is after `now`: when it
    /// opens, and when that call is.
    pub fn next_gap(&self, score: &Score, now: Nanos, least: Nanos) -> Option<(Nanos, Nanos)> {
        let mut kernel = self.kernel;
        if kernel > 0 && self.under_way(score).is_none() {
            // Between two kernels: the gap that is open now counts from its begin.
            kernel -= 1;
        }
        let (last, mut late) = (score.kernels() - 1, self.lateness(score, kernel.min(score.kernels() - 1)));
        if self.lateness(score, last) <= late {
            return None;
        }
        for after in kernel + 1..=last {
            let lateness = self.lateness(score, after);
            if lateness > late {
                let opens = self.begin + Nanos(self.scaled(score.work[after]) + late);
                let call = self.call(score, after);
                if call > opens.max(now) && call.since(opens) >= least {
                    return Some((opens, call));
                }
                late = lateness;
            }
        }
        None
    }

    /// When it goes on, if the GPU is free: in the past if it is under way.
    pub fn next_start(&self, score: &Score) -> Nanos {
        let kernel = self.kernel;
        if kernel >= score.kernels() { Nanos::MAX } else { self.start(score, kernel) }
    }

    /// Whether there is something to run at this moment, on the GPU or not.
    pub fn has_work(&self, score: &Score, now: Nanos) -> bool {
        self.wants_from(score) <= now
    }

    /// From when on there is something to run; in the past if a kernel is under way or waits.
    pub fn wants_from(&self, score: &Score) -> Nanos {
        let kernel = self.kernel;
        match self.under_way(score) {
            Some(_) => Nanos::ZERO,
            None if kernel >= score.kernels() => Nanos::MAX,
            None => self.ready(score, kernel),
        }
    }

    /// When the job ends if nothing disturbs it any more.
    pub fn end(&self, score: &Score) -> Nanos {
        let last = score.kernels() - 1;
        self.start(score, last) + Nanos(self.scaled(score.work[last + 1]) - self.scaled(score.work[last]))
    }

    /// When the kernel under way goes on, or the next one starts.
    pub fn goes_on(&self, score: &Score) -> Nanos {
        let into = self.under_way(score).map_or(0, |running| running.into);
        self.next_start(score) + Nanos(into)
    }

    /// Puts the work done to where it is known to be by other means: after a stop, or after a stretch beside others.
    pub fn set_done(&mut self, score: &Score, done: u64) {
        if done < self.done {
            self.kernel = partition(0, self.kernel, |kernel| self.scaled(score.work[kernel + 1]) <= done);
        }
        self.done = done;
        while self.kernel < score.kernels() && self.scaled(score.work[self.kernel + 1]) <= done {
            self.kernel += 1;
        }
    }

    /// All kernels before this one are done.
    pub fn set_kernel(&mut self, score: &Score, kernel: usize) {
        self.kernel = kernel;
        self.set_done(score, self.scaled(score.work[kernel]));
    }

    /// When the host has made its last call: one that does not wait goes on to its next job then.
    pub fn handed_over(&self, score: &Score) -> Nanos {
        self.call(score, score.kernels() - 1)
    }
}

/// The first of `from..to` for which `holds` does not hold. Most often it is near the one end, or it is the other.
fn partition(from: usize, to: usize, holds: impl Fn(usize) -> bool) -> usize {
    if from >= to || holds(to - 1) {
        return from.max(to);
    }
    let (mut low, mut high, mut stride) = (from, to - 1, 1);
    while low + stride < high {
        if !holds(low + stride - 1) {
            high = low + stride - 1;
            break;
        }
        low += stride;
        stride *= 2;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests;
