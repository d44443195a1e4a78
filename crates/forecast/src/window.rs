//! The spans of a recent time, with quantiles that forget exactly.
//!
//! A [`Sketch`](crate::Sketch) halves what it has counted and so never quite forgets: one span that was very long stays its
//! last percentile for as long as little follows. A window keeps the last spans one by one, by the bucket they fall into and
//! when they came, so that each can be taken out again: when there is no room, when it is old, or when it turns out to be
//! none of them. That costs four bytes for each, besides the counts.

use model::Nanos;

use crate::sketch::{self, BUCKETS};

/// Moments are told apart by 2²⁸ ns, about a quarter of a second, and numbered in 16 bits: for five hours.
const TICK: u32 = 28;

/// How many of the oldest spans are looked at to see whether a window begins with longer ones.
const LEADING: u16 = 8;

/// How long spans are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanMemory {
    /// Older ones are forgotten as long as `keep` are left.
    pub young: Nanos,
    pub keep: u16,
    /// Older ones are forgotten in any case. At most an hour.
    pub oldest: Nanos,
}

/// The last spans, `N` at the most. One that has seen nothing is all zeros.
///
/// ```
/// use forecast::{SpanMemory, SpanWindow};
/// use model::Nanos;
///
/// let memory = SpanMemory { young: Nanos::from_millis(1_000), keep: 2, oldest: Nanos::from_millis(60_000) };
/// let mut window = SpanWindow::<8>::new();
/// for second in 0..20 {
///     window.observe(Nanos::from_millis(1_000 * second), Nanos::from_micros(100), &memory);
/// }
/// // Those that are kept, and the newest.
/// assert_eq!(window.count(), 3);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanWindow<const N: usize> {
    ring: [WindowEntry; N],
    buckets: [u16; BUCKETS],
    /// The place of the oldest, and how many there are.
    first: u16,
    count: u16,
    /// When something was last observed.
    last: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WindowEntry {
    bucket: u16,
    tick: u16,
}

impl<const N: usize> SpanWindow<N> {
    pub const fn new() -> SpanWindow<N> {
        const { assert!(0 < N && N <= 1 << 15, "places are numbered in 16 bits") };
        SpanWindow {
            ring: [WindowEntry { bucket: 0, tick: 0 }; N],
            buckets: [0; BUCKETS],
            first: 0,
            count: 0,
            last: Nanos::ZERO,
        }
    }

    /// A span ended now. What is too old by then is forgotten.
    pub fn observe(&mut self, now: Nanos, span: Nanos, memory: &SpanMemory) {
        self.expire(now, memory);
        if usize::from(self.count) >= N {
            self.forget_oldest();
        }
        let bucket = sketch::bucket(span);
        let place = self.place(self.count);
        let Some((entry, count)) = self.ring.get_mut(place).zip(self.buckets.get_mut(bucket)) else { return };
        *entry = WindowEntry { bucket: bucket as u16, tick: tick(self.last) };
        *count = count.saturating_add(1);
        self.count = self.count.saturating_add(1);
    }

    /// Forgets what is too old.
    pub fn expire(&mut self, now: Nanos, memory: &SpanMemory) {
        // A clock that goes back makes nothing old.
        let now = now.max(self.last);
        if now.since(self.last) > memory.oldest {
            self.clear();
        }
        self.last = now;
        let (young, oldest) = (ticks(memory.young), ticks(memory.oldest));
        while let Some(entry) = self.oldest() {
            let age = tick(now).wrapping_sub(entry.tick);
            if age <= oldest && (age <= young || self.count <= memory.keep) {
                break;
            }
            self.forget_oldest();
        }
    }

    /// Forgets the oldest spans as long as more than `keep` are left and the oldest, or most of the [`LEADING`] oldest, are
    /// longer than this. A short span among long ones does not end it.
    pub fn forget_leading(&mut self, longer: Nanos, keep: u16) {
        while self.count > keep.max(LEADING) && self.begins_with_longer(longer) {
            self.forget_oldest();
        }
    }

    fn begins_with_longer(&self, longer: Nanos) -> bool {
        let entry = |behind| self.ring.get(self.place(behind));
        let is_longer = |behind| entry(behind).is_some_and(|entry| sketch::start(entry.bucket) > longer);
        is_longer(0) || (0..LEADING).filter(|&behind| is_longer(behind)).count() > usize::from(LEADING / 2)
    }

    pub fn clear(&mut self) {
        (self.buckets, self.first, self.count) = ([0; BUCKETS], 0, 0);
    }

    pub fn count(&self) -> u32 {
        u32::from(self.count)
    }

    /// The span that this share of the spans do not exceed; `None` when there are none.
    pub fn quantile(&self, permille: u32) -> Option<Nanos> {
        sketch::quantile(&self.buckets, self.count, permille)
    }

    /// The so manieth longest span; 1 is the longest. `None` when there are not as many.
    pub fn longest(&self, place: u32) -> Option<Nanos> {
        let rank = self.count().checked_sub(place)?.checked_add(1)?;
        sketch::at_rank(&self.buckets, u64::from(rank))
    }

    fn oldest(&self) -> Option<WindowEntry> {
        if self.count == 0 { None } else { self.ring.get(usize::from(self.first)).copied() }
    }

    /// Forgets the oldest span, if there is one.
    pub fn forget_oldest(&mut self) {
        let Some(entry) = self.oldest() else { return };
        if let Some(count) = self.buckets.get_mut(usize::from(entry.bucket)) {
            *count = count.saturating_sub(1);
        }
        self.first = self.place(1) as u16;
        self.count = self.count.saturating_sub(1);
    }

    /// So many places behind the oldest.
    fn place(&self, behind: u16) -> usize {
        usize::from(self.first).saturating_add(usize::from(behind)).checked_rem(N).unwrap_or(0)
    }
}

impl<const N: usize> Default for SpanWindow<N> {
    fn default() -> SpanWindow<N> {
        SpanWindow::new()
    }
}

fn tick(moment: Nanos) -> u16 {
    (moment.0 >> TICK) as u16
}

fn ticks(span: Nanos) -> u16 {
    u16::try_from(span.0 >> TICK).unwrap_or(u16::MAX)
}
