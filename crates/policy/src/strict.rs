//! Best-effort work only when no latency tenant has any.
//!
//! The plain promise: while a request is under way, nobody else is on the GPU, not even between two of its kernels. When the
//! last one is done, best-effort work stays away for a while yet, `quiet`: requests come in bursts, and whoever starts at once
//! only has to be stopped again. Where the tenant has been seen to need longer between two requests that were both there
//! (`Latency::lull`), it is that long. After that anything may run, however long it takes to stop: what arrives next waits
//! for that, and for nothing else.
//!
//! It needs no profile and no objective, so it is what the other policies come back to where they know nothing.

use model::{LONGEST_LULL, Nanos};

use crate::grant;
use crate::{Activity, Decision, Latency, View, Why};

pub fn decide(view: &View) -> Decision {
    keep_away(view).unwrap_or_else(|| grant::anything(view))
}

/// Nobody, and why, if this is no moment for best-effort work.
pub(crate) fn keep_away(view: &View) -> Option<Decision> {
    if view.latency.iter().any(|tenant| tenant.is_active()) {
        return Some(Decision::nobody(Why::LatencyWork, Nanos::MAX));
    }
    quiet_until(view).map(|end| Decision::nobody(Why::Quiet, end))
}

/// When the last of the quiet windows ends, if one is open.
pub(crate) fn quiet_until(view: &View) -> Option<Nanos> {
    ended(view.latency, view.dials.quiet, view.now)
}

/// When the last window of this length ends, if one is open.
pub(crate) fn ended(latency: &[Latency], quiet: Nanos, now: Nanos) -> Option<Nanos> {
    latency.iter().filter_map(|tenant| window(tenant, quiet, now)).max()
}

/// When the window that opened with the end of a tenant's work ends. It is bounded, whatever the tenant says of itself. The end of
/// work may lie a little ahead, for clocks of two processes are compared; one that lies further ahead than a window is
/// nonsense, and opens none.
pub(crate) fn window(tenant: &Latency, quiet: Nanos, now: Nanos) -> Option<Nanos> {
    let Activity::Idle { since: Some(since) } = tenant.activity else { return None };
    let quiet = quiet.max(tenant.lull.min(LONGEST_LULL));
    let end = since + quiet;
    (now < end && since <= now + quiet).then_some(end)
}
