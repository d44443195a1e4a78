//! Timeslices: how long the hardware lets a context run while others wait.
//!
//! The driver gives every context 2,048 µs. A best-effort tenant asks for 1 µs: the hardware then leaves it as soon as
//! anybody else has work, in the middle of whatever it was doing. This alone makes room for a latency tenant, who need
//! not even know.
//!
//! Among latency tenants, those of the highest priority present keep the driver's slices and share as they always did.
//! A tenant `d` levels below has a slice shorter by a factor of 4 for each level, so that it is left sooner and gets a
//! smaller part of a GPU that is contended, but still makes progress: 512, 128, and then 32 µs, below which (measured on an
//! H200) nobody gains.
//!
//! Two tenants with 1 µs that have work at the same time bring each other to a standstill (measured: not one kernel is
//! finished). The token keeps that from happening, as long as everybody can be stopped. Where somebody cannot (a process
//! that was stopped with work on the GPU, or that works on several GPUs and so cannot be taken off one), the slice is
//! [`BESIDE_STRAYS`], with which both get on.
//!
//! A best-effort tenant that found no board holds no token either. Two of them with 1 µs would switch all the time and
//! bring each other to a standstill, so without a board the slice is [`WITHOUT_BOARD`]: short enough to be left ten
//! times sooner than by default, long enough to get work done.

use model::{Class, Nanos};

/// What the driver gives a context that does not ask.
pub const DEFAULT: Nanos = Nanos::from_micros(2_048);

/// The slice of a best-effort tenant: the shortest the driver takes.
pub const BEST_EFFORT: Nanos = Nanos::from_micros(1);

/// The slice of a best-effort tenant that has no board, and so no token.
pub const WITHOUT_BOARD: Nanos = Nanos::from_micros(200);

/// The slice of a best-effort tenant when another, or itself, may have work on the GPU out of turn.
pub const BESIDE_STRAYS: Nanos = Nanos::from_micros(512);

/// The shortest slice of a latency tenant, however low its priority.
pub const SHORTEST: Nanos = Nanos::from_micros(32);

/// The slice to ask for; `None`: leave the driver's default. `highest` is the highest priority among the latency
/// tenants present, the asking one included.
pub fn timeslice(class: Class, priority: u32, highest: u32) -> Option<Nanos> {
    match class {
        Class::BestEffort => Some(BEST_EFFORT),
        Class::Latency if priority >= highest => None,
        Class::Latency => {
            let halvings = (highest - priority).saturating_mul(2);
            let slice = DEFAULT.0.checked_shr(halvings).unwrap_or(0);
            Some(Nanos(slice).max(SHORTEST))
        }
    }
}
