//! How long a tenant's requests take when it is alone, and how much longer they take in company.
//!
//! Every request is counted, and those during which nobody else ran are counted once more by themselves. What the two say
//! differently is the slowdown. It is a comparison of a tenant with itself, so nobody has to know what a request is.
//!
//! Where best-effort work is always there to be run, no request is ever alone, and some have to be made so: one in each
//! stretch of requests, as long as the share allows, at a place in it that is different every time, lest it always meets the
//! same request of a client that has a rhythm. A stretch in which a request was alone anyway pays for the next one.

use model::Nanos;

use crate::kernel::mixed;
use crate::sketch::Sketch;

/// Solo figures change with the model and the machine, not with the hour.
const ALONE_MEMORY: u16 = 8_192;
const ALL_MEMORY: u16 = 2_048;
/// So many requests bear out a median, and so many a 99th percentile.
const ENOUGH: u32 = 20;
const ENOUGH_FOR_TAILS: u32 = 200;

/// How much longer requests take than they would alone, in thousandths: 1,000 is as if alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowdown {
    pub p50: u32,
    /// `None` as long as there are too few requests to speak of one in a hundred.
    pub p99: Option<u32>,
    /// How many requests bear out the figures alone, and in all.
    pub alone: u32,
    pub all: u32,
}

/// The requests of one tenant, alone and in all.
///
/// ```
/// use forecast::Solo;
/// use model::Nanos;
///
/// let mut solo = Solo::new();
/// for _ in 0..10_000 {
///     let alone = solo.wants_the_next_alone(10);
///     solo.observe(Nanos::from_micros(if alone { 1_000 } else { 1_500 }), alone);
/// }
/// let slowdown = solo.slowdown().unwrap();
/// assert_eq!(slowdown.alone, 100);
/// assert!(slowdown.p50.abs_diff(1_500) < 50);
/// assert_eq!(slowdown.p99, None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solo {
    alone: Sketch,
    all: Sketch,
    /// Requests since the beginning of the stretch, and which stretch it is.
    into_stretch: u32,
    stretch: u64,
    /// Whether a request of this stretch was alone without our doing, and of the one before.
    found: bool,
    paid: bool,
    /// Whether a request of this stretch is to be alone by our doing, and has not been seen to be.
    made: bool,
}

impl Solo {
    pub const fn new() -> Solo {
        Solo {
            alone: Sketch::remembering(ALONE_MEMORY),
            all: Sketch::remembering(ALL_MEMORY),
            into_stretch: 0,
            stretch: 0,
            found: false,
            paid: false,
            made: false,
        }
    }

    /// Whether best-effort work is to be kept away from the request that begins now. To be asked once for each request;
    /// `share` is how many of a thousand may be treated so.
    pub fn wants_the_next_alone(&mut self, share: u32) -> bool {
        if share == 0 {
            return false;
        }
        // Rounded up: rather fewer than too many.
        let length = 1_000u32.div_ceil(share);
        if self.into_stretch >= length {
            self.into_stretch = 0;
            self.stretch = self.stretch.wrapping_add(1);
            self.paid = core::mem::take(&mut self.found);
            self.made = false;
        }
        let place = ((mixed(self.stretch) >> 32) as u32).checked_rem(length);
        let here = place == Some(self.into_stretch);
        self.into_stretch = self.into_stretch.saturating_add(1);
        let wanted = here && !self.paid && !self.found;
        self.made |= wanted;
        wanted
    }

    /// A request took so long, with or without anybody else on the GPU.
    pub fn observe(&mut self, took: Nanos, alone: bool) {
        self.all.observe(took);
        if alone {
            self.alone.observe(took);
            self.found |= !core::mem::take(&mut self.made);
        }
    }

    /// What requests take alone, as far as it is known.
    pub fn alone(&self) -> &Sketch {
        &self.alone
    }

    /// What requests take.
    pub fn all(&self) -> &Sketch {
        &self.all
    }

    /// `None` as long as there are too few requests of either kind.
    pub fn slowdown(&self) -> Option<Slowdown> {
        let (alone, all) = (self.alone.count(), self.all.count());
        let ratio = |thousandths| {
            let (alone, all) = (self.alone.quantile(thousandths)?, self.all.quantile(thousandths)?);
            let ratio = u128::from(all.0).saturating_mul(1_000).checked_div(u128::from(alone.0))?;
            Some(u32::try_from(ratio).unwrap_or(u32::MAX))
        };
        if alone.min(all) < ENOUGH {
            return None;
        }
        let p99 = if alone.min(all) < ENOUGH_FOR_TAILS { None } else { ratio(990) };
        Some(Slowdown { p50: ratio(500)?, p99, alone, all })
    }
}

impl Default for Solo {
    fn default() -> Solo {
        Solo::new()
    }
}
