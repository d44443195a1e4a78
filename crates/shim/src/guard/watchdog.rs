//! Blocks that do not leave.
//!
//! Some kernels have blocks that wait for others: for lower-numbered ones of the same grid, or for another stream's kernel.
//! If those were turned away, whoever waits for them stays on the GPU, and its lane never arrives at a gate. Most such
//! kernels are known beforehand and cut in order (`guard::machine`). For the rest this is the second line: what does not
//! arrive in time is given what it waits for, on the helper stream, with a stop word that is always zero. In a lane that
//! has not arrived only one launch can have blocks on the GPU while others of it were turned away, the first that was cut:
//! behind it all leave whole. If that helped, the kernel is not guarded any more.

use model::Nanos;

use super::control::{Aways, LANES};
use super::job::{Part, Plan};
use super::lane::Lane;
use super::resume::is_still;
use super::site::Site;

/// Longer than any block that can sensibly be stopped at its end.
const PATIENCE: Nanos = Nanos::from_millis(250);

pub fn is_due(since: Nanos, now: Nanos) -> bool {
    now.since(since) > PATIENCE
}

/// What to make again, for lanes that should have arrived at these gates.
pub fn plan(site: &'static Site, targets: &[u32; LANES], aways: &Aways<'_>) -> Plan {
    let late = |lane: &Lane| !is_still(*lane, targets[lane.number()]);
    let cut = |lane: &Lane| aways.lane(lane.number()) != 0;
    let mut plan = Plan::new();
    if !site.lanes().any(|lane| late(&lane)) {
        return plan;
    }
    for lane in site.lanes().filter(cut) {
        let stands = lane.arrived() != lane.passed();
        plan.add(lane, if stands { Part::All } else { Part::First });
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_bounded() {
        assert!(!is_due(Nanos::from_millis(10), Nanos::from_millis(200)));
        assert!(is_due(Nanos::from_millis(10), Nanos::from_millis(300)));
    }
}
