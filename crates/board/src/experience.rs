//! How long a latency tenant's requests take, as it has seen them: lately, whoever ran beside them, and alone.

use std::sync::atomic::{AtomicU64, Ordering};

use model::Nanos;

use crate::seat::Seat;

/// How long requests took. All noughts: nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// Of how many.
    pub count: u64,
    pub p50: Nanos,
    pub p99: Nanos,
}

/// What a latency tenant has seen of its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Experience {
    pub all: Spans,
    /// Of those that had the GPU to themselves, as it begins to be known: before, there is only a count.
    pub alone: Spans,
    /// How many of those it takes for that.
    pub alone_needed: u64,
}

impl Experience {
    /// What half of the requests take at most: alone, if that is known. Nought: nothing is known.
    pub fn usual(&self) -> Nanos {
        if self.alone.is_known() { self.alone.p50 } else { self.all.p50 }
    }
}

impl Spans {
    /// Whether there is anything to say.
    pub fn is_known(&self) -> bool {
        self.count > 0 && self.p99 > Nanos::ZERO
    }
}

#[repr(C)]
struct Seen {
    count: AtomicU64,
    p50: AtomicU64,
    p99: AtomicU64,
}

/// An experience in the segment. It is written a few times a second, and a figure from before beside one from after is no worse
/// than both from before.
#[repr(C, align(64))]
pub(crate) struct Experienced {
    all: Seen,
    alone: Seen,
    alone_needed: AtomicU64,
}

impl Seen {
    fn write(&self, spans: &Spans) {
        self.p50.store(spans.p50.0, Ordering::Relaxed);
        self.p99.store(spans.p99.0, Ordering::Relaxed);
        self.count.store(spans.count, Ordering::Relaxed);
    }

    /// What is written there; a median above the 99th percentile is brought down to it.
    fn read(&self) -> Spans {
        let p99 = Nanos(self.p99.load(Ordering::Relaxed));
        let p50 = Nanos(self.p50.load(Ordering::Relaxed)).min(p99);
        Spans { count: self.count.load(Ordering::Relaxed), p50, p99 }
    }
}

impl Experienced {
    pub(crate) fn write(&self, experience: &Experience) {
        self.all.write(&experience.all);
        self.alone.write(&experience.alone);
        self.alone_needed.store(experience.alone_needed, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Experience {
        let alone_needed = self.alone_needed.load(Ordering::Relaxed);
        Experience { all: self.all.read(), alone: self.alone.read(), alone_needed }
    }
}

impl Seat {
    /// Of a latency tenant: how long its requests take.
    pub fn say_experience(&self, experience: Experience) {
        self.own().experience.write(&experience);
    }
}
