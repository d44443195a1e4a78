//! What the tenants of a scenario got together.

use model::Class;

use super::View;
use super::best_effort::{self, BestEffort};
use super::latency::{self, Latency};
use crate::bootstrap::{Estimate, mean};
use crate::passage::{self, Passage};
use crate::record::ALONE;

/// The figures of a mode over all its tenants.
#[derive(Clone, Debug, Default)]
pub struct Together {
    /// p99 over that alone: of the latency tenant that fares worst, and on average.
    pub worst_overhead: Option<Estimate>,
    pub mean_overhead: Option<Estimate>,
    pub worst_attainment: Option<Estimate>,
    pub mean_attainment: Option<Estimate>,
    /// The share of the GPU's time that best-effort work had: each tenant's part of its own rate alone, times the share
    /// for which it keeps the GPU busy alone, summed.
    pub best_effort: Option<Estimate>,
    /// What that could be: all that the latency tenants, alone, leave idle, or all that the best-effort tenants can use
    /// if that is less. One that waits for its host half of the time cannot be given more than the other half; to
    /// count it as if it could makes everybody look ideal, and time-slicing twice as good as that.
    pub ideal: Option<f64>,
    /// One over the other.
    pub of_ideal: Option<Estimate>,
    /// The rates of the best-effort tenants over those alone, over the share of time that the latency tenants, alone,
    /// leave idle; of several, each counts by the share for which it keeps the GPU busy alone, and all of them for no more than all of the time.
    /// This ideal slows everybody down by the time that belongs to requests, also one that has other things to do meanwhile.
    pub of_left: Option<Estimate>,
    /// The share of the counted time for which the work that was finished keeps the GPU busy. `None` in the mode
    /// `alone`, whose tenants run one after another.
    pub busy: Option<f64>,
    /// Whether every answer and every result was right; what nobody could check is not said to be wrong.
    pub right: bool,
}

pub(super) fn figures(
    view: &View<'_>,
    mode: &str,
    latency: &[(Latency, latency::Rounds)],
    best_effort: &[(BestEffort, best_effort::Rounds)],
) -> Together {
    let overheads: Option<Vec<(f64, &[f64])>> = latency
        .iter()
        .map(|(figures, rounds)| Some((figures.overhead?.value, rounds.overhead.as_slice())))
        .collect();
    let attainments: Option<Vec<(f64, &[f64])>> = latency
        .iter()
        .map(|(figures, rounds)| Some((figures.attainment?.value, rounds.attainment.as_slice())))
        .collect();
    let uses: Option<Vec<f64>> =
        best_effort.iter().map(|(figures, _)| view.use_alone(&figures.tenant)).collect();
    let weighted: Option<Vec<(f64, Vec<f64>)>> = uses.as_ref().and_then(|uses| {
        let each = best_effort.iter().zip(uses).map(|((figures, rounds), used)| {
            Some((figures.of_alone?.value * used, rounds.iter().map(|round| round * used).collect()))
        });
        each.collect()
    });
    let shares = weighted.as_ref().map(|weighted| {
        weighted.iter().map(|(value, rounds)| (*value, rounds.as_slice())).collect::<Vec<_>>()
    });
    // A part of the tenants is not "all of them": one that is not known leaves the figure unknown.
    let over = |parts: &Option<Vec<(f64, &[f64])>>, of: fn(&[f64]) -> f64| {
        parts.as_ref().and_then(|parts| combine(parts, of))
    };
    let best = if mode == ALONE { None } else { over(&shares, |parts| parts.iter().sum()) };
    let bounds = view.idle_alone().zip(uses.map(|uses| uses.iter().sum::<f64>()));
    let bounds = bounds.filter(|(idle, used)| *idle > 0.0 && *used > 0.0);
    let ideal = bounds.map(|(idle, used)| idle.min(used));
    let left = bounds.map(|(idle, used)| idle * used.min(1.0));
    Together {
        worst_overhead: over(&overheads, |parts| parts.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        mean_overhead: over(&overheads, |parts| mean(parts.iter().copied())),
        worst_attainment: over(&attainments, |parts| parts.iter().copied().fold(f64::INFINITY, f64::min)),
        mean_attainment: over(&attainments, |parts| mean(parts.iter().copied())),
        best_effort: best,
        ideal,
        of_ideal: part_of(ideal, best),
        of_left: part_of(left, best),
        busy: view.busy(mode),
        right: latency.iter().all(|(figures, _)| figures.wrong == 0)
            && best_effort.iter().all(|(figures, _)| figures.wrong == 0),
    }
}

/// One figure out of those of several tenants, round by round, so that what they share is not counted twice.
fn combine(parts: &[(f64, &[f64])], of: fn(&[f64]) -> f64) -> Option<Estimate> {
    let values: Vec<f64> = parts.iter().map(|(value, _)| *value).collect();
    let count = parts.iter().map(|(_, rounds)| rounds.len()).min().filter(|count| *count > 0)?;
    let round = |n: usize| of(&parts.iter().map(|(_, rounds)| rounds[n]).collect::<Vec<_>>());
    Some(Estimate::new(of(&values), &(0..count).map(round).collect::<Vec<_>>()))
}

fn part_of(whole: Option<f64>, part: Option<Estimate>) -> Option<Estimate> {
    let (whole, Estimate { value, low, high }) = whole.zip(part)?;
    Some(Estimate { value: value / whole, low: low / whole, high: high / whole })
}

impl View<'_> {
    /// The share of time for which the latency tenants, each alone, leave the GPU idle; `None` where one was never
    /// measured alone.
    fn idle_alone(&self) -> Option<f64> {
        let latency = self.scenario.tenants.iter().filter(|tenant| tenant.class == Class::Latency);
        let busy: Option<f64> = latency.map(|tenant| self.use_alone(&tenant.name)).sum();
        busy.map(|busy| (1.0 - busy).max(0.0))
    }

    /// The share of time for which a tenant alone keeps the GPU busy.
    fn use_alone(&self, tenant: &str) -> Option<f64> {
        let passages = passage::of(self.archive, self.scenario, ALONE, tenant);
        let share = mean(passages.iter().map(|passage| self.share(passage)));
        // The GPU time of an iteration is measured apart from its rate, and the two need not agree to the last per cent.
        (!share.is_nan()).then_some(share.min(1.0))
    }

    fn busy(&self, mode: &str) -> Option<f64> {
        if mode == ALONE {
            return None;
        }
        let runs = self.archive.runs_of(&self.scenario.suite, &self.scenario.name, mode);
        let of = |run: &&crate::record::Run| -> f64 {
            run.tenants.iter().map(|tenant| self.share(&Passage { run, tenant })).sum()
        };
        (!runs.is_empty()).then(|| mean(runs.iter().map(of)))
    }

    /// The share of the counted time that the work which one tenant did in it needs on the GPU. Requests count by when
    /// they were served and not by when they were due: a queue that the warm-up leaves behind keeps the GPU busy within
    /// the counted time, and one that is left at its end does so after it.
    fn share(&self, passage: &Passage<'_>) -> f64 {
        passage.done(self.checks).all * passage.tenant.gpu_us * 1e-6 / passage.run.window_s()
    }
}
