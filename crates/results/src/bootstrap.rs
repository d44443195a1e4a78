//! How sure a figure is.
//!
//! A figure is computed again some hundred times from data drawn, with replacement, out of the measured data; the middle
//! 95% of what comes out is its interval. Repetitions are drawn first, since two runs differ by more than chance among
//! requests, then the requests in each. Requests are drawn in stretches of consecutive ones: a late request makes the
//! next one late, and drawing them one by one would deny it and make intervals too narrow.
//!
//! Draws depend on the round, the tenant and the repetition, and not on the mode. Since the n-th request is the same in
//! every mode, a ratio of two modes is one of paired requests, and what they have in common cancels out.

use model::Nanos;

use crate::draw::Draw;
use crate::quantile::{NEVER, rank};

/// How often a figure is computed again.
pub const ROUNDS: usize = 300;
/// Which part of the rounds an interval holds.
pub const CONFIDENCE: f64 = 0.95;

/// A figure and its interval. An end may be infinite, where some rounds met overload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// The interval always holds the figure itself. Rounds without an answer (NaN) are left out.
    pub fn new(value: f64, rounds: &[f64]) -> Estimate {
        Estimate::at(CONFIDENCE, value, rounds)
    }

    pub fn at(confidence: f64, value: f64, rounds: &[f64]) -> Estimate {
        let mut sorted: Vec<f64> = rounds.iter().copied().filter(|round| !round.is_nan()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - confidence) / 2.0;
        let end = |quantile| rank(sorted.len(), quantile).map_or(value, |place| sorted[place]);
        Estimate { value, low: end(tail).min(value), high: end(1.0 - tail).max(value) }
    }

    /// Whether the interval lies wholly on one side of a value.
    pub fn excludes(&self, value: f64) -> bool {
        value < self.low || self.high < value
    }
}

/// The repetitions of one round, as places in a list of `count`: the same for all tenants and modes of a scenario.
pub fn repetitions(round: usize, scenario: &str, count: usize) -> Vec<usize> {
    let mut draw = Draw::named(round as u64, scenario);
    (0..count).map(|_| draw.below(count)).collect()
}

/// Latencies of several repetitions, sorted once, so that a round is counting and not sorting.
#[derive(Clone, Debug)]
pub struct Pool {
    sorted: Vec<Nanos>,
    /// Whether the request at this place of `sorted` was in time.
    in_time: Vec<bool>,
    /// For each repetition, the places in `sorted` of its requests, in order of arrival.
    places: Vec<Vec<u32>>,
}

/// What one round of drawing gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// In nanoseconds; infinite in overload.
    pub p50: f64,
    pub p99: f64,
    pub attainment: f64,
}

impl Pool {
    /// Each repetition's requests in order of arrival: latency, and whether it was in time.
    pub fn new(repetitions: &[Vec<(Option<Nanos>, bool)>]) -> Pool {
        let mut order = Vec::new();
        for (repetition, requests) in repetitions.iter().enumerate() {
            for (index, (latency, in_time)) in requests.iter().enumerate() {
                order.push((latency.unwrap_or(NEVER), repetition, index, *in_time));
            }
        }
        order.sort_unstable();
        let mut places: Vec<Vec<u32>> = repetitions.iter().map(|requests| vec![0; requests.len()]).collect();
        for (place, (_, repetition, index, _)) in order.iter().enumerate() {
            places[*repetition][*index] = u32::try_from(place).expect("an archive of four billion requests");
        }
        let in_time = order.iter().map(|request| request.3).collect();
        Pool { sorted: order.into_iter().map(|request| request.0).collect(), in_time, places }
    }

    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The figures of the data as measured.
    pub fn measured(&self) -> Round {
        self.figures(&vec![1; self.sorted.len()])
    }

    /// The figures of data drawn out of `repetitions`, which are places in the list that the pool was made from.
    pub fn redrawn(&self, round: usize, tenant: &str, repetitions: &[usize]) -> Round {
        let mut counts = vec![0; self.sorted.len()];
        for (turn, repetition) in repetitions.iter().enumerate() {
            let places = &self.places[*repetition];
            let mut draw = Draw::named((round * repetitions.len() + turn) as u64, tenant);
            let stretch = (places.len() as f64).cbrt().ceil() as usize;
            let mut left = places.len();
            while left > 0 {
                let begin = draw.below(places.len());
                for step in 0..stretch.min(left) {
                    let wrapped =
                        if begin + step < places.len() { begin + step } else { begin + step - places.len() };
                    counts[places[wrapped] as usize] += 1;
                }
                left -= stretch.min(left);
            }
        }
        self.figures(&counts)
    }

