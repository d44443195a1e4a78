//! Many scenarios in one line: what a mode costs and gives over all of them.

use results::record::ALONE;

use crate::view::{Scenario, View};

/// A mean, and the worst of what it is the mean of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub mean: f64,
    pub worst: f64,
    pub count: usize,
}

/// What one mode costs and gives over some scenarios. A *case* is a latency tenant of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    pub scenarios: usize,
    pub cases: usize,
    /// Cases whose p99 is infinite; they are in no mean.
    pub overloaded: usize,
    /// p99 over alone, of the cases that have one.
    pub over_alone: Option<Spread>,
    /// The same in the middle of all cases, those without end included: a mode that overloads what it slows down most
    /// must not look better for it.
    pub median: Option<f64>,
    /// How many cases that is the middle of. One that was overloaded alone can be compared with nothing.
    pub compared: usize,
    /// Attainment alone less attainment here.
    pub lost: Option<Spread>,
    /// The same of the SLOs that tenants told ebb.
    pub told_lost: Option<Spread>,
    pub of_ideal: Option<Spread>,
    pub of_left: Option<Spread>,
    pub requests: usize,
    pub iterations: usize,
    pub wrong: usize,
    pub unchecked: usize,
}

impl Summary {
    pub fn of<'s, 'a: 's>(scenarios: impl IntoIterator<Item = &'s Scenario<'a>>, mode: &str) -> Summary {
        Summary::over(scenarios.into_iter().map(|scenario| (scenario, mode)))
    }

    /// Of scenarios, each in a mode of its own.
    pub fn over<'s, 'a: 's, 'm>(scenarios: impl IntoIterator<Item = (&'s Scenario<'a>, &'m str)>) -> Summary {
        let mut summary = Summary::default();
        let (mut ratios, mut lost, mut told) = (Vec::new(), Vec::new(), Vec::new());
        let (mut of_ideal, mut of_left) = (Vec::new(), Vec::new());
        for (scenario, mode) in scenarios {
            let Some(here) = scenario.mode(mode) else { continue };
            summary.scenarios += 1;
            let alone = scenario.mode(ALONE);
            for tenant in &here.latency {
                summary.cases += 1;
                summary.requests += tenant.offered;
                summary.wrong += tenant.wrong;
                match tenant.overhead.map(|estimate| estimate.value) {
                    Some(ratio) if ratio.is_finite() => ratios.push(ratio),
                    Some(_) => summary.overloaded += 1,
                    None => {}
                }
                let before = alone.and_then(|mode| mode.latency_of(&tenant.tenant)?.attainment);
                lost.extend(before.zip(tenant.attainment).map(|(before, now)| before.value - now.value));
                told.extend(tenant.told.map(|told| told.alone - told.kept));
            }
            of_ideal.extend(here.together.of_ideal.map(|estimate| estimate.value));
            of_left.extend(here.together.of_left.map(|estimate| estimate.value));
            summary.iterations += scenario.iterations(mode);
            summary.unchecked += here.best_effort.iter().map(|tenant| tenant.unchecked).sum::<usize>();
            summary.wrong += here.best_effort.iter().map(|tenant| tenant.wrong).sum::<usize>();
        }
        summary.over_alone = spread(&ratios, f64::max);
        ratios.extend(std::iter::repeat_n(f64::INFINITY, summary.overloaded));
        summary.compared = ratios.len();
        summary.median = median(ratios);
        summary.lost = spread(&lost, f64::max);
        summary.told_lost = spread(&told, f64::max);
        summary.of_ideal = spread(&of_ideal, f64::min);
        summary.of_left = spread(&of_left, f64::min);
        summary
    }

    /// Whether there is anything to be said.
    pub fn is_empty(&self) -> bool {
        self.scenarios == 0
    }
}

/// Of an even number, the worse of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn spread(values: &[f64], worse: fn(f64, f64) -> f64) -> Option<Spread> {
    let worst = values.iter().copied().reduce(worse)?;
    Some(Spread { mean: values.iter().sum::<f64>() / values.len() as f64, worst, count: values.len() })
}

/// The scenarios by which a way of sharing is judged: one latency tenant beside one best-effort tenant. Those of bare
/// kernels are instruments, made to show one cost at a time, and are left out where there is anything else.
pub fn pairs<'v, 'a>(view: &'v View<'a>) -> Vec<&'v Scenario<'a>> {
    let all = || view.scenarios().filter(|one| one.pair().is_some());
    let real: Vec<_> = all().filter(|scenario| !scenario.is_instrument()).collect();
    if real.is_empty() { all().collect() } else { real }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_at_the_far_end_of_the_middle() {
        assert_eq!(median(vec![2.0, f64::INFINITY, 1.0]), Some(2.0));
        assert_eq!(median(vec![f64::INFINITY, 1.0]), Some(f64::INFINITY));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn the_worst_of_a_share_is_the_least_and_of_a_ratio_the_most() {
        assert_eq!(spread(&[1.0, 3.0], f64::max), Some(Spread { mean: 2.0, worst: 3.0, count: 2 }));
        assert_eq!(spread(&[1.0, 3.0], f64::min).map(|spread| spread.worst), Some(1.0));
        assert_eq!(spread(&[], f64::max), None);
    }
}
