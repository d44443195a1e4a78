//! What a policy knows when it decides: who has work that must not wait, who would like to use what is left, and how the
//! dials stand. Nothing in here is measured while somebody waits; it lies on the board already.

use model::{Dials, Forecast, Nanos};

/// Everything that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub now: Nanos,
    /// In the isolated domain one best-effort tenant at a time has work on the GPU; in the shared domain all may.
    pub exclusive: bool,
    pub latency: &'a [Latency],
    pub best_effort: &'a [BestEffort],
    pub dials: Dials,
}

/// A latency tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    pub seat: u32,
    /// 0 to 9, higher goes first.
    pub priority: u32,
    pub activity: Activity,
    /// When what it has launched so far will have run, at the latest in nine of ten cases.
    pub busy_until: Nanos,
    /// When it launches something next, unless it is known better: at once.
    pub next: Forecast,
    /// By how much it may still be delayed: what its objective, or its tolerance, leaves of the request in progress, or of
    /// the next one when there is none (`slo::slack`).
    pub slack: Nanos,
    /// How long its requests take, half of them; nought: not known.
    pub usual: Nanos,
    /// For how long after a request its next one is worth waiting for; nought: not known.
    pub lull: Nanos,
    /// How long its requests follow each other with no longer pauses, on average; nought: not known.
    pub spell: Nanos,
    /// Whether its requests are handed over as a whole, so that there are no gaps in them; `false`: not known.
    pub whole: bool,
    /// When the request in progress must be answered.
    pub deadline: Option<Nanos>,
    /// The request in progress, or the next one when there is none, was chosen to be seen alone, and is worth waiting for so
    /// long; zero: it was not.
    pub solo_wait: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// A request is under way. Between two of its kernels the GPU may well be idle.
    Active { since: Nanos },
    /// It waits for its next request. `None`: it never had one.
    Idle { since: Option<Nanos> },
}

/// A best-effort tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestEffort {
    pub seat: u32,
    /// 0 to 9; each level counts as much as twice the weight, so that none starves.
    pub priority: u32,
    pub weight: u32,
    /// Seats of its tenant that want to run, itself included.
    pub siblings: u32,
    pub wants: bool,
    /// Whether it has work on the GPU.
    pub runs: bool,
    /// The time for which it ran, stretched by how little it is entitled to (`fair`).
    pub virtual_time: Nanos,
    /// Since when it has wanted to run.
    pub wanted_since: Nanos,
    /// Its certificate: how long it takes to get it off the GPU, whatever it is doing.
    pub certificate: Nanos,
    /// How long its next piece takes, nine times of ten, if it can only be held: it runs to its end once it was started.
    /// `None`: its work can be stopped at any time, within its certificate.
    pub piece: Option<Nanos>,
}

impl Latency {
    /// Whether its request, or the next one, is to be seen alone.
    pub fn is_solo(&self) -> bool {
        self.solo_wait > Nanos::ZERO
    }

    pub fn is_active(&self) -> bool {
        matches!(self.activity, Activity::Active { .. })
    }
}
