//! What happened in a world.

use model::{Class, Nanos};
use policy::{Who, Why};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// As the world names them, in its order.
    pub tenants: Vec<Played>,
    /// The first decisions, as many as the world wants kept. Seats are places in the world's list of tenants.
    pub decisions: Vec<Decided>,
    /// How often was decided, by reason, in the order of [`Why::ALL`].
    pub reasons: [u64; Why::ALL.len()],
    /// Context switches of the hardware.
    pub switches: u64,
    /// How often the engine looked: what a run costs.
    pub events: u64,
    pub until: Nanos,
}

/// One tenant's part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    pub name: String,
    pub class: Class,
    /// Every job that arrived, in order.
    pub jobs: Vec<Job>,
    /// Each time it was made to leave the GPU with work unfinished.
    pub stops: Vec<Stop>,
    /// For how long it had the GPU, counted as the work done: what it would take alone.
    pub busy: Nanos,
    /// Work that was done and had to be done again.
    pub wasted: Nanos,
    /// The longest time that a kernel which was ready waited because others had the GPU.
    pub longest_wait: Nanos,
    pub gaps: Gaps,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    pub due: Nanos,
    /// When its host began with it. `None`: never.
    pub start: Option<Nanos>,
    /// When its last kernel was done. `None`: not before the world ended.
    pub end: Option<Nanos>,
    /// How long its kernels waited for others, all together.
    pub waited: Nanos,
    /// Whether it was due after the warm-up.
    pub counts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    pub at: Nanos,
    /// Until it was off the GPU.
    pub latency: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    pub at: Nanos,
    pub who: Who,
    pub longest: Nanos,
    pub why: Why,
}

/// Idle time of the GPU inside a latency tenant's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    pub seen: u64,
    /// In how many of them others had the GPU.
    pub filled: u64,
    /// How long they were, all together, while seen.
    pub idle: Nanos,
    /// How much work others did in them.
    pub used: Nanos,
}

impl Played {
    /// How many jobs ended in `from..until`: what throughput is counted by.
    pub fn ended(&self, from: Nanos, until: Nanos) -> u64 {
        let ends = self.jobs.iter().filter_map(|job| job.end);
        ends.filter(|end| (from..until).contains(end)).count() as u64
    }

    /// Latencies from arrival of the jobs that count and ended, in order of arrival.
    pub fn latencies(&self) -> impl Iterator<Item = Nanos> {
        self.jobs.iter().filter(|job| job.counts).filter_map(|job| job.end.map(|end| end.since(job.due)))
    }

    /// The latency below which a share `q` of [`Played::latencies`] lies, by nearest rank.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        let mut all: Vec<Nanos> = self.latencies().collect();
        all.sort_unstable();
        let rank = (q * all.len() as f64).ceil() as usize;
        all.get(rank.max(1) - 1).copied()
    }
}
