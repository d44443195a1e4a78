//! A request seen alone.
//!
//! How much a tenant is slowed down can only be said once it is known what it takes alone. Most tenants are alone often
//! enough; where they are not, all of its first requests and later a small share (`solo_share`) are chosen, and for those
//! best-effort work is kept away. Which ones is up to the observer of the tenant (`forecast::Solo`); here is only what follows.
//!
//! While such a request is under way, nobody else runs. But it must not find anybody on the GPU when it comes either, or it
//! would pay for the stop and not be what it is alone. So best-effort work stays away before: from the end of the request before
//! it, and again from when it is expected, if that is known, early enough to be off. What if it does not come? Then nothing
//! is to be seen, and best-effort work goes on: neither wait is longer than [`PATIENCE`], or [`LEARNING_PATIENCE`] as long as
//! little is known. The observer sees that the request was not alone, and chooses another.

use model::Nanos;

use crate::slo::overdue_at;
use crate::{Activity, Decision, Latency, View, Why, grant};

/// How long a request that is to be seen alone is waited for.
pub const PATIENCE: Nanos = Nanos::from_millis(10);
/// And as long as it is being learned what requests take alone: most requests of a server that answers some tens a second
/// come within this.
pub const LEARNING_PATIENCE: Nanos = Nanos::from_millis(50);

/// Nobody, if somebody is to be seen alone now.
pub(crate) fn keep_away(view: &View) -> Option<Decision> {
    let slowest = grant::interested(view).map(|tenant| tenant.certificate).max().unwrap_or_default();
    let chosen = view.latency.iter().filter(|tenant| tenant.is_solo());
    let again = chosen.filter_map(|tenant| kept_until(tenant, slowest, view.now)).max()?;
    Some(Decision::nobody(Why::Solo, again))
}

/// Until when others stay away from this tenant; [`Nanos::MAX`]: until its request is done.
fn kept_until(tenant: &Latency, slowest: Nanos, now: Nanos) -> Option<Nanos> {
    let Activity::Idle { since } = tenant.activity else { return Some(Nanos::MAX) };
    // Whatever a tenant says, nobody is kept away for longer.
    let patience = tenant.solo_wait.min(LEARNING_PATIENCE);
    let after = since.map(|since| (since, since + patience));
    // Who takes long to stop leaves early, but not so early that it would be a second wait of the same length.
    let ahead = slowest.min(patience);
    let expected = (tenant.next.early - ahead, overdue_at(tenant.next).min(tenant.next.early + patience));
    let expected = tenant.next.is_known().then_some(expected);
    let open = [after, expected].into_iter().flatten().filter(|&(from, until)| from <= now && now < until);
    open.map(|(_, until)| until).max()
}
