//! What a tenant counts.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::histogram::{Histogram, Snapshot};

/// A count in shared memory.
#[repr(transparent)]
pub struct Count(AtomicU64);

impl Count {
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counts {
    (counts { $($(#[$doc:meta])* $name:ident,)* } times { $($(#[$about:meta])* $times:ident,)* }) => {
        /// Counters and histograms of one seat, added to by its tenant.
        #[repr(C, align(64))]
        pub struct Tally {
            $($(#[$doc])* pub $name: Count,)*
            $($(#[$about])* pub $times: Histogram,)*
        }

        /// A tally at one moment.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Figures {
            $($(#[$doc])* pub $name: u64,)*
            $($(#[$about])* pub $times: Snapshot,)*
        }

        impl Tally {
            pub fn figures(&self) -> Figures {
                Figures {
                    $($name: self.$name.get(),)*
                    $($times: self.$times.snapshot(),)*
                }
            }

            /// For a new occupant.
            pub(crate) fn clear(&self) {
                $(self.$name.0.store(0, Ordering::Relaxed);)*
                $(self.$times.clear();)*
            }
        }

        impl Figures {
            pub const NONE: Figures = Figures { $($name: 0,)* $($times: Snapshot::EMPTY,)* };

            /// Each figure, with the same one of another tally.
            fn combine(&mut self, other: &Figures, with: impl Fn(u64, u64) -> u64) {
                $(self.$name = with(self.$name, other.$name);)*
                $(self.$times.combine(&other.$times, &with);)*
            }

            /// The counters by name, in the order of the layout.
            pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

impl Figures {
    /// Both together: for several seats of one tenant.
    pub fn add(&mut self, other: &Figures) {
        self.combine(other, u64::saturating_add);
    }

    /// What was counted since then.
    pub fn since(&self, then: &Figures) -> Figures {
        let mut since = self.clone();
        since.combine(then, u64::saturating_sub);
        since
    }

    /// A later reading of the same tally. Its tenant writes what it likes there, but what was counted once stays counted.
    pub fn rise(&mut self, later: &Figures) {
        self.combine(later, u64::max);
    }
}

counts! {
    counts {
        /// Pieces of work given to the driver.
        submissions,
        /// Kernels launched, those inside graphs one by one. Launches made again for blocks that were turned away are not new ones.
        launches,
        /// Time for which work of this seat was on the GPU, as far as it can be told.
        gpu_ns,
        /// Time for which this seat had work that could have been on the GPU. Strangers may have had the GPU meanwhile.
        pending_ns,
        /// Time for which the seat had the token.
        held_ns,
        /// Time for which it waited for the token.
        wait_ns,
        /// How often it waited.
        waits,
        /// How often it passed the token on.
        passes,
        /// Stops between launches.
        stops_hold,
        /// Stops between the blocks of a kernel.
        stops_guard,
        /// Launches some of whose blocks were turned away by a stop.
        cut,
        /// Launches made again for the blocks that were turned away.
        relaunched,
        /// Of those, the ones that ran beside a latency tenant's work, on some of the SMs.
        confined,
        /// Rounds of such launches.
        rounds,
        /// Times that blocks did not leave, because they waited for some that were turned away.
        watchdog,
        /// Stops in the middle of a kernel, by its own doing.
        stops_switch,
        /// Bursts of latency tenants that began while it had the token: so often the GPU left it, if it had work there.
        preempted,
        /// Tokens it took from holders that showed no life.
        taken_over,
        /// Tokens that were taken from it because it showed none.
        lost,
        /// Bursts of a latency tenant.
        bursts,
        /// Time spent in bursts.
        burst_ns,
        /// Bursts that took longer than the objective.
        slo_missed,
        /// Bursts whose end nobody saw.
        bursts_unended,
        /// Bursts that the program has marked as requests.
        marked,
        /// Times the daemon went away.
        daemon_losses,
        /// Times that the timeslice was lengthened because nothing got done with the short one.
        slices_lengthened,
        /// Controls that the driver refused.
        refusals,
        /// Allocations that would have gone beyond the limit of memory.
        memory_denials,
        /// Times that it went on after a stop.
        resumes,
        /// Times that its program ended in the ordinary way: whoever is gone without one was killed, or ended in the middle.
        farewells,
    }
    times {
        /// Of a latency tenant: how long bursts took.
        burst_times,
        /// Of a best-effort tenant: how long it waited for the token.
        wait_times,
        /// From the moment the token was passed to the moment its new holder went on.
        handover_times,
        /// From the moment a stop was known to the moment the last block had left the GPU.
        guard_times,
        /// From the moment a turn was over to the moment nothing was in flight any more.
        hold_times,
        /// How long it took to take a process off the GPU in the middle of a kernel.
        switch_times,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use model::Nanos;

    use super::*;

    fn figures(launches: u64, waits: &[u64]) -> Figures {
        let mut figures = Figures { launches, ..Figures::NONE };
        // SAFETY: a tally is made of atomics, for which zeros are values.
        let tally: Box<Tally> = unsafe { Box::new_zeroed().assume_init() };
        waits.iter().for_each(|&wait| tally.wait_times.record(Nanos(wait)));
        figures.wait_times = tally.figures().wait_times;
        figures
    }

    #[test]
    fn what_was_counted_since_and_what_was_there_before_are_all_of_it() {
        let (early, late) = (figures(3, &[5_000]), figures(10, &[5_000, 9_000]));
        let mut sum = early.clone();
        sum.add(&late.since(&early));
        assert_eq!(sum, late);
        assert_eq!(late.since(&early).wait_times.sum(), Nanos(9_000));
    }

    #[test]
    fn a_tally_that_goes_back_is_not_believed() {
        let mut seen = figures(10, &[5_000, 9_000]);
        let before = seen.clone();
        seen.rise(&figures(4, &[]));
        assert_eq!(seen, before);
        seen.rise(&figures(11, &[]));
        assert_eq!((seen.launches, seen.wait_times.count()), (11, 2));
    }
}
