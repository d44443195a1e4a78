//! How long a tenant's requests take when it is alone, and how much longer they take beside others.
//!
//! Every request is counted, and those during which nobody else ran are counted once more by themselves. The difference
//! between the two is the slowdown. It is a comparison of a tenant with itself, so nobody has to know what a request is.
//!
//! **Which requests count as alone.** Those during which nobody else was on the GPU, and that were no *warm-up*: while a module
//! is loaded, a kernel used for the first time or memory allocated, a request takes a hundred times as long, once. Such a
//! request is left out by its cause. A program that allocates in its requests as a habit is no longer warming up, and they
//! count. Not every cause is seen, and a program may try itself before it serves, so the first requests are also left out by
//! what they are: as long as the oldest in the window are longer than [`FAR`] times the median. And because others only ever make a request longer, no figure alone is
//! higher than that of all requests.
//!
//! **How many.** A 99th percentile of 100 requests is the second longest of them, so that one by accident does not decide it;
//! before there are [`NEEDED`], nothing is said. It becomes better up to [`PLENTY`]. There are many more requests in all, and
//! they have the same tail, and what others add to it. So what is said is theirs, scaled down to alone, as far as the
//! requests alone do not contradict.
//!
//! **How they are forgotten.** Requests of more than half a minute ago are dropped as long as [`KEPT`] are left, those of five
//! minutes ago in any case. When the tenant's requests change, all of them are dropped at once: many in a row that
//! are shorter than alone, or many in a row that were alone and longer.
//!
//! **Where best-effort work is always there to be run**, no request is ever alone, and some have to be made so. Until
//! [`NEEDED`] were seen those are as many as it takes to see them within five seconds, and up to [`PLENTY`] one in five: some
//! seconds that cost best-effort work something, once. From then on it is one in each stretch of requests, as long as the share allows, at a place in it that is
//! different every time, lest it always meets the same request of a client that has a rhythm. A stretch in which a
//! request was alone anyway pays for the next one. Where requests are far apart, or to be alone hardly ever works out, it is
//! one in four from the beginning.

use model::Nanos;

use crate::kernel::mixed;
use crate::window::{SpanMemory, SpanWindow};

/// So many requests alone bear out a 99th percentile.
pub const NEEDED: u32 = 100;
/// So many bear it out well, those included that no longer count.
const PLENTY: u32 = 600;
/// So many of the first requests stop counting at most, one for each that follows.
const BURN_IN: u16 = 100;
/// So many are kept however old they are, up to five minutes.
const KEPT: u16 = 600;
const MEMORY: SpanMemory =
    SpanMemory { young: Nanos::from_millis(30_000), keep: KEPT, oldest: Nanos::from_millis(300_000) };
/// How many of a thousand requests are made alone once there are enough and until there are plenty, and while there is doubt.
const SOMETIMES: u32 = 200;
const OFTEN: u32 = 250;
/// As many of the first requests are made alone as it takes to have enough within this time.
const LEARN_WITHIN: Nanos = Nanos::from_millis(5_000);
/// Where requests are further apart than this, on average, that is too long, and would cost best-effort work too much.
const EAGER: Nanos = Nanos::from_millis(60);
/// An average over about so many requests; a longer pause counts as one of this length.
const PACE_OVER: u32 = 16;
const LONGEST_PACE: Nanos = Nanos::from_millis(1_000);
/// So many tries to have a request alone are made before it is asked how many came to something; after that, so many for each that did.
const TRIES: u32 = 128;
const TRIES_FOR_EACH: u32 = 8;
/// The first requests are warm-up if they take so many times the median.
const FAR: u32 = 2;
/// The median is looked for once in this many requests, and there is none before.
const LOOK_EVERY: u32 = 16;
/// A request is shorter, or longer, than alone if it takes less than 80%, or more than 125%, of the median alone.
const SHORTER: u32 = 80;
const LONGER: u32 = 125;
/// So many shorter ones in a row are other requests than those that were learned; of those alone, so many longer ones.
const CHANGED: u32 = 32;
const CHANGED_ALONE: u32 = 16;
/// After a doubt that came to nothing, so many requests are not doubted.
const CALM: u32 = 2_048;

