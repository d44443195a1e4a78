//! Spans, counted, as they are kept.
//!
//! A [`Sketch`] has a place for every bucket there is, 2.3 kilobytes of them, so that a launch can be counted without looking
//! for it. A kernel's times fill a dozen buckets. What is kept is the buckets that are not empty; to add up two of them they are
//! made sketches again, so that only `forecast` knows how counts are added and halved.

use forecast::Sketch;
use model::Nanos;

/// Counts are halved when there are so many, so that what a kernel has become outweighs what it was.
const MEMORY: u16 = 4096;
/// Words of an encoded sketch before its counts, which are four to a word.
const HEAD: usize = 2;
const IN_A_WORD: usize = 4;
const BUCKETS: usize = (Sketch::WORDS - HEAD) * IN_A_WORD;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    seen: u64,
    /// Bucket and count, in the order of buckets; no count is nought.
    buckets: Vec<(u16, u16)>,
}

impl Spans {
    /// How many spans there were in all.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// By how many the quantiles are borne out.
    pub fn count(&self) -> u32 {
        self.buckets.iter().map(|(_, count)| u32::from(*count)).sum()
    }

    /// The span that so many thousandths of the spans do not exceed; `None` when there are none.
    pub fn quantile(&self, thousandths: u32) -> Option<Nanos> {
        if self.buckets.is_empty() { None } else { self.sketch().quantile(thousandths) }
    }

    pub fn merge(&mut self, other: &Spans) {
        if self.count() + other.count() < u32::from(MEMORY) {
            self.seen = self.seen.saturating_add(other.seen);
            self.add(&other.buckets);
        } else {
            let mut sketch = self.sketch();
            sketch.merge(&other.sketch());
            *self = Spans::from(&sketch);
        }
    }

    /// Where nothing is halved, counts are simply added, as a sketch would.
    fn add(&mut self, others: &[(u16, u16)]) {
        for &(bucket, count) in others {
            match self.buckets.binary_search_by_key(&bucket, |&(bucket, _)| bucket) {
                Ok(place) => self.buckets[place].1 += count,
                Err(place) => self.buckets.insert(place, (bucket, count)),
            }
        }
    }

    /// As a sketch, to go on counting.
    pub fn sketch(&self) -> Sketch {
        let mut words = Sketch::remembering(MEMORY).encode();
        words[1] = self.seen;
        for &(bucket, count) in &self.buckets {
            let bucket = usize::from(bucket);
            words[HEAD + bucket / IN_A_WORD] |= u64::from(count) << (16 * (bucket % IN_A_WORD));
        }
        Sketch::decode(&words).expect("what is kept was checked when it was made")
    }

    pub(crate) fn buckets(&self) -> &[(u16, u16)] {
        &self.buckets
    }

    /// `None` where no sketch is like that.
    pub(crate) fn of(seen: u64, buckets: Vec<(u16, u16)>) -> Option<Spans> {
        let ordered = buckets.is_sorted_by(|a, b| a.0 < b.0);
        let there_are = buckets.iter().all(|&(bucket, count)| usize::from(bucket) < BUCKETS && count > 0);
        let spans = Spans { seen, buckets };
        let total = spans.count();
        let counted = total < u32::from(MEMORY) && u64::from(total) <= seen && (total > 0) == (seen > 0);
        (ordered && there_are && counted).then_some(spans)
    }
}

impl From<&Sketch> for Spans {
    fn from(sketch: &Sketch) -> Spans {
        // One that remembers more, or less, is halved as ours are.
        let mut ours = Sketch::remembering(MEMORY);
        ours.merge(sketch);
        let words = ours.encode();
        let count = |bucket: usize| (words[HEAD + bucket / IN_A_WORD] >> (16 * (bucket % IN_A_WORD))) as u16;
        let buckets = (0..BUCKETS).map(|bucket| (bucket as u16, count(bucket)));
        let buckets: Vec<_> = buckets.filter(|(_, count)| *count > 0).collect();
        if buckets.is_empty() { Spans::default() } else { Spans { seen: ours.seen(), buckets } }
    }
}

