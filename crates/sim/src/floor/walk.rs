//! A latency tenant's kernels among those of others, one after the other.

use std::ops::Range;

use model::Nanos;

use super::{Crowd, Floor};
use crate::cursor::Cursor;
use crate::score::{Score, whole};

pub(super) struct Walk<'f> {
    score: &'f Score,
    crowd: Crowd,
    /// The kernel at hand, and how long each waits for room from this one on.
    first: usize,
    waits: &'f [u64],
    paces: &'f [Pace],
    /// What the kernels before each take together.
    sums: &'f [u64],
    at: Walked,
}

/// Where a walk has come to.
#[derive(Clone, Debug)]
pub(super) struct Walked {
    pub cursor: Cursor,
    pub until: Nanos,
    /// The kernel that waits for room, and until when.
    pub room: Option<(usize, Nanos)>,
    /// Room times time.
    pub taken: f64,
    pub waited: Nanos,
    pub longest_wait: Nanos,
}

impl<'f> Walk<'f> {
    /// From now on. Its waits have been found.
    pub fn new(floor: &'f Floor<'_, '_>, number: usize, crowd: Crowd) -> Walk<'f> {
        let (lane, seat) = (&floor.lanes[number], &floor.seats[number]);
        let cursor = lane.cursor.clone().expect("whoever walks has a job");
        let waits = if crowd.waits { seat.waits.from(cursor.kernel()) } else { &[] };
        let at = Walked {
            cursor,
            until: floor.now,
            room: seat.room,
            taken: 0.0,
            waited: Nanos::ZERO,
            longest_wait: Nanos::ZERO,
        };
        let Paces { paces, sums, .. } = &seat.paces;
        Walk { score: &lane.score, crowd, first: at.cursor.kernel(), waits, paces, sums, at }
    }

    /// Until `to`, or until the job is over.
    pub fn go(mut self, to: Nanos) -> Walked {
        if self.first == self.score.kernels() || !self.go_on(self.first, to) {
            return self.at;
        }
        let mut from = self.first + 1;
        while from < self.score.kernels() {
            let until = self.score.next_sync(from).unwrap_or(self.score.kernels());
            self.at.cursor.passed(self.score, from, self.at.until);
            let reached = self.stretch(from..until, to);
            self.at.cursor.set_kernel(self.score, reached);
            if reached < until {
                self.go_on(reached, to);
                break;
            }
            from = until;
        }
        self.at
    }

    /// The next gap of at least `least` until the host calls for the launch that ends it: when it opens, and when that call is.
    pub fn next_gap(mut self, least: Nanos) -> Option<(Nanos, Nanos)> {
        if self.score.graph && self.score.syncs.is_empty() {
            return None;
        }
        let mut from = self.first;
        if self.at.cursor.under_way(self.score).is_some() {
            self.go_on(from, Nanos::MAX);
            from += 1;
        }
        for kernel in from..self.score.kernels() {
            let Walked { cursor, until, .. } = &mut self.at;
            if kernel > self.first {
                cursor.set_kernel(self.score, kernel);
                cursor.passed(self.score, kernel, *until);
            }
            let call = cursor.call(self.score, kernel);
            if call > *until && call.since(*until) >= least {
                return Some((*until, call));
            }
            *until = cursor.start(self.score, kernel).max(*until) + Nanos(self.paces[kernel].span);
        }
        None
    }

    /// The kernel at hand. Whether it ended.
    fn go_on(&mut self, kernel: usize, to: Nanos) -> bool {
        let under_way = self.at.cursor.under_way(self.score).is_some();
        let start = match under_way {
            true => self.at.until,
            false => self.room_for(kernel, self.at.until.max(self.at.cursor.start(self.score, kernel)), to),
        };
        if start >= to {
            return false;
        }
        let (done, end) = (self.at.cursor.done(), self.at.cursor.scaled(self.score.work[kernel + 1]));
        let span = Nanos(whole((end - done) as f64 / self.crowd.rate));
        self.at.until = (start + span).min(to);
        self.at.taken += self.at.until.since(start).0 as f64 * self.score.grids[kernel].share;
        let ends = start + span <= to;
        if ends {
            self.at.cursor.set_kernel(self.score, kernel + 1);
        } else {
            let reached = done + whole(to.since(start).0 as f64 * self.crowd.rate);
            self.at.cursor.set_done(self.score, reached.min(end));
        }
        ends
    }

    /// Whole kernels between two waits of the host, as many as end by `to`. Returns the first that does not.
    fn stretch(&mut self, kernels: Range<usize>, to: Nanos) -> usize {
        let gapless =
            !kernels.is_empty() && self.at.cursor.is_gapless(self.score, kernels.start, kernels.end - 1);
        if !self.crowd.waits && gapless {
            return self.sprint(kernels, to);
        }
        let Walked { cursor, until, taken, waited, longest_wait, .. } = &mut self.at;
        let (mut now, mut sum, mut longest) = (until.0, 0, 0);
        let mut reached = kernels.end;
        for kernel in kernels {
            let wait = self.waits.get(kernel - self.first).copied().unwrap_or(0);
            let start = now.max(cursor.start(self.score, kernel).0) + wait;
            let Pace { span, room } = self.paces[kernel];
            if start + span > to.0 || start >= to.0 {
                reached = kernel;
                break;
            }
            now = start + span;
            *taken += room;
            sum += wait;
            longest = longest.max(wait);
        }
        *until = Nanos(now);
        *waited += Nanos(sum);
        *longest_wait = (*longest_wait).max(Nanos(longest));
        reached
    }

    /// The same where each starts when the last one ends. Nobody asks for the room that they take, because nobody else is on the card
    /// but those who have their own.
    fn sprint(&mut self, kernels: Range<usize>, to: Nanos) -> usize {
        let begin = self.at.until.max(self.at.cursor.start(self.score, kernels.start));
        let before = self.sums[kernels.start];
        let end = |kernel: usize| begin + Nanos(self.sums[kernel + 1] - before);
        let left = &self.sums[kernels.start + 1..=kernels.end];
        let reached = kernels.start + left.partition_point(|sum| begin + Nanos(sum - before) <= to);
        if reached > kernels.start {
            self.at.until = end(reached - 1);
        }
        reached
    }

    /// When there is room for a kernel that could start at `start`.
    fn room_for(&mut self, kernel: usize, start: Nanos, to: Nanos) -> Nanos {
        let Some(&wait) = self.waits.get(kernel - self.first) else { return start };
        if let Some((_, at)) = self.at.room.filter(|&(which, _)| which == kernel) {
            return at.max(start);
        }
        if start >= to {
            return start;
        }
        let wait = Nanos(wait);
        self.at.room = Some((kernel, start + wait));
        self.at.waited += wait;
        self.at.longest_wait = self.at.longest_wait.max(wait);
        start + wait
    }
}

/// A whole kernel at a rate.
#[derive(Clone, Copy, Debug)]
struct Pace {
    span: u64,
    /// Room times time.
    room: f64,
}

/// How long the kernels of a job take at the rate at which it gets on: most often that of the job before.
#[derive(Clone, Debug, Default)]
pub(super) struct Paces {
    rate: f64,
    factor: u64,
    paces: Vec<Pace>,
    /// What the kernels before each take together; one more than there are kernels.
    sums: Vec<u64>,
}

impl Paces {
    pub fn find(&mut self, score: &Score, cursor: &Cursor, rate: f64) {
        if (self.rate, self.factor) == (rate, cursor.factor) {
            return;
        }
        (self.rate, self.factor) = (rate, cursor.factor);
        self.paces.clear();
        let mut end = 0;
        self.paces.extend(score.grids.iter().zip(&score.work[1..]).map(|(grid, &work)| {
            let before = std::mem::replace(&mut end, cursor.scaled(work));
            let span = whole((end - before) as f64 / rate);
            Pace { span, room: span as f64 * grid.share }
        }));
        let mut sum = 0;
        self.sums.clear();
        self.sums.push(0);
        self.sums.extend(self.paces.iter().map(|pace| {
            sum += pace.span;
            sum
        }));
    }
}