/// One request, as it was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sighting {
    pub took: Nanos,
    /// Nobody else was on the GPU.
    pub alone: bool,
    /// Code was loaded, a kernel used for the first time or memory allocated meanwhile.
    pub warm_up: bool,
}

/// What requests take alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoloProfile {
    pub p50: Nanos,
    pub p90: Nanos,
    pub p99: Nanos,
}

/// How much longer requests take than they would alone, in permille: 1,000 is as if alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowdown {
    pub p50: u32,
    pub p99: u32,
}

/// The requests of one tenant, alone and in all. One that has seen nothing is all zeros.
///
/// ```
/// use forecast::{NEEDED, Sighting, Solo};
/// use model::Nanos;
///
/// let mut solo = Solo::new();
/// for request in 0..10_000u32 {
///     assert_eq!(solo.profile().is_some(), solo.seen_alone() >= NEEDED);
///     let alone = solo.wants_the_next_alone(10);
///     let took = Nanos::from_micros(if alone { 1_000 } else { 1_500 });
///     let now = Nanos::from_millis(3 * u64::from(request));
///     solo.observe(now, Sighting { took, alone, warm_up: false });
/// }
/// assert!(solo.slowdown().unwrap().p50.abs_diff(1_500) < 50);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solo {
    alone: SpanWindow<1_024>,
    all: SpanWindow<2_048>,
    /// The median of those alone, as of the last look; zero: not known. And how many there were since.
    median: Nanos,
    since_look: u32,
    /// The same of all requests.
    median_of_all: Nanos,
    since_look_at_all: u32,
    /// How many of the first requests no longer count, of those alone and of all.
    left_out: u16,
    left_out_of_all: u16,
    /// Whether there were plenty since it was last begun to learn, and how often one was to be alone until then.
    settled: bool,
    tries: u32,
    /// When the last request ended, and how long it is from one to the next.
    last: Nanos,
    pace: Nanos,
    warm_ups: WarmUps,
    change: ChangeWatch,
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
            alone: SpanWindow::new(),
            all: SpanWindow::new(),
            median: Nanos::ZERO,
            since_look: 0,
            median_of_all: Nanos::ZERO,
            since_look_at_all: 0,
            left_out: 0,
            left_out_of_all: 0,
            settled: false,
            tries: 0,
            last: Nanos::ZERO,
            pace: Nanos::ZERO,
            warm_ups: WarmUps { in_row: 0, into_block: 0, here: false, blocks: 0 },
            change: ChangeWatch { shorter: 0, longer: 0, longer_alone: 0, calm: 0, doubt: false },
            into_stretch: 0,
            stretch: 0,
            found: false,
            paid: false,
            made: false,
        }
    }

    /// Whether best-effort work is to be kept away from the request that begins now. To be asked once for each request;
    /// `share` is how many of a thousand may be treated so once it is known what requests take alone. 0: none ever.
    pub fn wants_the_next_alone(&mut self, share: u32) -> bool {
        if share == 0 {
            return false;
        }
        let wanted = self.is_chosen(share.max(self.share_to_learn()));
        self.tries = self.tries.saturating_add(u32::from(wanted));
        wanted
    }

    /// How many of a thousand requests are to be alone for the sake of learning.
    fn share_to_learn(&self) -> u32 {
        let alone = self.alone.count();
        let hopeless = self.tries > alone.saturating_mul(TRIES_FOR_EACH).saturating_add(TRIES);
        match () {
            () if self.change.doubt => OFTEN,
            () if self.settled => 0,
            () if alone >= NEEDED => SOMETIMES,
            () if hopeless || self.pace > EAGER => OFTEN,
            () => {
                let needed = u64::from(NEEDED).saturating_mul(self.pace.0).saturating_mul(1_000);
                let share = needed.checked_div(LEARN_WITHIN.0).unwrap_or(1_000).min(1_000);
                // More than every second one is every one.
                let share = if share >= 500 { 1_000 } else { share };
                u32::try_from(share).unwrap_or(1_000).max(SOMETIMES)
            }
        }
    }

    /// Whether the next request of a stretch is the one.
    fn is_chosen(&mut self, share: u32) -> bool {
        // Rounded up: rather fewer than too many.
        let length = 1_000u32.div_ceil(share.max(1));
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

    /// Whether it is still being learned what requests take alone: then it is worth waiting longer for one.
    pub fn is_learning(&self) -> bool {
        !self.settled || self.change.doubt
    }

    /// A request has ended.
    pub fn observe(&mut self, now: Nanos, sighting: Sighting) {
        let Sighting { took, alone, warm_up } = sighting;
        if self.last > Nanos::ZERO {
            let (old, new) = (self.pace, now.since(self.last).min(LONGEST_PACE));
            self.pace = old - old.scaled(1, PACE_OVER) + new.scaled(1, PACE_OVER);
        }
        self.last = now;
        let ordinary = self.warm_ups.observe(warm_up);
        self.all.observe(now, took, &MEMORY);
        forget_warm_up(&mut self.all, &mut self.median_of_all, &mut self.since_look_at_all);
        leave_out_the_first(&mut self.all, &mut self.left_out_of_all);
        if alone && ordinary {
            self.alone.observe(now, took, &MEMORY);
            forget_warm_up(&mut self.alone, &mut self.median, &mut self.since_look);
            leave_out_the_first(&mut self.alone, &mut self.left_out);
        } else {
            self.alone.expire(now, &MEMORY);
        }
        if alone {
            self.found |= !core::mem::take(&mut self.made);
        }
        let count = self.alone.count();
        if count < NEEDED {
            if core::mem::take(&mut self.settled) {
                // It is begun to learn again.
                (self.tries, self.left_out, self.left_out_of_all) = (0, 0, 0);
            }
        } else {
            self.settled |= count.saturating_add(self.left_out.into()) >= PLENTY;
            if ordinary && self.change.observe(took, self.median, alone) {
                self.learn_anew();
            }
        }
    }

    /// The requests are others: what was learned of those before says nothing about them.
    fn learn_anew(&mut self) {
        self.alone.clear();
        self.all.clear();
        (self.median, self.since_look) = (Nanos::ZERO, 0);
        (self.median_of_all, self.since_look_at_all) = (Nanos::ZERO, 0);
        (self.left_out, self.left_out_of_all) = (0, 0);
        (self.settled, self.tries) = (false, 0);
        self.change = ChangeWatch::default();
    }

    /// How many requests alone there are to go by, of [`NEEDED`].
    pub fn seen_alone(&self) -> u32 {
        self.alone.count()
    }

    /// What requests take alone; `None` as long as too few were seen.
    pub fn profile(&self) -> Option<SoloProfile> {
        if self.alone.count() < NEEDED {
            return None;
        }
        let at = |permille| Some(self.alone.quantile(permille)?.min(self.all.quantile(permille)?));
        let (p50, p90) = (at(500)?, at(900)?);
        Some(SoloProfile { p50, p90, p99: self.tail(p90)?.max(p90) })
    }

    /// The 99th percentile alone: that of all requests as far as it is theirs, within what those alone leave open.
    fn tail(&self, p90: Nanos) -> Option<Nanos> {
        let (p90_of_all, p99_of_all) = (self.all.quantile(900)?, self.all.quantile(990)?);
        // Of n requests n/100 are longer, give or take the root of that.
        let longer = self.alone.count().div_ceil(100);
        let unsure = longer.isqrt();
        let low = self.alone.longest(longer.saturating_add(unsure).saturating_add(1))?;
        let high = self.alone.longest(longer.saturating_sub(unsure).saturating_add(1))?;
        let scaled = u128::from(p99_of_all.0).saturating_mul(u128::from(p90.0));
        let scaled = scaled.checked_div(u128::from(p90_of_all.0)).unwrap_or(0);
        let scaled = Nanos(u64::try_from(scaled).unwrap_or(u64::MAX));
        Some(scaled.clamp(low, high.max(low)).min(p99_of_all))
    }

    /// What requests took lately.
    pub fn all(&self) -> &SpanWindow<2_048> {
        &self.all
    }

    /// `None` as long as it is not known what they take alone.
    pub fn slowdown(&self) -> Option<Slowdown> {
        let profile = self.profile()?;
        let ratio = |permille, alone: Nanos| {
            let all = self.all.quantile(permille)?;
            let ratio = u128::from(all.0).saturating_mul(1_000).checked_div(u128::from(alone.0))?;
            Some(u32::try_from(ratio).unwrap_or(u32::MAX))
        };
        Some(Slowdown { p50: ratio(500, profile.p50)?, p99: ratio(990, profile.p99)? })
    }
}

