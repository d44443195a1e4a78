//! How often something took how long.
//!
//! Buckets are log-linear: each power of two is cut into sixteen, so a time is known within a sixteenth of itself, from a
//! microsecond to a quarter of an hour, in four kilobytes that any number of threads add to without a lock. What is shorter
//! is in the first bucket and what is longer in the last.

use std::sync::atomic::{AtomicU64, Ordering};

use model::Nanos;

/// Each power of two is cut into 2⁴ parts.
const CUT: u32 = 4;
const PARTS: usize = 1 << CUT;
/// The first bucket ends at 2¹⁰ ns, about a microsecond.
const FIRST: u32 = 10;
/// The last bucket begins at 2⁴⁰ ns, about 1,100 seconds.
const LAST: u32 = 40;

/// One below, sixteen for each power of two, one above.
pub const BUCKETS: usize = (LAST - FIRST) as usize * PARTS + 2;

/// Times, counted in shared memory.
#[repr(C)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    /// All times together, in nanoseconds.
    sum: AtomicU64,
}

/// A histogram at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    buckets: [u64; BUCKETS],
    sum: u64,
}

impl Histogram {
    #[inline]
    pub fn record(&self, time: Nanos) {
        self.buckets[bucket(time)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(time.0, Ordering::Relaxed);
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            buckets: std::array::from_fn(|place| self.buckets[place].load(Ordering::Relaxed)),
            sum: self.sum.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn clear(&self) {
        self.buckets.iter().for_each(|bucket| bucket.store(0, Ordering::Relaxed));
        self.sum.store(0, Ordering::Relaxed);
    }
}

impl Snapshot {
    pub const EMPTY: Snapshot = Snapshot { buckets: [0; BUCKETS], sum: 0 };

    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, &bucket| sum.saturating_add(bucket))
    }

    /// All times together: exact, whatever the buckets are.
    pub fn sum(&self) -> Nanos {
        Nanos(self.sum)
    }

    /// The time that so many of the times do not exceed: the end of the bucket in which it lies, so it is never said to
    /// be better than it was. `None` when there is nothing to ask about. What is above the last bucket is said to be at
    /// its beginning: there is no end to name.
    pub fn quantile(&self, part: f64) -> Option<Nanos> {
        let count = self.count();
        if count == 0 || part.is_nan() {
            return None;
        }
        let wanted = ((part.clamp(0.0, 1.0) * count as f64).ceil() as u64).clamp(1, count);
        let mut seen = 0u64;
        let place = self.buckets.iter().position(|&bucket| {
            seen = seen.saturating_add(bucket);
            seen >= wanted
        })?;
        Some(end(place))
    }

    /// Both together: for several seats of one tenant.
    pub fn add(&mut self, other: &Snapshot) {
        self.combine(other, u64::saturating_add);
    }

    pub(crate) fn combine(&mut self, other: &Snapshot, with: impl Fn(u64, u64) -> u64) {
        for (own, other) in self.buckets.iter_mut().zip(other.buckets) {
            *own = with(*own, other);
        }
        self.sum = with(self.sum, other.sum);
    }

    /// The buckets that are not empty: up to which time, how many.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let all = self.buckets.iter().enumerate();
        all.filter(|(_, count)| **count != 0).map(|(place, &count)| (end(place), count))
    }
}

fn bucket(time: Nanos) -> usize {
    let power = time.0.checked_ilog2().unwrap_or(0);
    match power {
        ..FIRST => 0,
        LAST.. => BUCKETS - 1,
        _ => {
            let part = (time.0 >> (power - CUT)) as usize % PARTS;
            (power - FIRST) as usize * PARTS + part + 1
        }
    }
}

/// The first time that no longer belongs to a bucket.
fn end(place: usize) -> Nanos {
    let place = place.min(BUCKETS - 2);
    let power = FIRST + (place / PARTS) as u32;
    Nanos((1 << power) + ((place % PARTS) as u64) * (1 << (power - CUT)))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(times: &[u64]) -> Snapshot {
        let histogram = Histogram { buckets: [const { AtomicU64::new(0) }; BUCKETS], sum: AtomicU64::new(0) };
        times.iter().for_each(|&time| histogram.record(Nanos(time)));
        histogram.snapshot()
    }

    proptest! {
        #[test]
        fn a_quantile_is_the_time_or_up_to_a_sixteenth_more(
            mut times in proptest::collection::vec(1_024u64..1 << 40, 1..200), part in 0.0f64..=1.0,
        ) {
            let said = of(&times).quantile(part).unwrap().0 as f64;
            times.sort_unstable();
            let place = ((part * times.len() as f64).ceil() as usize).clamp(1, times.len()) - 1;
            let truth = times[place] as f64;
            prop_assert!(truth < said && said <= truth * 1.0625 + 1.0, "{truth} as {said}");
        }

        #[test]
        fn every_time_is_below_the_end_of_its_bucket(time in 0u64..1 << 40) {
            let place = bucket(Nanos(time));
            prop_assert!(Nanos(time) < end(place));
            prop_assert!(place == 0 || Nanos(time) >= end(place - 1));
        }
    }

    #[test]
    fn the_extremes_have_their_buckets() {
        let times = of(&[0, 1, 1_023, u64::MAX]);
        assert_eq!(times.buckets().collect::<Vec<_>>(), [(Nanos(1_024), 3), (Nanos(1 << 40), 1)]);
        assert_eq!(times.quantile(1.0), Some(Nanos(1 << 40)));
        assert_eq!((times.count(), Snapshot::EMPTY.quantile(0.5), times.quantile(f64::NAN)), (4, None, None));
    }

    #[test]
    fn two_are_added_up() {
        let mut both = of(&[5_000]);
        both.add(&of(&[5_000, 9_000]));
        assert_eq!(both, of(&[5_000, 9_000, 5_000]));
        assert_eq!(both.sum(), Nanos(19_000));
    }
}
