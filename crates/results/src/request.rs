//! Requests as they count.
//!
//! What a tenant was *offered* is decided by when requests were due, never by what was served: a request that nobody
//! finished is a latency without end, not a gap in the data. Latency runs from the scheduled arrival, so a queue that
//! builds up is seen; service time runs from when the tenant took the request up, and hides that queue.

use std::collections::HashSet;

use model::Nanos;

use crate::record::{Run, Slo, TenantRun, nanos};

/// One offered request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Its scheduled arrival; in a closed loop, when it was taken up.
    pub due: Nanos,
    pub start: Option<Nanos>,
    /// `None`: never finished.
    pub end: Option<Nanos>,
    /// When its first token was there.
    pub first: Option<Nanos>,
    pub tokens: u32,
    /// Whether its answer was right; nobody can say so of one that was never finished.
    pub right: bool,
}

impl Request {
    /// From scheduled arrival to the end.
    pub fn latency(&self) -> Option<Nanos> {
        self.end.map(|end| end.since(self.due))
    }

    /// From when it was taken up to the end.
    pub fn service(&self) -> Option<Nanos> {
        Some(self.end?.since(self.start?))
    }

    /// From scheduled arrival to the first token.
    pub fn ttft(&self) -> Option<Nanos> {
        self.end.and(self.first).map(|first| first.since(self.due))
    }

    /// The time for each token after the first.
    pub fn tpot(&self) -> Option<Nanos> {
        let rest = self.end?.since(self.first?);
        Some(Nanos(rest.0 / u64::from(self.tokens.saturating_sub(1).max(1))))
    }

    /// Whether it was finished, rightly, and within every limit.
    pub fn in_time(&self, limits: &Limits) -> bool {
        let within = |limit: Option<Nanos>, taken: Option<Nanos>| {
            limit.is_none_or(|limit| taken.is_some_and(|taken| taken <= limit))
        };
        self.end.is_some()
            && self.right
            && within(limits.latency, self.latency())
            && within(limits.ttft, self.ttft())
            && within(limits.tpot, self.tpot())
    }
}

/// An SLO as times, once it is known what the tenant does alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub latency: Option<Nanos>,
    pub ttft: Option<Nanos>,
    pub tpot: Option<Nanos>,
}

/// The p99s of a tenant alone, from which relative SLOs follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AloneP99 {
    pub latency: Option<Nanos>,
    pub ttft: Option<Nanos>,
    pub tpot: Option<Nanos>,
}

impl Limits {
    /// `None` where nothing is promised, or where a multiple is promised of something that is not known.
    pub fn of(slo: &Slo, alone: &AloneP99) -> Option<Limits> {
        let limit = |absolute_us: Option<u64>, multiple: Option<f64>, p99: Option<Nanos>| {
            let relative = match multiple {
                None => None,
                Some(multiple) => Some(Nanos((p99?.0 as f64 * multiple) as u64)),
            };
            let absolute = absolute_us.map(nanos);
            // Where both are set, the stricter one holds.
            Some([absolute, relative].into_iter().flatten().min())
        };
        let limits = Limits {
            latency: limit(slo.latency_us, slo.alone_p99, alone.latency)?,
            ttft: limit(slo.ttft_us, slo.alone_ttft_p99, alone.ttft)?,
            tpot: limit(slo.tpot_us, slo.alone_tpot_p99, alone.tpot)?,
        };
        (limits != Limits::default()).then_some(limits)
    }
}

/// The requests of a tenant that count: those due in the counted time, served or not.
pub fn offered(run: &Run, tenant: &TenantRun) -> Vec<Request> {
    let wrong: HashSet<usize> = tenant.wrong.iter().copied().collect();
    let dues = tenant.due_us.as_deref().unwrap_or(&tenant.start_us);
    let counts = |due: u64| (run.warmup_us..run.until_us).contains(&due);
    let at = |times: &[u64], index: usize| times.get(index).copied().map(nanos);
    dues.iter()
        .enumerate()
        .filter(|(_, due)| counts(**due))
        .map(|(index, due)| {
            let end = at(&tenant.end_us, index);
            Request {
                due: nanos(*due),
                start: at(&tenant.start_us, index),
                end,
                first: at(&tenant.first_us, index),
                tokens: tenant.tokens.get(index).copied().unwrap_or(0),
                right: end.is_some() && !wrong.contains(&index),
            }
        })
        .collect()
}