/// Drops the first requests of a window that has just seen one more, if they are warm-up by the window's own median.
fn forget_warm_up<const N: usize>(window: &mut SpanWindow<N>, median: &mut Nanos, since_look: &mut u32) {
    *since_look = since_look.saturating_add(1);
    if *since_look >= LOOK_EVERY {
        *since_look = 0;
        *median = window.quantile(500).unwrap_or(Nanos::ZERO);
    }
    if *median > Nanos::ZERO {
        window.forget_leading(median.scaled(FAR, 1), LOOK_EVERY as u16);
    }
}

/// Drops one of the first requests of a window that has just seen one more, until [`BURN_IN`] are gone: so of those that were
/// seen the older half does not count, as long as enough are left.
fn leave_out_the_first<const N: usize>(window: &mut SpanWindow<N>, left_out: &mut u16) {
    if *left_out < BURN_IN && window.count() > NEEDED.max(u32::from(*left_out)) {
        window.forget_oldest();
        *left_out = left_out.saturating_add(1);
    }
}

impl Default for Solo {
    fn default() -> Solo {
        Solo::new()
    }
}

/// Tells warm-up from habit: who still loads or allocates after some hundred requests, time and again, does so for good.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct WarmUps {
    /// Requests in a row.
    in_row: u32,
    /// Requests into this block, whether there was one in it, and in which of the eight before.
    into_block: u32,
    here: bool,
    blocks: u8,
}

