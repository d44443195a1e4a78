//! What a policy does to a tenant, for the report: how much slower a latency tenant is than alone, and why a best-effort
//! tenant runs or does not.

use board::{Reading, Spans, Terms};
use model::{Class, Nanos};
use policy::Why;
use policy::slo::Aim;

use crate::controller;
use crate::report::{AloneSamples, Decision, Requests, Times};

/// How long the requests of a latency tenant take, if it says so.
pub(super) fn requests(reading: &Reading, class: Class) -> Option<Requests> {
    let (all, alone) = (&reading.experience.all, &reading.experience.alone);
    if class != Class::Latency || !(all.is_known() || alone.is_known()) {
        return None;
    }
    let both = all.is_known() && alone.is_known();
    let ratio = |now: Nanos, alone: Nanos| {
        let ratio = u128::from(now.0) * 1_000 / u128::from(alone.0.max(1));
        both.then(|| u64::try_from(ratio).unwrap_or(u64::MAX))
    };
    Some(Requests {
        all: times(all),
        alone: times(alone),
        alone_samples: AloneSamples { seen: alone.count, needed: reading.experience.alone_needed },
        slowdown_p50_permille: ratio(all.p50, alone.p50),
        slowdown_p99_permille: ratio(all.p99, alone.p99),
        in_line: reading.outlook.in_line,
    })
}

/// What 99 of 100 requests take alone, if the objective is missed and that is more.
pub(super) fn unattainable(reading: &Reading, terms: &Terms) -> Option<u64> {
    match controller::aim(reading, terms.slo) {
        Aim::Unattainable { alone, .. } if terms.class == Class::Latency => Some(alone.0),
        _ => None,
    }
}

/// What was last decided about a best-effort tenant.
pub(super) fn decision(reading: &Reading, class: Class) -> Option<Decision> {
    let decided = reading.decided.filter(|_| class == Class::BestEffort)?;
    let why = Why::ALL.get(usize::from(decided.why)).copied()?;
    let longest = (decided.longest != Nanos::MAX).then_some(decided.longest.0);
    Some(Decision { why: why.name().to_owned(), reason: sentence(why).to_owned(), longest_ns: longest })
}

/// A policy knows nothing of strangers. Where best-effort work yields to them, it may start what it likes and runs when they
/// leave the GPU to it.
pub(super) fn beside_strangers(decision: Decision, yields: bool) -> Decision {
    match yields && decision.longest_ns != Some(0) {
        true => Decision { why: "strangers".to_owned(), reason: WAITS_FOR_STRANGERS.to_owned(), ..decision },
        false => decision,
    }
}

const WAITS_FOR_STRANGERS: &str =
    "programs that are no tenants have work, and it runs when they leave the GPU";

fn times(spans: &Spans) -> Times {
    let known = |span: Nanos| spans.is_known().then_some(span.0);
    Times { count: spans.count, p50_ns: known(spans.p50), p99_ns: known(spans.p99) }
}

/// A reason for people.
pub fn sentence(why: Why) -> &'static str {
    match why {
        Why::Idle => "no latency tenant has work or is about to",
        Why::NothingToDo => "it has nothing to run",
        Why::LatencyWork => "a latency tenant has work",
        Why::Quiet => "a latency tenant had work until a moment ago",
        Why::Gap => "a latency tenant leaves the GPU alone for a while",
        Why::ShortGap => "the gap in a latency tenant's work is too short",
        Why::NearArrival => "a latency tenant's next request is near",
        Why::Slack => "a latency tenant has slack for short blocks",
        Why::Solo => "a request is to be seen alone",
        Why::Waited => "it has waited long enough for one piece",
    }
}
