//! Streaming quantiles, with counts.
//!
//! Spans are counted in buckets, 32 to each power of two, from a nanosecond to eighteen minutes; what is longer is in the
//! last. So a quantile is known within a thirty-second part of itself, and whatever happens takes 2.3 kilobytes.
//!
//! A sketch follows change by halving: when it has as many observations as it was told to remember, all counts are halved,
//! and what happens from then on weighs twice as much as what was before. A count of one has no half; the remainder is carried
//! to the next bucket, so that rare long spans are thinned out but not wiped away, and every quantile stays where it was
//! within one observation.

use model::Nanos;

use crate::scale;
use crate::{Error, error};

/// Each power of two is cut into 2⁵ steps.
const CUT: u32 = 5;
/// The last bucket ends at 2⁴⁰ ns.
pub(crate) const BUCKETS: usize = (40 - CUT as usize + 1) << CUT;
/// Four counts in a word.
const PACKED: usize = BUCKETS / 4;
/// What the words of a sketch begin with: a name, and a version.
const KIND: u64 = u64::from_le_bytes(*b"skch\x01\0\0\0");

/// Spans, counted.
///
/// ```
/// use forecast::Sketch;
/// use model::Nanos;
///
/// let mut sketch = Sketch::remembering(4_096);
/// for micros in 1..=1_000 {
///     sketch.observe(Nanos::from_micros(micros));
/// }
/// let median = sketch.quantile(500).unwrap();
/// assert!(median.0.abs_diff(500_000) <= 500_000 / 32);
/// assert_eq!(Sketch::decode(&sketch.encode()), Ok(sketch));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    /// How many observations each bucket has; they add up to `count`, so none can overflow.
    buckets: [u16; BUCKETS],
    count: u16,
    memory: u16,
    seen: u64,
}

impl Sketch {
    /// How many words a sketch is as plain words.
    pub const WORDS: usize = PACKED + 2;

    /// An empty sketch, which halves its counts when it has so many observations.
    pub const fn remembering(observations: u16) -> Sketch {
        let memory = if observations < 2 { 2 } else { observations };
        Sketch { buckets: [0; BUCKETS], count: 0, memory, seen: 0 }
    }

    pub fn observe(&mut self, span: Nanos) {
        if let Some(bucket) = self.buckets.get_mut(bucket(span)) {
            *bucket = bucket.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.seen = self.seen.saturating_add(1);
        if self.count >= self.memory {
            self.fold(None);
        }
    }

    /// Takes in what another sketch has counted, as if it had been observed here, in no particular order.
    pub fn merge(&mut self, other: &Sketch) {
        self.seen = self.seen.saturating_add(other.seen);
        self.fold(Some(other));
    }

    /// By how many observations the quantiles are borne out now.
    pub fn count(&self) -> u32 {
        u32::from(self.count)
    }

    /// How many observations there have been in all.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The span that so many thousandths of the spans do not exceed; `None` when there are none.
    pub fn quantile(&self, thousandths: u32) -> Option<Nanos> {
        quantile(&self.buckets, self.count, thousandths)
    }

    /// The sketch as plain words, for a file or for shared memory.
    pub fn encode(&self) -> [u64; Sketch::WORDS] {
        let mut words = [0; Sketch::WORDS];
        let (head, packed) = words.split_at_mut(2);
        head.copy_from_slice(&[KIND | (u64::from(self.memory) << 48), self.seen]);
        for (word, four) in packed.iter_mut().zip(self.buckets.chunks(4)) {
            *word = four.iter().rev().fold(0, |word, &count| (word << 16) | u64::from(count));
        }
        words
    }

    /// The sketch that these words are. Whatever they are, the answer is a sketch that keeps its rules, or an error.
    pub fn decode(words: &[u64]) -> Result<Sketch, Error> {
        let length = error::Error::Length { expected: Sketch::WORDS, found: words.len() };
        let words: &[u64; Sketch::WORDS] = words.try_into().map_err(|_| length)?;
        let [head, seen, packed @ ..] = words;
        let memory = (head >> 48) as u16;
        if head & 0x0000_FFFF_FFFF_FFFF != KIND || memory < 2 {
            return Err(Error::Kind);
        }
        let mut sketch = Sketch { seen: *seen, ..Sketch::remembering(memory) };
        let mut count = 0u64;
        for (four, &word) in sketch.buckets.chunks_mut(4).zip(packed) {
            for (place, bucket) in (0u32..).zip(four) {
                *bucket = (word >> place.saturating_mul(16)) as u16;
                count = count.saturating_add(u64::from(*bucket));
            }
        }
        if count >= u64::from(memory) || count > *seen {
            return Err(Error::Counts);
        }
        sketch.count = count as u16;
        Ok(sketch)
    }

    /// Adds the other's counts, if there is one, and halves all of them as often as it takes to stay below the memory.
    fn fold(&mut self, other: Option<&Sketch>) {
        let total = self.count().saturating_add(other.map_or(0, Sketch::count));
        let mut halvings = 0;
        while total >> halvings >= u32::from(self.memory) {
            halvings = u32::saturating_add(halvings, 1);
        }
        let remainder = (1u32 << halvings).saturating_sub(1);
        let none = [0; BUCKETS];
        let others = other.map_or(&none, |other| &other.buckets);
        let mut carried = 0u32;
        for (bucket, &theirs) in self.buckets.iter_mut().zip(others) {
            let both = carried.saturating_add(u32::from(*bucket)).saturating_add(u32::from(theirs));
            *bucket = (both >> halvings) as u16;
            carried = both & remainder;
        }
        self.count = (total >> halvings) as u16;
    }
}

/// The span that this share of the spans in these buckets do not exceed.
pub(crate) fn quantile(buckets: &[u16; BUCKETS], count: u16, permille: u32) -> Option<Nanos> {
    let rank = u64::from(count).saturating_mul(u64::from(permille.min(1_000))).div_ceil(1_000).max(1);
    at_rank(buckets, rank)
}

/// The span that stands at that place when they are put in order, from 1.
pub(crate) fn at_rank(buckets: &[u16; BUCKETS], rank: u64) -> Option<Nanos> {
    let mut before = 0u64;
    for (step, &here) in (0u32..).zip(buckets) {
        let here = u64::from(here);
        let upto = before.saturating_add(here);
        if upto >= rank {
            return Some(within(step, rank.saturating_sub(before), here));
        }
        before = upto;
    }
    None
}

/// The shortest span in a bucket.
pub(crate) fn start(bucket: u16) -> Nanos {
    Nanos(scale::start(u32::from(bucket), CUT))
}

pub(crate) fn bucket(span: Nanos) -> usize {
    (scale::step(span.0, CUT) as usize).min(BUCKETS.saturating_sub(1))
}

/// The place of the `rank`th of `count` spans in one bucket, as if they lay evenly in it.
fn within(step: u32, rank: u64, count: u64) -> Nanos {
    let odd = rank.saturating_mul(2).saturating_sub(1);
    let above = scale::width(step, CUT).saturating_mul(odd).checked_div(count.saturating_mul(2));
    Nanos(scale::start(step, CUT).saturating_add(above.unwrap_or(0)))
}