impl WarmUps {
    const BLOCK: u32 = 64;
    const HABIT: u32 = 6;

    /// Whether the request is like those that are to come.
    fn observe(&mut self, warm_up: bool) -> bool {
        let habit = self.in_row >= WarmUps::BLOCK || self.blocks.count_ones() >= WarmUps::HABIT;
        self.in_row = if warm_up { self.in_row.saturating_add(1) } else { 0 };
        self.here |= warm_up;
        self.into_block = self.into_block.saturating_add(1);
        if self.into_block >= WarmUps::BLOCK {
            self.blocks = (self.blocks << 1) | u8::from(core::mem::take(&mut self.here));
            self.into_block = 0;
        }
        !warm_up || habit
    }
}

/// Sees that a tenant's requests are others than they were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ChangeWatch {
    /// Requests in a row that were shorter than alone, and longer, and longer though they were alone.
    shorter: u32,
    longer: u32,
    longer_alone: u32,
    calm: u32,
    /// Many were longer. It may be for those beside them, or they are others: some have to be seen alone.
    doubt: bool,
}

impl ChangeWatch {
    /// Whether the requests are others.
    fn observe(&mut self, took: Nanos, median: Nanos, alone: bool) -> bool {
        let count = |before: u32, more: bool| if more { before.saturating_add(1) } else { 0 };
        let (shorter, longer) = (took < median.scaled(SHORTER, 100), took > median.scaled(LONGER, 100));
        self.shorter = count(self.shorter, shorter);
        self.longer = count(self.longer, longer);
        self.calm = self.calm.saturating_sub(1);
        if alone {
            self.longer_alone = count(self.longer_alone, longer);
            if core::mem::take(&mut self.doubt) {
                self.doubt = longer;
                self.calm = if longer { 0 } else { CALM };
            }
        }
        self.doubt |= self.longer >= CHANGED && self.calm == 0;
        self.shorter >= CHANGED || self.longer_alone >= CHANGED_ALONE
    }
}
