//! Whole kernels at a rate, one after the other.
//!
//! At a rate below 1 a kernel takes longer than its work, and [`Score`]'s sums do not say where a job stands. For a rate that comes
//! again and again there are sums of its own. Let `C[k]` be what the kernels before `k` take, rounded as each of them is, and `v` when
//! the card is there for kernel `k`, less `C[k]`. Then a later kernel `j` starts at
//!
//! ```text
//! C[j] + max(v, P[k], ..., P[j]),   P[j] = D[j] + M[j] - C[j]
//! ```
//!
//! and if `v` is no less than any `P` up to `k`, the maximum is that of `v` and the largest `P` up to `j`, which never falls: it is
//! found by bisection. If it is less, because the job has been ahead of this rate, kernels are gone through until it is not.

use model::Nanos;

use super::{Cursor, partition};
use crate::rate::Rate;
use crate::score::Score;

/// To lay a track takes as long as to go through a job or two.
const OFTEN: u32 = 4;

/// The sums of one rate.
#[derive(Clone, Debug, Default)]
pub struct Track {
    rate: Rate,
    /// How often they were of use.
    used: u32,
    /// Other rates that were asked for, and how often since these sums were made.
    others: [(Rate, u32); 4],
    /// `C`, as above; one more than there are kernels.
    takes: Vec<i64>,
    /// The largest `P` so far.
    floor: Vec<i64>,
}

impl Track {
    /// Prepares for this rate if it comes often, and more often than the one that is prepared for.
    pub fn ask(&mut self, score: &Score, rate: Rate) {
        if rate == self.rate {
            self.used = self.used.saturating_add(1);
            return;
        }
        let known = self.others.iter().position(|&(other, _)| other == rate);
        let rarest = || (0..self.others.len()).min_by_key(|&place| self.others[place].1);
        let Some(place) = known.or_else(rarest) else { return };
        let times = if known.is_some() { self.others[place].1 + 1 } else { 1 };
        self.others[place] = (rate, times);
        if times >= OFTEN && times > self.used && rate.of_alone <= 1.0 {
            (self.used, self.others) = (0, Default::default());
            self.lay(score, rate);
        }
    }

    fn lay(&mut self, score: &Score, rate: Rate) {
        self.rate = rate;
        self.takes.clear();
        self.floor.clear();
        let (mut takes, mut floor) = (0, i64::MIN);
        for (kernel, lateness) in score.lateness.iter().enumerate() {
            floor = floor.max((score.work[kernel] + lateness) as i64 - takes);
            self.takes.push(takes);
            self.floor.push(floor);
            takes += rate.span(&score.grids[kernel], score.work[kernel + 1] - score.work[kernel]) as i64;
        }
        self.takes.push(takes);
    }
}

impl Cursor {
    /// As many whole kernels as end by `to`, from `now` on. Returns when the last one did. It is between two kernels, and its job is
    /// as long as the score says.
    pub fn sprint(&mut self, score: &Score, track: &Track, now: Nanos, to: Nanos, rate: Rate) -> Nanos {
        let mut now = now;
        loop {
            let mut until = score.next_sync(self.kernel).unwrap_or(score.kernels());
            if self.kernel < self.stalled {
                until = until.min(self.stalled);
            }
            let (reached, moment) = if rate == track.rate {
                self.by_sums(score, track, until, now, to)
            } else {
                self.by_steps(score, until, now, to, rate)
            };
            (self.kernel, self.done, now) = (reached, score.work[reached], moment);
            if reached < until || reached == score.kernels() {
                return now;
            }
            self.passed(score, reached, now);
        }
    }

    fn by_steps(&self, score: &Score, until: usize, now: Nanos, to: Nanos, rate: Rate) -> (usize, Nanos) {
        let mut now = now.0;
        for kernel in self.kernel..until {
            let start = now.max(self.begin.0 + score.work[kernel] + self.lateness(score, kernel));
            let end = start + rate.span(&score.grids[kernel], score.work[kernel + 1] - score.work[kernel]);
            if end > to.0 {
                return (kernel, Nanos(now));
            }
            now = end;
        }
        (until, Nanos(now))
    }

    fn by_sums(&self, score: &Score, track: &Track, until: usize, now: Nanos, to: Nanos) -> (usize, Nanos) {
        let (takes, floor) = (&track.takes, &track.floor);
        // Worlds and jobs last eleven days at most.
        let (mut now, to, stall) =
            (now.0 as i64, to.0.min(i64::MAX as u64) as i64, self.stall(self.kernel) as i64);
        let begin = self.begin.0 as i64 + stall;
        for kernel in self.kernel..until {
            let held = begin + score.work[kernel] as i64 + self.lag as i64 - stall;
            let there = now.max(held) - begin - takes[kernel];
            if there >= floor[kernel] {
                let end = |kernel: usize| begin + takes[kernel + 1] + there.max(floor[kernel]);
                let reached = partition(kernel, until, |kernel| end(kernel) <= to);
                return (reached, Nanos(if reached > kernel { end(reached - 1) } else { now } as u64));
            }
            let start = now.max(begin + (score.work[kernel] + score.lateness[kernel]) as i64).max(held);
            let end = start + takes[kernel + 1] - takes[kernel];
            if end > to {
                return (kernel, Nanos(now as u64));
            }
            now = end;
        }
        (until, Nanos(now as u64))
    }
}
