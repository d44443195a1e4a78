//! What a latency tenant got.

use model::Nanos;

use crate::bootstrap::{Estimate, Pool, ROUNDS, Round, repetitions};
use crate::passage::{Passage, paired};
use crate::quantile::Quantiles;
use crate::record::{Tenant, nanos};
use crate::request::{AloneP99, Limits, Request, offered};

/// The figures of one latency tenant in one mode.
#[derive(Clone, Debug)]
pub struct Latency {
    pub tenant: String,
    pub workload: String,
    /// Requests that were due in the counted time.
    pub offered: usize,
    /// Of these, the ones that were never finished.
    pub dropped: usize,
    /// Finished, with a wrong answer.
    pub wrong: usize,
    /// From scheduled arrival.
    pub arrival: Quantiles,
    /// From when the tenant took the request up. It hides the queue; shown so that a reader can see how much.
    pub service: Quantiles,
    /// Time to the first token, and for each one after it.
    pub ttft: Option<Quantiles>,
    pub tpot: Option<Quantiles>,
    /// What the SLO comes to; `None` where there is none, or where it is a multiple of something unknown.
    pub limits: Option<Limits>,
    /// Latencies from arrival, sorted, of those that were finished: with `offered`, a distribution.
    pub latencies: Vec<Nanos>,
    /// p50 and p99 from arrival in nanoseconds; infinite in overload.
    pub p50: Estimate,
    pub p99: Estimate,
    /// The share of what was offered that was finished rightly and in time.
    pub attainment: Option<Estimate>,
    /// p99 from arrival, over that alone.
    pub overhead: Option<Estimate>,
    /// Where the tenant told ebb an SLO.
    pub told: Option<Told>,
}

/// How an SLO was kept that the tenant told ebb.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Told {
    /// The highest, where repetitions differ.
    pub slo: Nanos,
    /// The share of what was offered that was finished rightly within it, and the same alone in the same repetitions.
    pub kept: f64,
    pub alone: f64,
}

impl Latency {
    /// Points of the distribution for a chart: a time, and the share of what was offered that was finished by then. Drops
    /// keep the curve from reaching 1. Half of the points lie beyond the p90, where readers look.
    pub fn curve(&self, points: usize) -> Vec<(Nanos, f64)> {
        let count = self.latencies.len();
        let step = |n: usize| {
            let along = n as f64 / points.max(1) as f64;
            // From 0 to 0.9 in the first half of the points, from 0.9 to 1 in the second.
            if along < 0.5 { along * 1.8 } else { 0.8 + along * 0.2 }
        };
        let mut places: Vec<usize> =
            (0..=points).map(|n| (step(n) * count as f64) as usize).filter(|place| *place < count).collect();
        places.extend(count.checked_sub(1));
        places.dedup();
        let point = |place: usize| (self.latencies[place], (place + 1) as f64 / self.offered as f64);
        places.into_iter().map(point).collect()
    }
}

/// The rounds behind the estimates, for figures over several tenants.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    pub attainment: Vec<f64>,
    pub overhead: Vec<f64>,
}

