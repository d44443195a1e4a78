//! What is known of the future.

use crate::Nanos;

/// A moment that lies ahead, as well as it is known. Who knows nothing says that it may be any moment now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// Nine times of ten it comes later than this.
    pub early: Nanos,
    /// Half the time it comes later than this.
    pub likely: Nanos,
}

impl Forecast {
    /// Nothing is known.
    pub const ANY_MOMENT: Forecast = Forecast { early: Nanos::ZERO, likely: Nanos::ZERO };

    /// Whether anything is known.
    pub fn is_known(self) -> bool {
        self != Forecast::ANY_MOMENT
    }
}

/// How long best-effort work waits at most for a latency tenant's next request, when it has been seen that it pays: longer than servers take
/// from one request to the next if both are there, and short enough that whoever claims to need it keeps nobody away.
pub const LONGEST_LULL: Nanos = Nanos::from_micros(500);