    /// `counts` says how often each place of `sorted` was drawn.
    fn figures(&self, counts: &[u32]) -> Round {
        let total: usize = counts.iter().map(|count| *count as usize).sum();
        let in_time: usize = counts
            .iter()
            .zip(&self.in_time)
            .map(|(count, good)| if *good { *count as usize } else { 0 })
            .sum();
        let (Some(half), Some(tail)) = (rank(total, 0.5), rank(total, 0.99)) else {
            return Round { p50: f64::NAN, p99: f64::NAN, attainment: f64::NAN };
        };
        let mut round = Round { p50: f64::NAN, p99: f64::NAN, attainment: in_time as f64 / total as f64 };
        let mut seen = 0;
        for (time, count) in self.sorted.iter().zip(counts) {
            let before = seen;
            seen += *count as usize;
            let value = if *time == NEVER { f64::INFINITY } else { time.0 as f64 };
            if (before..seen).contains(&half) {
                round.p50 = value;
            }
            if (before..seen).contains(&tail) {
                round.p99 = value;
                break;
            }
        }
        round
    }
}

/// Rates of consecutive stretches of a window, of several repetitions; stretches are drawn as requests are.
#[derive(Clone, Debug)]
pub struct Rates(pub Vec<Vec<f64>>);

impl Rates {
    pub fn measured(&self) -> f64 {
        mean(self.0.iter().map(|stretches| mean(stretches.iter().copied())))
    }

    pub fn redrawn(&self, round: usize, tenant: &str, repetitions: &[usize]) -> f64 {
        mean(repetitions.iter().enumerate().map(|(turn, repetition)| {
            let stretches = &self.0[*repetition];
            let mut draw = Draw::named((round * repetitions.len() + turn) as u64, tenant);
            mean((0..stretches.len()).map(|_| stretches[draw.below(stretches.len())]))
        }))
    }
}

/// NaN of nothing.
pub fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0usize, 0.0), |(count, sum), value| (count + 1, sum + value));
    sum / count as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::quantile::Quantiles;

    fn pool(times: &[Vec<u64>]) -> Pool {
        let requests =
            |times: &Vec<u64>| times.iter().map(|time| (Some(Nanos(*time)), *time < 500)).collect();
        Pool::new(&times.iter().map(requests).collect::<Vec<_>>())
    }

    fn estimate(times: &[Vec<u64>]) -> Estimate {
        let pool = pool(times);
        let rounds: Vec<f64> = (0..ROUNDS)
            .map(|round| pool.redrawn(round, "t", &repetitions(round, "s", times.len())).p50)
            .collect();
        Estimate::new(pool.measured().p50, &rounds)
    }

    #[test]
    fn an_interval_narrows_with_more_data() {
        let draws = |count: usize| {
            let mut draw = Draw::named(1, "data");
            (0..3).map(|_| (0..count).map(|_| draw.below(1000) as u64).collect()).collect::<Vec<Vec<u64>>>()
        };
        let (few, many) = (estimate(&draws(30)), estimate(&draws(3000)));
        assert!(many.high - many.low < (few.high - few.low) / 4.0, "{few:?} {many:?}");
    }

    #[test]
    fn an_interval_covers_the_truth_about_as_often_as_it_says() {
        let covers = (0..200).filter(|seed| {
            let mut draw = Draw::named(*seed, "truth");
            let data: Vec<Vec<u64>> =
                (0..4).map(|_| (0..100).map(|_| draw.below(1000) as u64).collect()).collect();
            !estimate(&data).excludes(500.0)
        });
        let covered = covers.count();
        assert!((170..=200).contains(&covered), "{covered} of 200");
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_figure(
            times in prop::collection::vec(prop::collection::vec(0u64..1000, 1..40), 1..5)
        ) {
            let estimate = estimate(&times);
            prop_assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
        }

        #[test]
        fn a_pool_gives_the_quantiles_of_its_requests(
            times in prop::collection::vec(prop::collection::vec(0u64..1000, 1..40), 1..5)
        ) {
            let all = times.iter().flatten().map(|time| Some(Nanos(*time)));
            let quantiles = Quantiles::of(all).unwrap();
            let measured = pool(&times).measured();
            prop_assert_eq!(Some(Nanos(measured.p50 as u64)), quantiles.p50);
            prop_assert_eq!(Some(Nanos(measured.p99 as u64)), quantiles.p99);
            let good = times.iter().flatten().filter(|time| **time < 500).count();
            prop_assert!((measured.attainment - good as f64 / quantiles.offered as f64).abs() < 1e-12);
        }
    }
}
