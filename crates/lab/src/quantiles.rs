//! Quantiles of a finished set of samples, without approximation.

use model::Nanos;

/// Samples in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quantiles(Vec<Nanos>);

impl Quantiles {
    pub fn of(mut samples: Vec<Nanos>) -> Quantiles {
        samples.sort_unstable();
        Quantiles(samples)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// In ascending order.
    pub fn samples(&self) -> &[Nanos] {
        &self.0
    }

    /// The share of the samples that are no larger; `None` without samples.
    pub fn within(&self, limit: Nanos) -> Option<f64> {
        let count = self.0.partition_point(|sample| *sample <= limit);
        (!self.0.is_empty()).then(|| count as f64 / self.0.len() as f64)
    }

    /// The smallest sample that is not below a share of `q` of all samples; `None` without samples.
    pub fn at(&self, q: f64) -> Option<Nanos> {
        let rank = (q * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1).min(self.0.len().checked_sub(1)?)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_quantiles() {
        let quantiles = Quantiles::of((1..=100).rev().map(Nanos).collect());
        assert_eq!(quantiles.at(0.5), Some(Nanos(50)));
        assert_eq!(quantiles.at(0.99), Some(Nanos(99)));
        assert_eq!(quantiles.at(1.0), Some(Nanos(100)));
        assert_eq!(quantiles.at(0.0), Some(Nanos(1)));
        assert_eq!(Quantiles::default().at(0.5), None);
    }

    #[test]
    fn known_shares() {
        let quantiles = Quantiles::of((1..=100).rev().map(Nanos).collect());
        assert_eq!(quantiles.within(Nanos(99)), Some(0.99));
        assert_eq!(quantiles.within(Nanos::ZERO), Some(0.0));
        assert_eq!(quantiles.within(Nanos(1000)), Some(1.0));
        assert_eq!(Quantiles::default().within(Nanos(1)), None);
    }

    proptest! {
        #[test]
        fn enough_samples_lie_at_or_below(samples in proptest::collection::vec(0u64..1000, 1..100), q in 0.0f64..=1.0) {
            let quantiles = Quantiles::of(samples.iter().copied().map(Nanos).collect());
            let value = quantiles.at(q).unwrap();
            let below = samples.iter().filter(|sample| **sample <= value.0).count();
            prop_assert!(below as f64 >= q * samples.len() as f64);
        }
    }
}
