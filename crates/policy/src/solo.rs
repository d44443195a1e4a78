//! A request seen alone.
//!
//! How much a tenant is slowed down can only be said by whoever knows what it takes alone. Most tenants are alone often
//! enough; where they are not, a small share of requests (`solo_share`) is chosen, and for those best-effort work is kept away.
//! Which ones, whoever observes the tenant says; here only what follows.
//!
//! While such a request is under way, nobody else runs. But it must not find anybody on the GPU when it comes either, or it
//! would pay for the stop and not be what it is alone. So best-effort work stays away before: from the end of the request before
//! it, and again from when it is expected, if that is known, early enough to be off. What if it does not come? Then nothing
//! is to be seen, and best-effort work goes on: neither wait is longer than [`PATIENCE`]. The observer sees that the request
//! was not alone, and chooses another.

use model::Nanos;

use crate::slo::overdue_at;
use crate::{Activity, Decision, Latency, View, Why, grant};

/// How long a request that is to be seen alone is waited for.
pub const PATIENCE: Nanos = Nanos::from_millis(10);

/// Nobody, if somebody is to be seen alone now.
pub(crate) fn keep_away(view: &View) -> Option<Decision> {
    let slowest = grant::interested(view).map(|tenant| tenant.certificate).max().unwrap_or_default();
    let chosen = view.latency.iter().filter(|tenant| tenant.solo);
    let again = chosen.filter_map(|tenant| kept_until(tenant, slowest, view.now)).max()?;
    Some(Decision::nobody(Why::Solo, again))
}

/// Until when others stay away from this tenant; [`Nanos::MAX`]: until its request is done.
fn kept_until(tenant: &Latency, slowest: Nanos, now: Nanos) -> Option<Nanos> {
    let Activity::Idle { since } = tenant.activity else { return Some(Nanos::MAX) };
    let after = since.map(|since| (since, since + PATIENCE));
    // Who takes long to stop leaves early, but not so early that it would be a second wait of the same length.
    let ahead = slowest.min(PATIENCE);
    let expected = (tenant.next.early - ahead, overdue_at(tenant.next).min(tenant.next.early + PATIENCE));
    let expected = tenant.next.is_known().then_some(expected);
    let open = [after, expected].into_iter().flatten().filter(|&(from, until)| from <= now && now < until);
    open.map(|(_, until)| until).max()
}
