//! The earliest deadline goes first.
//!
//! Among latency tenants that have work at the same time, the one whose request must be answered first leads; the others are
//! as if one level lower while it does. On one machine whose work can be stopped anywhere, no order keeps a set of deadlines
//! that this one does not keep. Who has no deadline comes after all who have; ties go to the higher priority and then
//! to the lower seat. For best-effort tenants this is `strict`.
//!
//! That theorem ends where the GPU is overloaded: then a request that is late already holds up the next one, which is late for
//! that reason, and so on. Going by least laxity (what is left until the deadline, less what is left to do) is no way out:
//! two requests with the same laxity would take the lead from each other without end, and it rests on a forecast of
//! what is left to do. What is used of it is the part that needs no forecast: *once the deadline has passed, the laxity
//! is gone*. A late request can no longer be saved, others can, so it gives way; but not for ever: it is given as much time
//! again as it had in the first place, as often as it takes, and its new deadline comes nearer like anybody else's.

use core::cmp::Reverse;

use model::Nanos;

use crate::{Activity, Decision, Latency, View, strict};

pub fn decide(view: &View) -> Decision {
    Decision { lead: lead(view), ..strict::decide(view) }
}

/// The seat that goes first among latency tenants that have work.
pub fn lead(view: &View) -> Option<u32> {
    let active = view.latency.iter().filter(|tenant| tenant.is_active());
    let first = active.min_by_key(|tenant| (due(tenant, view.now), Reverse(tenant.priority), tenant.seat));
    first.map(|tenant| tenant.seat)
}

/// By when its request must be answered; if that is too late already, by when it is now.
fn due(tenant: &Latency, now: Nanos) -> Nanos {
    let (Activity::Active { since }, Some(deadline)) = (tenant.activity, tenant.deadline) else {
        return Nanos::MAX;
    };
    let allowed = deadline.since(since).max(Nanos(1));
    let late = now.since(deadline);
    if late == Nanos::ZERO {
        return deadline;
    }
    // The next of the moments that lie whole multiples of what was allowed behind the deadline.
    let times = late.0.div_ceil(allowed.0);
    deadline + Nanos(allowed.0.saturating_mul(times))
}
