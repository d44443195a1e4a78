//! What a latency tenant is to reach, and what that leaves to others.
//!
//! An objective, if it has one that can be reached: at least alone, 99 of 100 requests must keep it. One that cannot be kept
//! even alone is no measure of what sharing costs: to keep best-effort work out altogether would cost its throughput and save
//! nothing. Then, and when there is no objective, the measure is the tenant itself: alone, and a *tolerance*.

use model::Nanos;

/// Half of the requests take less than `p50`, 99 of 100 less than `p99`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Typical {
    pub p50: Nanos,
    pub p99: Nanos,
}

/// What was seen of one latency tenant since the controller looked last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Requests that were answered.
    pub requests: u32,
    /// Of those, how many took longer than the objective.
    pub missed: u32,
    /// How long requests took lately. More than the last interval: a percentile needs some hundred requests.
    pub observed: Typical,
    /// How long they take alone, if that is known.
    pub solo: Option<Typical>,
    pub slo: Option<Nanos>,
    /// By how much it may be slower than alone if it has no objective, in thousandths.
    pub tolerance: u32,
    /// For which part of the time the GPU was busy with best-effort work, in thousandths.
    pub best_effort: u32,
    /// Whether best-effort work is there that is kept from the GPU.
    pub kept_away: bool,
    /// The longest certificate among the best-effort tenants.
    pub certificate: Nanos,
    /// Whether requests wait in line, or are steps of something longer. How long whoever asked has waited is not seen then.
    pub in_line: bool,
}

/// What a tenant is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Its objective.
    Slo(Nanos),
    /// Alone, and the tolerance.
    Solo(Typical),
    /// The objective is missed, and cannot be kept even alone (99 of 100 requests take up to `alone` then), so that it is held
    /// against `instead`.
    Unattainable { slo: Nanos, alone: Nanos, instead: Typical },
    /// It has no objective, and what it takes alone is not known yet.
    Unknown,
}

/// What a tenant is held against.
pub fn aim(report: &Report) -> Aim {
    let tolerated = report.solo.map(|solo| tolerate(solo, report.tolerance));
    match (report.slo, report.solo, tolerated) {
        // One that is kept can be kept, whatever is thought of alone.
        (Some(slo), Some(solo), Some(instead)) if solo.p99 > slo && report.observed.p99 > slo => {
            Aim::Unattainable { slo, alone: solo.p99, instead }
        }
        (Some(slo), _, _) => Aim::Slo(slo),
        (None, _, Some(tolerated)) => Aim::Solo(tolerated),
        (None, _, None) => Aim::Unknown,
    }
}

fn tolerate(solo: Typical, tolerance: u32) -> Typical {
    let stretched = |span: Nanos| span.scaled(tolerance.saturating_add(1_000), 1_000);
    Typical { p50: stretched(solo.p50), p99: stretched(solo.p99) }
}

impl Aim {
    /// What 99 of 100 requests must keep.
    pub fn limit(self) -> Option<Nanos> {
        match self {
            Aim::Slo(slo) => Some(slo),
            Aim::Solo(typical) | Aim::Unattainable { instead: typical, .. } => Some(typical.p99),
            Aim::Unknown => None,
        }
    }
}

/// By how much a request that has taken `elapsed` and takes `left` more, nine times of ten, may still be delayed. For the next
/// request `elapsed` is nought. An aim is one for 99 of 100, and most requests are faster than that, so most have slack; those
/// that are slow by themselves have none, and nothing is taken from them. Where nothing is known, nothing is spent.
pub fn slack(aim: Aim, elapsed: Nanos, left: Nanos) -> Nanos {
    aim.limit().unwrap_or(Nanos::ZERO) - elapsed - left
}

/// How much of its slack is spent, in thousandths; `None`: it cannot be told. Slack is what lies between alone and the limit;
/// as long as it is not known what it takes alone, all of the limit.
pub(super) fn spent(report: &Report) -> Option<u32> {
    let Typical { p50, p99 } = report.observed;
    let alone = report.solo.unwrap_or_default();
    match aim(report) {
        Aim::Unknown => None,
        Aim::Slo(slo) => Some(share(p99, alone.p99, slo).max(misses(report))),
        // The median as well: alone is alone for every request, not for the slowest only.
        Aim::Solo(limit) | Aim::Unattainable { instead: limit, .. } => {
            Some(share(p99, alone.p99, limit.p99).max(share(p50, alone.p50, limit.p50)))
        }
    }
}

/// A percentile follows slowly; misses show at once. One in a hundred is what an objective allows.
fn misses(report: &Report) -> u32 {
    let allowed = (report.requests / 100).max(1);
    if report.missed > allowed { 1_000 } else { 0 }
}

/// How far `observed` is on its way from `alone` to `limit`.
fn share(observed: Nanos, alone: Nanos, limit: Nanos) -> u32 {
    let slack = u128::from(limit.since(alone).0.max(1));
    let ratio = u128::from(observed.since(alone).0) * 1_000 / slack;
    u32::try_from(ratio).unwrap_or(u32::MAX)
}
