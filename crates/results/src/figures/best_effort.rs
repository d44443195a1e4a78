//! What a best-effort tenant got.

use crate::bootstrap::{Estimate, ROUNDS, Rates, repetitions};
use crate::iteration::{Checks, Done, done, finished};
use crate::passage::{Passage, paired};
use crate::record::Tenant;

/// Into how many stretches a window is cut, to see how much the rate moves within a run.
const STRETCHES: u64 = 20;

/// The figures of one best-effort tenant in one mode.
#[derive(Clone, Debug)]
pub struct BestEffort {
    pub tenant: String,
    pub workload: String,
    /// Iterations per second whose results were checked and right.
    pub rate: Estimate,
    /// Iterations with a wrong result, and ones that nobody could check. Neither is in `rate`.
    pub wrong: usize,
    pub unchecked: usize,
    /// The rate alone, in the repetitions that were measured in both modes.
    pub alone_rate: Option<f64>,
    /// The rate, over that alone.
    pub of_alone: Option<Estimate>,
}

/// The rounds behind `of_alone`, for figures over several tenants; empty where there is none.
pub(super) type Rounds = Vec<f64>;

pub(super) fn figures(
    scenario: &str,
    tenant: &Tenant,
    checks: &Checks,
    passages: &[Passage<'_>],
    alone: &[Passage<'_>],
) -> (BestEffort, Rounds) {
    let here = rates(passages, checks);
    let rounds: Vec<f64> = (0..ROUNDS)
        .map(|round| here.redrawn(round, &tenant.name, &repetitions(round, scenario, passages.len())))
        .collect();
    let totals: Vec<Done> = passages.iter().map(|passage| passage.done(checks)).collect();
    let (with, without) = paired(passages, alone);
    let (with, without) = (rates(&with, checks), rates(&without, checks));
    let alone_rate = Some(without.measured()).filter(|rate| *rate > 0.0);
    let ratios = |alone_rate: f64| {
        let rounds: Vec<f64> = (0..ROUNDS)
            .map(|round| {
                let drawn = repetitions(round, scenario, with.0.len());
                with.redrawn(round, &tenant.name, &drawn) / without.redrawn(round, &tenant.name, &drawn)
            })
            .collect();
        (Estimate::new(with.measured() / alone_rate, &rounds), rounds)
    };
    let (of_alone, ratio_rounds) = alone_rate.map(ratios).unzip();
    let figures = BestEffort {
        tenant: tenant.name.clone(),
        workload: tenant.workload.clone(),
        rate: Estimate::new(here.measured(), &rounds),
        wrong: totals.iter().map(|total| total.wrong).sum(),
        unchecked: totals.iter().map(|total| total.unchecked).sum(),
        alone_rate,
        of_alone,
    };
    (figures, ratio_rounds.unwrap_or_default())
}

/// Per second, in each stretch of each passage.
pub(crate) fn rates(passages: &[Passage<'_>], checks: &Checks) -> Rates {
    let of = |passage: &Passage<'_>| {
        let iterations = finished(passage.tenant, checks);
        let (from, to) = passage.window();
        let edge = |n: u64| from + to.saturating_sub(from) * n / STRETCHES;
        let rate = |n: u64| {
            let (from, to) = (edge(n), edge(n + 1));
            done(&iterations, from, to).right / (to.saturating_sub(from).max(1) as f64 * 1e-6)
        };
        (0..STRETCHES).map(rate).collect()
    };
    Rates(passages.iter().map(of).collect())
}
