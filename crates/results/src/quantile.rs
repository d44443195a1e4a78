//! Quantiles by nearest rank: always a value that somebody waited for, never one between two.

use model::Nanos;

/// What never ended, where a list must be sorted.
pub const NEVER: Nanos = Nanos::MAX;

/// Quantiles over everything offered. One that falls among the requests that were never served is `None`: overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantiles {
    /// How many were offered, served or not.
    pub offered: usize,
    pub p50: Option<Nanos>,
    pub p90: Option<Nanos>,
    pub p99: Option<Nanos>,
    pub p999: Option<Nanos>,
    pub max: Option<Nanos>,
}

impl Quantiles {
    /// `None` when nothing was offered.
    pub fn of(times: impl IntoIterator<Item = Option<Nanos>>) -> Option<Quantiles> {
        let mut sorted: Vec<Nanos> = times.into_iter().map(|time| time.unwrap_or(NEVER)).collect();
        sorted.sort_unstable();
        let at = |quantile| rank(sorted.len(), quantile).map(|place| sorted[place]);
        let ended = |quantile| at(quantile).filter(|time| *time != NEVER);
        at(1.0).map(|_| Quantiles {
            offered: sorted.len(),
            p50: ended(0.5),
            p90: ended(0.9),
            p99: ended(0.99),
            p999: ended(0.999),
            max: ended(1.0),
        })
    }
}

/// The place of a quantile among `count` sorted values; `None` when there are none.
pub fn rank(count: usize, quantile: f64) -> Option<usize> {
    // 0.99 * 100 is a little more than 99 in binary, and would ask for the last of a hundred.
    let place = (quantile * count as f64 - 1e-9).ceil() as usize;
    Some(place.clamp(1, count.max(1)) - 1).filter(|_| count > 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranks_are_those_of_the_textbook() {
        assert_eq!(rank(0, 0.5), None);
        assert_eq!(rank(1, 0.999), Some(0));
        assert_eq!(rank(100, 0.99), Some(98));
        assert_eq!(rank(101, 0.99), Some(99));
        assert_eq!(rank(1000, 0.999), Some(998));
        assert_eq!(rank(4, 0.5), Some(1));
    }

    #[test]
    fn a_mean_hides_what_a_quantile_shows() {
        let times = (0..100).map(|n| Some(Nanos::from_micros(if n < 98 { 100 } else { 50_000 })));
        let quantiles = Quantiles::of(times).unwrap();
        assert_eq!(quantiles.p50, Some(Nanos::from_micros(100)));
        // The mean is 1.1 ms: neither what most wait for nor what the unlucky do.
        assert_eq!(quantiles.p99, Some(Nanos::from_millis(50)));
    }

    proptest! {
        #[test]
        fn a_quantile_is_one_of_the_values(times in prop::collection::vec(0u64..1000, 1..200), q in 0.0f64..=1.0) {
            let mut sorted = times;
            sorted.sort_unstable();
            let value = sorted[rank(sorted.len(), q).unwrap()];
            let at_most = sorted.iter().filter(|time| **time <= value).count();
            prop_assert!(at_most as f64 + 1e-6 >= q * sorted.len() as f64);
            let below = sorted.iter().filter(|time| **time < value).count();
            prop_assert!(below == 0 || (below as f64) < q * sorted.len() as f64);
        }

        #[test]
        fn what_was_never_served_is_at_the_far_end(served in 0usize..100, dropped in 0usize..100) {
            let times = std::iter::repeat_n(Some(Nanos(5)), served).chain(std::iter::repeat_n(None, dropped));
            let quantiles = Quantiles::of(times);
            prop_assert_eq!(quantiles.is_some(), served + dropped > 0);
            if let Some(quantiles) = quantiles {
                prop_assert_eq!(quantiles.offered, served + dropped);
                prop_assert_eq!(quantiles.max.is_some(), dropped == 0);
                prop_assert_eq!(quantiles.p50.is_some(), served >= dropped.max(1));
            }
        }
    }
}
