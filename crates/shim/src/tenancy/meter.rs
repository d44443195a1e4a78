//! For how long this process has had work on the GPU.
//!
//! A *period* of work begins when a process that had nothing to do hands something over, and ends when it has waited for all of
//! it, or when its keeper finds that all is done (`burst` knows both). Periods are counted when they end. One that lasts is
//! counted piece by piece, by the keeper, so that nobody who looks has to wait for its end; the meter remembers
//! up to which moment that was done. What of a period was really spent on the GPU, and not stopped or behind others, the keeper
//! knows: threads only add up.

use std::sync::atomic::{AtomicU64, Ordering};

use model::Nanos;

pub struct Meter {
    /// Up to this moment everything is counted.
    until: AtomicU64,
    sum: AtomicU64,
}

impl Meter {
    pub const fn new() -> Meter {
        Meter { until: AtomicU64::new(0), sum: AtomicU64::new(0) }
    }

    /// There has been work since then, and until now.
    pub fn count(&self, since: Nanos, now: Nanos) {
        let until = Nanos(self.until.fetch_max(now.0, Ordering::AcqRel));
        self.sum.fetch_add(now.since(since.max(until)).0, Ordering::AcqRel);
    }

    /// What was counted since it was last taken.
    pub fn take(&self) -> Nanos {
        Nanos(self.sum.swap(0, Ordering::AcqRel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_counted_once_in_however_many_pieces() {
        let meter = Meter::new();
        meter.count(Nanos(10), Nanos(30));
        meter.count(Nanos(10), Nanos(45));
        assert_eq!(meter.take(), Nanos(35));
        meter.count(Nanos(10), Nanos(50));
        meter.count(Nanos(70), Nanos(75));
        assert_eq!(meter.take(), Nanos(10));
        assert_eq!(meter.take(), Nanos::ZERO);
    }

    #[test]
    fn what_is_told_late_is_not_counted_twice() {
        let meter = Meter::new();
        meter.count(Nanos(10), Nanos(30));
        meter.count(Nanos(10), Nanos(28));
        meter.count(Nanos(40), Nanos(41));
        assert_eq!(meter.take(), Nanos(21));
    }
}
