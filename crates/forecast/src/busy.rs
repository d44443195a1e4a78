//! When what a tenant has launched will be done.
//!
//! Kernels of a tenant run one after the other, as far as we assume: what it launches begins when what it launched before has
//! ended, or now. Each kernel adds its usual duration: its mean, because only means add up. How far nine of ten exceed the
//! usual is no sum: of many kernels some take longer and some shorter, so deviations add up as squares, and the root is taken
//! when somebody asks.
//!
//! Durations come from whoever samples them, and of a kernel that nobody has timed yet all kernels of the tenant together
//! give an idea. Where nothing has been timed at all, the tenant is busy until it is seen at rest.

use model::Nanos;

use crate::kernel::{Kernel, mixed};
use crate::recent::Recent;
use crate::table::Table;

/// What one tenant has in flight, and how long its kernels take; `SLOTS` of them, a power of two from eight on.
///
/// ```
/// use forecast::{Busy, Kernel};
/// use model::Nanos;
///
/// let mut busy = Busy::<64>::new();
/// let now = Nanos::from_millis(1);
/// busy.launched(now, Kernel(1));
/// assert_eq!(busy.until(), Nanos::MAX);
/// busy.at_rest(now);
/// for _ in 0..10 {
///     busy.took(Kernel(1), Nanos(4_096));
/// }
/// busy.launched(now, Kernel(1));
/// busy.launched(now, Kernel(1));
/// assert_eq!(busy.until(), now + Nanos(8_192));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy<const SLOTS: usize> {
    durations: Table<SLOTS>,
    all: Recent<99>,
    /// Until when, on average.
    usual: Nanos,
    /// The square of how much later it is nine times of ten.
    deviation: u64,
    /// Something is in flight of which nothing is known.
    unknown: bool,
}

impl<const SLOTS: usize> Busy<SLOTS> {
    pub const fn new() -> Busy<SLOTS> {
        Busy { durations: Table::new(), all: Recent::new(), usual: Nanos::ZERO, deviation: 0, unknown: false }
    }

    /// A kernel was seen to run for so long.
    pub fn took(&mut self, kernel: Kernel, duration: Nanos) {
        self.all.observe(duration);
        if let Some(place) = self.durations.visit(mixed(kernel.0)) {
            self.durations.observe(place, duration);
        }
    }

    /// How long a kernel runs, on average and at the most in nine of ten cases, if anything is known of it.
    pub fn duration(&self, kernel: Kernel) -> Option<(Nanos, Nanos)> {
        let known = self.durations.find(mixed(kernel.0)).and_then(|place| self.durations.recent(place));
        match known {
            Some(recent) if !recent.is_empty() => Some(usual_and_long(recent)),
            _ if !self.all.is_empty() => Some(usual_and_long(&self.all)),
            _ => None,
        }
    }

    /// The tenant hands over a kernel.
    pub fn launched(&mut self, now: Nanos, kernel: Kernel) {
        if self.usual < now {
            self.usual = now;
            self.deviation = 0;
        }
        match self.duration(kernel) {
            Some((usual, long)) => {
                self.usual += usual;
                let more = long.since(usual).0;
                self.deviation = self.deviation.saturating_add(more.saturating_mul(more));
            }
            None => self.unknown = true,
        }
    }

    /// All that the tenant had launched was seen to be done.
    pub fn at_rest(&mut self, now: Nanos) {
        self.usual = self.usual.min(now);
        self.deviation = 0;
        self.unknown = false;
    }

    /// When all will be done, at the latest, nine times of ten.
    pub fn until(&self) -> Nanos {
        if self.unknown { Nanos::MAX } else { self.usual + Nanos(self.deviation.isqrt()) }
    }
}

impl<const SLOTS: usize> Default for Busy<SLOTS> {
    fn default() -> Busy<SLOTS> {
        Busy::new()
    }
}

/// The mean, and what nine of ten do not exceed. The mean is put together from three places (Swanson's rule), so that a single
/// stray among few spans does not move it.
fn usual_and_long<const N: usize>(recent: &Recent<N>) -> (Nanos, Nanos) {
    let (low, middle, high) = (recent.tenth(1), recent.tenth(5), recent.tenth(9));
    let mean = low.scaled(3, 10) + middle.scaled(4, 10) + high.scaled(3, 10);
    (mean.clamp(low, high), high)
}
