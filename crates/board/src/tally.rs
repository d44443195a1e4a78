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
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters and histograms of one seat, added to by its tenant.
        #[repr(C, align(64))]
        pub struct Tally {
            $($(#[$doc])* pub $name: Count,)*
            /// Of a latency tenant: how long bursts took.
            pub burst_times: Histogram,
            /// Of a best-effort tenant: how long it waited for the token.
            pub wait_times: Histogram,
            /// From the moment the token was passed to the moment its new holder went on.
            pub handover_times: Histogram,
            /// From the moment a stop was known to the moment the last block had left the GPU.
            pub guard_times: Histogram,
        }

        /// A tally at one moment.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Figures {
            $($(#[$doc])* pub $name: u64,)*
            pub burst_times: Snapshot,
            pub wait_times: Snapshot,
            pub handover_times: Snapshot,
            pub guard_times: Snapshot,
        }

        impl Tally {
            pub fn figures(&self) -> Figures {
                Figures {
                    $($name: self.$name.get(),)*
                    burst_times: self.burst_times.snapshot(),
                    wait_times: self.wait_times.snapshot(),
                    handover_times: self.handover_times.snapshot(),
                    guard_times: self.guard_times.snapshot(),
                }
            }

            /// For a new occupant.
            pub(crate) fn clear(&self) {
                $(self.$name.0.store(0, Ordering::Relaxed);)*
                self.burst_times.clear();
                self.wait_times.clear();
                self.handover_times.clear();
                self.guard_times.clear();
            }
        }

        impl Figures {
            /// The counters by name, in the order of the layout.
            pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counts! {
    /// Pieces of work given to the driver.
    submissions,
    /// Time for which work of this seat was on the GPU, as far as it can be told.
    gpu_ns,
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
    /// Times the daemon went away.
    daemon_losses,
    /// Controls that the driver refused.
    refusals,
}
