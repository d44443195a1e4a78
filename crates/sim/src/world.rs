//! What is simulated: a card, the tenants on it, and what each of them does.
//!
//! Times of the world are nanoseconds from its beginning. Everything that a tenant does is said beforehand, so that two
//! runs of one world under two schedulers differ by the schedulers alone.

use model::{Class, Domain, Nanos};

use crate::{Card, Error};

/// One GPU and everybody on it, from the beginning until `until`.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    pub card: Card,
    pub sharing: Sharing,
    /// Names are different from each other: what is drawn for a tenant is drawn by its name.
    pub tenants: Vec<Tenant>,
    /// What began before this moment is played like everything else, but [`crate::Log`] marks it as not to be counted.
    pub warmup: Nanos,
    pub until: Nanos,
    pub seed: u64,
    /// How many decisions the log keeps, the first ones; all are counted.
    pub decisions: usize,
}

/// How the contexts of the tenants share the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// One context at a time; best-effort slices of 1 µs; one best-effort tenant at a time, by the token.
    Isolated,
    /// All contexts at a time, latency blocks first; best-effort work is stopped as the scheduler's means allow.
    Shared,
    /// As the card comes: one context at a time, equal slices. Nobody is asked.
    TimeSlicing,
    /// MPS without more: a kernel waits until those before it have put their last block on the card. Nobody is asked.
    Mps,
    /// MPS with the streams of latency tenants first: a kernel waits for running blocks. Nobody is asked.
    MpsPriority,
}

impl Sharing {
    /// One context at a time, or all of them.
    pub fn domain(self) -> Domain {
        match self {
            Sharing::Isolated | Sharing::TimeSlicing => Domain::Isolated,
            Sharing::Shared | Sharing::Mps | Sharing::MpsPriority => Domain::Shared,
        }
    }

    /// Whether a scheduler decides anything.
    pub fn is_scheduled(self) -> bool {
        matches!(self, Sharing::Isolated | Sharing::Shared)
    }
}

/// Somebody with work.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    pub name: String,
    pub class: Class,
    /// 0 to 9, higher goes first.
    pub priority: u32,
    pub weight: u32,
    /// How long a request may take from its arrival.
    pub slo: Option<Nanos>,
    pub arrivals: Arrivals,
    pub work: Work,
}

/// When a tenant has something to do. A *job* is a request of a latency tenant or an iteration of a best-effort tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At these moments, in order, whether or not the last one is done; one at a time is worked on, first come, first served.
    Open(Vec<Nanos>),
    /// The next one as soon as the last one is done, from the beginning to the end.
    Closed,
}

/// What one job consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    pub steps: Vec<Step>,
    /// How many launches the host may be ahead of the GPU before its next call waits: the driver's queue holds 1,024.
    pub ahead: u32,
    /// Whether all of it is one launch of a graph: then the host's part is what lies before the first step.
    pub graph: bool,
    /// Whether the host waits for the GPU at the end of a job. One that does not prepares the next job meanwhile.
    pub waits: bool,
    /// The steps, by their places in order, before which the host waits until the GPU has done everything before them: a token
    /// is looked at before the next one is begun. The step's `host` counts from the end of that wait. With `graph`, each
    /// stretch between two waits is a graph of its own.
    pub syncs: Vec<u32>,
    /// How long jobs are, times what the steps say: one of these is drawn for each job. Empty: all are as the steps say.
    pub factors: Vec<f64>,
}

/// A launch, and what the host does before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The host's time before the launch call, from the call before it (or from the job's begin).
    pub host: Nanos,
    pub kernel: Kernel,
}

/// A grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kernel {
    pub blocks: u32,
    /// How long one block runs.
    pub block: Nanos,
    /// How many of its blocks fit on an SM at a time.
    pub per_sm: u32,
    /// By how much blocks differ, as a share of `block`: after 1 / spread waves they begin and end at any moment, and no longer
    /// together.
    pub spread: f64,
    pub rung: Rung,
}

/// How ebb can stop a kernel in the shared domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rung {
    /// Between blocks.
    Guard,
    /// Only before it begins: it runs out whole.
    Hold,
}

impl Kernel {
    /// A kernel that takes `duration` as one wave of blocks on the whole card: all that is known of most recorded ones.
    pub fn whole(card: &Card, duration: Nanos) -> Kernel {
        Kernel { blocks: card.sms, block: duration, per_sm: 1, spread: 0.0, rung: Rung::Guard }
    }

    /// How many waves of blocks it takes.
    pub fn waves(&self, card: &Card) -> u64 {
        u64::from(self.blocks.max(1)).div_ceil(self.slots(card))
    }

    /// How long it runs if it has the card to itself.
    pub fn duration(&self, card: &Card) -> Nanos {
        Nanos(self.block.0.saturating_mul(self.waves(card)))
    }

    /// The share of the card's room that it takes while it runs, from 0 to 1.
    pub fn share(&self, card: &Card) -> f64 {
        let room = self.slots(card) * self.waves(card);
        f64::from(self.blocks.max(1)) / room as f64
    }

    fn slots(&self, card: &Card) -> u64 {
        u64::from(card.sms.max(1)) * u64::from(self.per_sm.max(1))
    }
}

impl World {
    /// The bounds within which the engine's arithmetic holds, checked once.
    pub fn check(&self) -> Result<(), Error> {
        let mut names: Vec<&str> = self.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::SameName(pair[0].to_owned()));
        }
        if self.until > LONGEST {
            return Err(Error::TooLong(self.until));
        }
        self.tenants.iter().try_for_each(|tenant| tenant.check(&self.card))
    }
}

/// The longest world, and the longest job: eleven days. With it no product in the engine overflows.
pub const LONGEST: Nanos = Nanos(1_000_000_000_000_000);

impl Tenant {
    fn check(&self, card: &Card) -> Result<(), Error> {
        let wrong = |what| Err(Error::Tenant { name: self.name.clone(), what });
        if self.work.steps.is_empty() {
            return wrong("a job needs at least one kernel");
        }
        let places = self.work.syncs.iter().map(|&place| place as usize);
        if !self.work.syncs.is_sorted() || places.max().is_some_and(|last| last >= self.work.steps.len()) {
            return wrong("the host waits before a step that is there, in their order");
        }
        if self.work.factors.iter().any(|&factor| !(MIN_FACTOR..=MAX_FACTOR).contains(&factor)) {
            return wrong("a job's factor must lie between 0.001 and 1,000");
        }
        if self.work.steps.iter().any(|step| !(0.0..=10.0).contains(&step.kernel.spread)) {
            return wrong("the spread of blocks must lie between 0 and 10");
        }
        if self.work.steps.iter().any(|step| step.kernel.block == Nanos::ZERO) {
            return wrong("a block must take some time");
        }
        let spans = self.work.steps.iter().map(|step| step.host + step.kernel.duration(card));
        if spans.fold(Nanos::ZERO, |sum, span| sum + span) > Nanos(LONGEST.0 / 1_000) {
            return wrong("a job is too long");
        }
        if let Arrivals::Open(due) = &self.arrivals
            && !due.is_sorted()
        {
            return wrong("arrivals must be in order");
        }
        Ok(())
    }
}

const MIN_FACTOR: f64 = 0.001;
const MAX_FACTOR: f64 = 1_000.0;
