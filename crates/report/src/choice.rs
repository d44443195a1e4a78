//! Which of several ways to run ebb is the better one for a scenario.
//!
//! Requests come first, as they do in what is measured. Ahead are the ways under which they run as if alone: no more than one point of SLO attainment is
//! lost against alone, and p99 is at most a twentieth more. Among these the better one gives best-effort work more of its ideal. Where none
//! is like that, those that lose no more than the point come first, and the better one has less p99 over alone. Of several
//! latency tenants the one that fares worst counts. What is equal in this is decided by the other figure, and then by the order of modes.
//!
//! The choice is made by the very runs whose figures are shown afterwards. So it has luck on its side, the more the
//! closer the ways are and the more of them there are.

use std::cmp::Ordering;

use results::figures::ModeFigures;

use crate::summary::Summary;
use crate::view::{Scenario, overhead};

/// How much of the SLO attainment alone may be lost, with room for what sums of shares are off by.
const KEPT: f64 = 0.01 + 1e-9;
/// Up to so many times the p99 alone, requests are as if alone.
const AS_IF_ALONE: f64 = 1.05 + 1e-9;

/// What a choice goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Standing {
    over_alone: f64,
    lost: Option<f64>,
    of_ideal: Option<f64>,
}

impl Standing {
    /// `None` where p99 over alone is not known: there is nothing to choose by.
    fn of(scenario: &Scenario<'_>, mode: &ModeFigures) -> Option<Standing> {
        Some(Standing {
            over_alone: overhead(mode)?.value,
            lost: Summary::of([scenario], &mode.mode).lost.map(|lost| lost.worst),
            of_ideal: mode.together.of_ideal.map(|estimate| estimate.value),
        })
    }

    fn keeps(&self) -> bool {
        self.lost.is_some_and(|lost| lost <= KEPT)
    }

    fn is_as_if_alone(&self) -> bool {
        self.keeps() && self.over_alone <= AS_IF_ALONE
    }

    /// The better one is less.
    fn order(&self, other: &Standing) -> Ordering {
        let gain = |standing: &Standing| standing.of_ideal.unwrap_or(f64::NEG_INFINITY);
        let by_gain = gain(other).total_cmp(&gain(self));
        let by_cost = self.over_alone.total_cmp(&other.over_alone);
        if self.is_as_if_alone() && other.is_as_if_alone() {
            return by_gain.then(by_cost);
        }
        let rank = |standing: &Standing| (standing.is_as_if_alone(), standing.keeps());
        rank(other).cmp(&rank(self)).then(by_cost).then(by_gain)
    }
}

/// Modes of a scenario from the best to the worst, without those that cannot be compared.
pub fn ranked<'a>(
    scenario: &Scenario<'a>,
    modes: impl IntoIterator<Item = &'a ModeFigures>,
) -> Vec<&'a ModeFigures> {
    let with = |mode: &'a ModeFigures| Some((Standing::of(scenario, mode)?, mode));
    let mut modes: Vec<_> = modes.into_iter().filter_map(with).collect();
    modes.sort_by(|(one, _), (other, _)| one.order(other));
    modes.into_iter().map(|(_, mode)| mode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn standing(over_alone: f64, lost: f64, of_ideal: f64) -> Standing {
        Standing { over_alone, lost: Some(lost), of_ideal: Some(of_ideal) }
    }

    /// Whether one is better, with the order the same from both sides.
    fn beats(one: Standing, other: Standing) -> bool {
        assert_eq!(one.order(&other), other.order(&one).reverse());
        one.order(&other).is_lt()
    }

    #[test]
    fn where_requests_are_as_if_alone_the_one_that_gives_more() {
        assert!(beats(standing(1.04, 0.009, 0.9), standing(1.0, 0.0, 0.8)));
        // Just a point is kept, however it was subtracted.
        assert!(beats(standing(1.05, 1.0 - 0.99, 0.9), standing(1.0, 0.0, 0.8)));
        assert!(beats(standing(1.0, 0.0, 0.8), standing(1.04, 0.0, 0.8)));
        assert!(beats(standing(1.04, 0.0, 0.1), standing(1.06, 0.0, 0.9)), "they are not");
    }

    #[test]
    fn one_that_keeps_the_slo_before_one_that_does_not() {
        assert!(beats(standing(1.3, 0.0, 0.1), standing(1.1, 0.011, 0.9)));
        assert!(beats(standing(1.3, 0.0, 0.1), Standing { lost: None, ..standing(1.1, 0.0, 0.9) }));
    }

    #[test]
    fn where_none_is_the_one_that_costs_less() {
        assert!(beats(standing(1.1, 0.0, 0.3), standing(1.2, 0.0, 0.9)));
        assert!(beats(standing(1.5, 0.05, 0.3), standing(1.6, 0.02, 0.9)));
        assert!(beats(standing(1.5, 0.05, 0.3), standing(f64::INFINITY, 0.5, 0.9)));
        assert!(beats(standing(1.5, 0.05, 0.4), Standing { of_ideal: None, ..standing(1.5, 0.05, 0.0) }));
    }
}
