//! How soon somebody is off the GPU, and what becomes of who is not.
//!
//! A certificate promises the longest of the recent stops, and a quarter more. "Recent" is the last few hundred, counted in
//! two halves, of which the older one is forgotten when the newer is full: so the maximum is exact, a single long block is
//! believed for a while and not for ever, and no rate of decay has to be chosen.
//!
//! Before there are enough, the promise is what the owner assumes, and who exceeds it is unknown rather than unreliable. After
//! that every excess is a strike: the promise was made from its own conduct. A strike is forgiven after a long time of
//! good conduct. Whoever has three is to be demoted, and remains so; a bound that is broken again and again is none.

use model::Nanos;

/// Stops in each half of what is remembered.
const HALF: u16 = 256;
/// With so many a promise can be made.
const ENOUGH: u16 = 16;
/// With so many strikes nobody relies on the promise any more.
const STRIKES: u8 = 3;
/// A strike is forgiven after so many stops in time.
const FORGIVEN: u16 = 4_096;
/// Blocks of a few microseconds vary by as much as their length.
const LEAST_HEADROOM: Nanos = Nanos::from_micros(2);

/// Whether a stop was as quick as promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Kept,
    /// It took longer; the promise is longer from now on.
    Broken,
    /// It took longer, and once too often: who is so unreliable should be stopped by other means.
    Demoted,
}

/// The stop latency promised for a kernel, or for a tenant.
///
/// ```
/// use forecast::{Certificate, Kept};
/// use model::Nanos;
///
/// let mut certificate = Certificate::assuming(Nanos::from_millis(1));
/// for _ in 0..100 {
///     assert_eq!(certificate.observe(Nanos::from_micros(40)), Kept::Kept);
/// }
/// assert_eq!(certificate.promised(), Nanos::from_micros(50));
/// assert_eq!(certificate.observe(Nanos::from_micros(60)), Kept::Broken);
/// assert_eq!(certificate.promised(), Nanos::from_micros(75));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate {
    assumed: Nanos,
    newer: Nanos,
    older: Nanos,
    /// How many are in the newer half.
    count: u16,
    since_strike: u16,
    strikes: u8,
    settled: bool,
    broken: u32,
}

impl Certificate {
    /// A certificate that promises so much until it knows better.
    pub const fn assuming(assumed: Nanos) -> Certificate {
        Certificate {
            assumed,
            newer: Nanos::ZERO,
            older: Nanos::ZERO,
            count: 0,
            since_strike: 0,
            strikes: 0,
            settled: false,
            broken: 0,
        }
    }

    /// How long it takes at most, as far as is known.
    pub fn promised(&self) -> Nanos {
        let longest = self.newer.max(self.older);
        let known = longest + longest.scaled(1, 4).max(LEAST_HEADROOM);
        if self.settled { known } else { known.max(self.assumed) }
    }

    /// Whether the promise comes from what was seen, and not from an assumption.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// How many stops took longer than promised.
    pub fn broken(&self) -> u32 {
        self.broken
    }

    pub fn is_demoted(&self) -> bool {
        self.strikes >= STRIKES
    }

    /// A stop took so long.
    pub fn observe(&mut self, took: Nanos) -> Kept {
        let kept = took <= self.promised();
        let counts = self.settled;
        self.remember(took);
        if kept {
            self.forgive();
            return Kept::Kept;
        }
        self.broken = self.broken.saturating_add(1);
        self.since_strike = 0;
        if counts {
            self.strikes = self.strikes.saturating_add(1);
        }
        if self.is_demoted() { Kept::Demoted } else { Kept::Broken }
    }

    fn remember(&mut self, took: Nanos) {
        self.newer = self.newer.max(took);
        self.count = self.count.saturating_add(1);
        self.settled |= self.count >= ENOUGH;
        if self.count >= HALF {
            self.older = core::mem::replace(&mut self.newer, Nanos::ZERO);
            self.count = 0;
        }
    }

    fn forgive(&mut self) {
        self.since_strike = self.since_strike.saturating_add(1);
        if self.since_strike >= FORGIVEN && !self.is_demoted() {
            self.strikes = self.strikes.saturating_sub(1);
            self.since_strike = 0;
        }
    }
}