/// `None` when nothing was offered in the counted time.
pub(super) fn figures(
    scenario: &str,
    tenant: &Tenant,
    passages: &[Passage<'_>],
    alone: &[Passage<'_>],
) -> Option<(Latency, Rounds)> {
    let requests = all(passages);
    let flat: Vec<Request> = requests.iter().flatten().copied().collect();
    let arrival = Quantiles::of(flat.iter().map(Request::latency))?;
    let service = Quantiles::of(flat.iter().map(Request::service))?;
    let limits = limits(tenant, alone);
    let (measured, rounds) = drawn(scenario, &tenant.name, &requests, limits.as_ref());
    let (overhead, overhead_rounds) = overhead(scenario, tenant, passages, alone).unzip();
    let attainment_rounds: Vec<f64> = rounds.iter().map(|round| round.attainment).collect();
    let streaming = flat.iter().any(|request| request.first.is_some());
    let tokens = |time: fn(&Request) -> Option<Nanos>| {
        streaming.then(|| Quantiles::of(flat.iter().map(time))).flatten()
    };
    let mut latencies: Vec<Nanos> = flat.iter().filter_map(Request::latency).collect();
    latencies.sort_unstable();
    let figures = Latency {
        tenant: tenant.name.clone(),
        workload: tenant.workload.clone(),
        offered: flat.len(),
        dropped: flat.iter().filter(|request| request.end.is_none()).count(),
        wrong: flat.iter().filter(|request| request.end.is_some() && !request.right).count(),
        arrival,
        service,
        ttft: tokens(Request::ttft),
        tpot: tokens(Request::tpot),
        limits,
        latencies,
        p50: Estimate::new(measured.p50, &rounds.iter().map(|round| round.p50).collect::<Vec<_>>()),
        p99: Estimate::new(measured.p99, &rounds.iter().map(|round| round.p99).collect::<Vec<_>>()),
        attainment: limits.map(|_| Estimate::new(measured.attainment, &attainment_rounds)),
        overhead,
        told: told(passages, alone),
    };
    let rounds = Rounds { attainment: attainment_rounds, overhead: overhead_rounds.unwrap_or_default() };
    Some((figures, rounds))
}

fn told(passages: &[Passage<'_>], alone: &[Passage<'_>]) -> Option<Told> {
    let (here, there) = paired(passages, alone);
    let (mut slo, mut kept, mut kept_alone) = (None, [0, 0], [0, 0]);
    for (here, there) in here.iter().zip(&there) {
        let Some(limit) = here.tenant.slo_us.map(nanos) else { continue };
        let limits = Limits { latency: Some(limit), ..Limits::default() };
        for (passage, [within, all]) in [(here, &mut kept), (there, &mut kept_alone)] {
            let requests = offered(passage.run, passage.tenant);
            *within += requests.iter().filter(|request| request.in_time(&limits)).count();
            *all += requests.len();
        }
        slo = slo.max(Some(limit));
    }
    let share = |[within, all]: [usize; 2]| (all > 0).then(|| within as f64 / all as f64);
    Some(Told { slo: slo?, kept: share(kept)?, alone: share(kept_alone)? })
}

/// The limits that a tenant's SLO comes to, given its passages alone.
pub(crate) fn limits(tenant: &Tenant, alone: &[Passage<'_>]) -> Option<Limits> {
    Limits::of(&tenant.slo, &alone_p99(alone))
}

/// The figures as measured, and in each round of drawing.
pub(crate) fn drawn(
    scenario: &str,
    tenant: &str,
    requests: &[Vec<Request>],
    limits: Option<&Limits>,
) -> (Round, Vec<Round>) {
    let pool = pool(requests, limits);
    let round = |n: usize| pool.redrawn(n, tenant, &repetitions(n, scenario, requests.len()));
    (pool.measured(), (0..ROUNDS).map(round).collect())
}

/// The requests that count, by repetition.
pub(crate) fn all(passages: &[Passage<'_>]) -> Vec<Vec<Request>> {
    passages.iter().map(|passage| offered(passage.run, passage.tenant)).collect()
}

/// Without limits, nothing is said about attainment, so it does not matter what stands there.
fn pool(requests: &[Vec<Request>], limits: Option<&Limits>) -> Pool {
    let judged =
        |request: &Request| (request.latency(), limits.is_some_and(|limits| request.in_time(limits)));
    Pool::new(&requests.iter().map(|requests| requests.iter().map(judged).collect()).collect::<Vec<_>>())
}

fn alone_p99(alone: &[Passage<'_>]) -> AloneP99 {
    let requests: Vec<Request> = all(alone).into_iter().flatten().collect();
    let p99 = |time: fn(&Request) -> Option<Nanos>| Quantiles::of(requests.iter().map(time))?.p99;
    AloneP99 { latency: p99(Request::latency), ttft: p99(Request::ttft), tpot: p99(Request::tpot) }
}

fn overhead(
    scenario: &str,
    tenant: &Tenant,
    passages: &[Passage<'_>],
    alone: &[Passage<'_>],
) -> Option<(Estimate, Vec<f64>)> {
    let (here, there) = paired(passages, alone);
    let (here, there) = (pool(&all(&here), None), pool(&all(&there), None));
    if here.is_empty() || there.is_empty() {
        return None;
    }
    let count = paired(passages, alone).0.len();
    let value = here.measured().p99 / there.measured().p99;
    let rounds: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            let drawn = repetitions(round, scenario, count);
            here.redrawn(round, &tenant.name, &drawn).p99 / there.redrawn(round, &tenant.name, &drawn).p99
        })
        .collect();
    (!value.is_nan()).then(|| (Estimate::new(value, &rounds), rounds))
}
