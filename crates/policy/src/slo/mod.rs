//! Spend a latency tenant's slack, and never more. The default.
//!
//! A latency tenant does not need the GPU to be empty; it needs its answers in time. What lies between how long its requests
//! take and how long they may take is its *slack*, and best-effort work may have that much of its time. The policy has
//! two halves. This one decides, many times a second, and only compares moments. The other (`control`) looks ten times a
//! second at what came of it, and turns the dials that this one goes by.
//!
//! Each latency tenant sets a limit, and what may be started is what all limits allow.
//!
//! * It has work. What leaves the GPU fast enough may be there *beside* it: as fast as the controller found it to bear
//!   (`beside`), and no slower than the slack of this request. In the shared domain these are short blocks, which run at the same
//!   time; in the isolated domain, whatever the hardware switches away from in that time. Gaps inside the request are used as
//!   in `gaps`.
//! * It had work until a moment ago: for `quiet`, what may run beside it. Its next request may follow at once, and what need not leave
//!   for a request need not leave for the pause before it.
//! * Its next request is expected: only what can be stopped in time. What is started at a moment `t` must be off at the
//!   latest by the earliest arrival plus the slack, so it may take `slack + (early - t)` to stop, and at any time `slack`.
//! * Nothing is known of its next request, or it has not come when it should have: anything.
//!
//! Work that could never be started under these rules has its turn now and then (`waited`).

mod aim;
mod control;
mod waited;

use model::{Forecast, Nanos};

use crate::gaps::{self, Gap};
use crate::{Activity, BestEffort, Decision, Latency, View, Who, Why, grant, strict};

pub use aim::{Aim, Report, Typical, aim, slack};
pub use control::{Company, LEVELS, START, State, dials_at, tune};
pub use waited::PATIENCE;

/// By how much a request may be later than expected, besides what the forecast itself is vague.
const LATE: Nanos = Nanos::from_millis(1);

/// What a latency tenant lets others start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    longest: Nanos,
    until: Nanos,
    again: Nanos,
    why: Why,
}

pub fn decide(view: &View) -> Decision {
    let limits = view.latency.iter().map(|tenant| limit(tenant, view));
    let limit = limits.clone().fold(Limit::NONE, Limit::and);
    let strictest = limits.min_by_key(|limit| limit.strictness(view.now));
    let limit = Limit { why: strictest.map_or(Why::Idle, |limit| limit.why), ..limit };
    if let Some(decision) = waited::let_in(view, limit.longest_at(view.now)) {
        return decision;
    }
    let grant = limit.grant(view);
    if grant.longest_at(view.now) == Nanos::ZERO && grant::interested(view).next().is_some() {
        return Decision::nobody(limit.why, grant.again);
    }
    let active = view.latency.iter().any(|tenant| tenant.is_active());
    if active && limit.longest == Nanos::ZERO {
        return gaps::fill(view, Gap { start: view.now, end: limit.until });
    }
    grant::to_whom(view, grant)
}

/// When a request that was expected is not expected any more.
pub(crate) fn overdue_at(next: Forecast) -> Nanos {
    next.likely.max(next.early) + next.likely.since(next.early) + LATE
}

fn limit(tenant: &Latency, view: &View) -> Limit {
    match tenant.activity {
        Activity::Active { .. } => during(tenant, view),
        Activity::Idle { .. } => between(tenant, view),
    }
}

/// What may run beside a request, and why it may, or else why not.
fn beside(tenant: &Latency, view: &View, why_not: Why) -> (Nanos, Why) {
    let beside = view.dials.beside.min(tenant.slack);
    (beside, if beside > Nanos::ZERO { Why::Slack } else { why_not })
}

/// While a request is under way.
fn during(tenant: &Latency, view: &View) -> Limit {
    let (beside, slack) = beside(tenant, view, Why::LatencyWork);
    let work = Limit { longest: beside, until: Nanos::ZERO, again: Nanos::MAX, why: slack };
    let Some(gap) = gaps::of(tenant) else { return work };
    if !gaps::is_worth(gap, view) {
        let why = if beside > Nanos::ZERO { slack } else { Why::ShortGap };
        return Limit { again: gaps::look_again(gap, view), why, ..work };
    }
    if view.now < gap.start {
        return Limit { again: gap.start, ..work };
    }
    Limit { until: gap.end, again: gap.end, why: Why::Gap, ..work }
}

/// While it waits for its next request.
fn between(tenant: &Latency, view: &View) -> Limit {
    if let Some(end) = strict::window(tenant, view.dials.quiet, view.now) {
        let (longest, why) = beside(tenant, view, Why::Quiet);
        return Limit { longest, until: Nanos::ZERO, again: end, why };
    }
    let overdue = overdue_at(tenant.next);
    if !tenant.next.is_known() || overdue <= view.now {
        return Limit::NONE;
    }
    let until = tenant.next.early + tenant.slack;
    let again = overdue.min(view.now + waited::LONGEST);
    Limit { longest: tenant.slack, until, again, why: Why::NearArrival }
}

impl Limit {
    const NONE: Limit = Limit { longest: Nanos::MAX, until: Nanos::MAX, again: Nanos::MAX, why: Why::Idle };

    /// What both allow. Length and moment are taken apart, which is a little stricter than need be where one tenant has more
    /// slack and another comes later, and never bolder.
    fn and(self, other: Limit) -> Limit {
        Limit {
            longest: self.longest.min(other.longest),
            until: self.until.min(other.until),
            again: self.again.min(other.again),
            why: self.why,
        }
    }

    /// What makes one limit the reason among several.
    fn strictness(&self, now: Nanos) -> (Nanos, u8) {
        (self.longest_at(now), self.why as u8)
    }

    fn longest_at(&self, at: Nanos) -> Nanos {
        self.longest.max(self.until.since(at))
    }

    /// As a grant. Asks again when the next of those who may run now has to leave, or has its turn.
    fn grant(self, view: &View) -> Decision {
        let grant = Decision {
            who: Who::All,
            longest: self.longest,
            until: self.until,
            in_flight: view.dials.in_flight,
            pieces: u32::MAX,
            again: self.again,
            lead: None,
            confined: 0,
            why: self.why,
        };
        let limited = |tenant: &&BestEffort| tenant.certificate > self.longest;
        if self.why == Why::NearArrival && !grant::interested(view).any(|tenant| limited(&tenant)) {
            // An arrival that nobody has to be kept away from is none.
            return Decision { why: Why::Idle, ..grant };
        }
        let changes = grant::interested(view).filter(limited).flat_map(|tenant| {
            // There are no turns beside a request.
            let turn = (self.why == Why::NearArrival).then(|| waited::changes_at(tenant, view.now));
            [grant.leaves_at(tenant.certificate), turn.unwrap_or(Nanos::MAX)]
        });
        let next = changes.filter(|&moment| moment > view.now).min().unwrap_or(Nanos::MAX);
        Decision { again: self.again.min(next), ..grant }
    }
}
