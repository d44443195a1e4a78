//! To whom a grant goes: what all policies have in common once they know what may be started.
//!
//! In the shared domain to everybody who can use it: whose work is short enough is told by its certificate, launch by
//! launch. In the isolated domain to one, because two best-effort contexts with the shortest slice bring each other to a
//! standstill; which one, `fair` says.

use model::Nanos;

use crate::fair;
use crate::{BestEffort, Decision, View, Who, Why};

/// Who has work, on the GPU or before it. Whoever has ceased to want but is still running must not be stopped for that.
pub(crate) fn interested<'a>(view: &View<'a>) -> impl Iterator<Item = &'a BestEffort> + Clone {
    view.best_effort.iter().filter(|tenant| tenant.wants || tenant.runs)
}

/// Anything may run.
pub(crate) fn anything(view: &View) -> Decision {
    to_whom(view, Decision::anything(Who::All, view.dials.in_flight))
}

/// Fills in who is meant.
pub(crate) fn to_whom(view: &View, grant: Decision) -> Decision {
    if interested(view).next().is_none() {
        return Decision::nobody(Why::NothingToDo, Nanos::MAX);
    }
    if !view.exclusive {
        return Decision { who: Who::All, ..grant };
    }
    // Who can be stopped in time goes before who cannot, unless the latter has the GPU already: its token is not moved here.
    let fits = |tenant: &&BestEffort| tenant.certificate <= grant.longest_at(view.now);
    let turn = fair::turn(interested(view).filter(|tenant| tenant.runs))
        .or_else(|| fair::turn(interested(view).filter(fits)))
        .or_else(|| fair::turn(interested(view)));
    match turn {
        Some(tenant) => Decision { who: Who::One(tenant.seat), ..grant },
        None => Decision::nobody(Why::NothingToDo, Nanos::MAX),
    }
}