/// A few spans at once; who counts every launch has a [`Sketch`] for it.
impl FromIterator<Nanos> for Spans {
    fn from_iter<I: IntoIterator<Item = Nanos>>(spans: I) -> Spans {
        let mut sketch = Sketch::remembering(MEMORY);
        spans.into_iter().for_each(|span| sketch.observe(span));
        Spans::from(&sketch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spans(micros: impl Iterator<Item = u64>) -> Spans {
        micros.map(Nanos::from_micros).collect()
    }

    #[test]
    fn a_sketch_is_the_same_when_it_has_been_kept() {
        let mut sketch = Sketch::remembering(MEMORY);
        (1..=1000).for_each(|micros| sketch.observe(Nanos::from_micros(micros)));
        assert_eq!(Spans::from(&sketch).sketch(), sketch);
        assert_eq!(Spans::default().sketch(), Sketch::remembering(MEMORY));
        assert_eq!(Spans::default().quantile(500), None);
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        let mut sum = spans(1..=500);
        sum.merge(&spans(501..=1000));
        sum.merge(&Spans::default());
        assert_eq!(sum, spans(1..=1000));
    }

    #[test]
    fn counts_are_halved_when_there_are_many_and_quantiles_stay() {
        let mut sum = Spans::default();
        (0..100).for_each(|_| sum.merge(&spans(1..=1000)));
        assert_eq!(sum.seen(), 100_000);
        assert!(sum.count() < u32::from(MEMORY) && Spans::of(sum.seen, sum.buckets.clone()).is_some());
        for (thousandths, micros) in [(100, 100.0), (500, 500.0), (990, 990.0)] {
            let quantile = sum.quantile(thousandths).unwrap().as_micros_f64();
            assert!((quantile - micros).abs() <= micros * 0.06, "{thousandths}: {quantile}");
        }
    }

    #[test]
    fn a_sketch_that_remembers_otherwise_is_kept_as_ours_are() {
        for memory in [100, u16::MAX] {
            let mut sketch = Sketch::remembering(memory);
            (0..20_000).for_each(|_| sketch.observe(Nanos::from_micros(7)));
            let kept = Spans::from(&sketch);
            assert!(Spans::of(kept.seen, kept.buckets.clone()).is_some(), "{memory}");
            assert_eq!((kept.seen(), kept.quantile(500)), (20_000, sketch.quantile(500)));
        }
    }

    #[test]
    fn what_no_sketch_is_like_is_refused() {
        assert!(Spans::of(3, vec![(5, 1), (6, 2)]).is_some());
        assert_eq!(Spans::of(0, vec![]), Some(Spans::default()));
        let wrong = [
            (3, vec![(6, 2), (5, 1)]),
            (3, vec![(5, 1), (5, 2)]),
            (3, vec![(5, 0), (6, 2)]),
            (2, vec![(5, 1), (6, 2)]),
            (3, vec![]),
            (9999, vec![(5, MEMORY)]),
            (3, vec![(BUCKETS as u16, 1)]),
        ];
        for (seen, buckets) in wrong {
            assert_eq!(Spans::of(seen, buckets.clone()), None, "{buckets:?}");
        }
    }

    proptest! {
        #[test]
        fn sums_are_what_sketches_make_of_them(parts in prop::collection::vec(prop::collection::vec(0..1_u64 << 42, 0..900), 1..8)) {
            let mut sum = Spans::default();
            let mut sketch = Sketch::remembering(MEMORY);
            for part in parts {
                let part: Spans = part.into_iter().map(Nanos).collect();
                sum.merge(&part);
                sketch.merge(&part.sketch());
            }
            prop_assert_eq!(sum.sketch(), sketch);
        }
    }

    /// Buckets stand in files. If this fails, files mean something else, and the format must have another number.
    #[test]
    fn buckets_are_what_they_were() {
        let spans: Spans = [3, 1000, 1_000_000, u64::MAX].into_iter().map(Nanos).collect();
        assert_eq!(spans.buckets(), [(3, 1), (190, 1), (509, 1), (1151, 1)]);
        assert_eq!(crate::header::FORMAT, 1);
    }
}
