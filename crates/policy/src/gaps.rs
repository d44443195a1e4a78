//! Gaps inside a request are filled with what fits.
//!
//! A latency tenant that is bound by its launches leaves the GPU idle for most of a request: its process prepares the next kernel
//! while nothing runs. When what it has launched will have run (`busy_until`) and when it launches next (`next`) are learned;
//! what lies between is a gap. The end of a gap is taken early, so that nine of ten are at least as long; gaps expected to be
//! shorter than `threshold` are left alone, since to start and to stop takes a few microseconds too. Between requests this is
//! `strict`.
//!
//! **What fits.** Work that can be stopped between blocks fits into any gap that is longer than its certificate: it runs, and
//! leaves so early that the last of its blocks is done when the gap ends. The grant says so by a moment (`until`) and no
//! length. Work that can only be held runs to its end once it was started, so that its next kernel has to fit as a whole, and
//! one tenant at a time is let in, for two at once would take longer than each was seen to take. Which one, [`best_fit`] says.
//!
//! **Two pieces.** Whoever fills a gap may have two pieces outstanding (`Decision::pieces`): while one runs, the next lies behind
//! it in the stream, and the GPU goes on without waiting for the host. One would cost a round trip for each piece, a third
//! has nothing to add but what must be turned away at the end. As time, `in_flight` bounds them; for pieces that cannot be
//! turned away, so does the rest of the gap ([`Decision::takes`] adds them up).

use core::cmp::Reverse;

use model::Nanos;

use crate::{Activity, BestEffort, Decision, Latency, View, Who, Why, fair, grant, strict};

/// How many pieces may be outstanding in a gap.
pub const OUTSTANDING: u32 = 2;

/// When nothing is expected to happen any more, how soon to look whether a forecast has changed.
const LOOK: Nanos = Nanos::from_micros(100);

/// A time in which the active latency tenants are expected to leave the GPU alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub start: Nanos,
    pub end: Nanos,
}

/// A kernel that somebody would run next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub seat: u32,
    pub priority: u32,
    pub takes: Nanos,
}

pub fn decide(view: &View) -> Decision {
    if !view.latency.iter().any(|tenant| tenant.is_active()) {
        return strict::decide(view);
    }
    if let Some(end) = strict::quiet_until(view) {
        return Decision::nobody(Why::Quiet, end);
    }
    match common(view) {
        None => Decision::nobody(Why::LatencyWork, Nanos::MAX),
        Some(gap) => use_or_leave(view, gap),
    }
}

/// FIKIT's rule: of the highest priority at which anything fits, the piece that leaves the least of the gap unused. Equal
/// ones go by seat.
pub fn best_fit(pieces: impl IntoIterator<Item = Piece>, gap: Nanos) -> Option<Piece> {
    let fitting = pieces.into_iter().filter(|piece| piece.takes <= gap && gap > Nanos::ZERO);
    fitting.min_by_key(|piece| (Reverse(piece.priority), gap - piece.takes, piece.seat))
}

/// The gap that one tenant leaves; `None`: nothing is known about it.
pub(crate) fn of(tenant: &Latency) -> Option<Gap> {
    tenant.next.is_known().then_some(Gap { start: tenant.busy_until, end: tenant.next.early })
}

/// The gap that all active tenants leave at the same time, and into which no other is expected to come.
fn common(view: &View) -> Option<Gap> {
    let mut all = Gap { start: Nanos::ZERO, end: Nanos::MAX };
    for tenant in view.latency {
        match (tenant.activity, of(tenant)) {
            (Activity::Active { .. }, gap) => {
                let gap = gap?;
                all = Gap { start: all.start.max(gap.start), end: all.end.min(gap.end) };
            }
            (Activity::Idle { .. }, Some(gap)) if gap.end > view.now => all.end = all.end.min(gap.end),
            (Activity::Idle { .. }, _) => {}
        }
    }
    Some(all)
}

/// Whether a gap is worth being used at this moment. Whoever runs in it already is not sent away because the rest of it would
/// not be worth a start.
pub(crate) fn is_worth(gap: Gap, view: &View) -> bool {
    let running = view.best_effort.iter().any(|tenant| tenant.runs);
    let from = if running { gap.start } else { gap.start.max(view.now) };
    gap.end.since(from) >= view.dials.threshold && gap.end > view.now
}

/// When to look again at a gap that is not used.
pub(crate) fn look_again(gap: Gap, view: &View) -> Nanos {
    gap.end.max(view.now).min(view.now + Nanos::from_millis(1)) + view.dials.threshold.max(LOOK)
}

fn use_or_leave(view: &View, gap: Gap) -> Decision {
    if !is_worth(gap, view) {
        return Decision::nobody(Why::ShortGap, look_again(gap, view));
    }
    if view.now < gap.start {
        return Decision::nobody(Why::LatencyWork, gap.start);
    }
    fill(view, gap)
}

/// Lets in who fits.
pub(crate) fn fill(view: &View, gap: Gap) -> Decision {
    if grant::interested(view).next().is_none() {
        return Decision::nobody(Why::NothingToDo, Nanos::MAX);
    }
    let grant = Decision {
        who: Who::Nobody,
        longest: Nanos::ZERO,
        until: gap.end,
        in_flight: view.dials.in_flight.min(gap.end.since(view.now)),
        pieces: OUTSTANDING,
        again: gap.end,
        lead: None,
        confined: 0,
        why: Why::Gap,
    };
    let left = gap.end.since(view.now);
    let candidates = grant::interested(view).filter(|tenant| fits(tenant, left));
    let who = if view.exclusive {
        // Only who has its turn: a gap inside a request is no time to change contexts among best-effort tenants.
        fair::holder(grant::interested(view))
            .filter(|tenant| fits(tenant, left))
            .map(|tenant| Who::One(tenant.seat))
    } else if candidates.clone().all(|tenant| tenant.piece.is_none()) {
        candidates.clone().next().map(|_| Who::All)
    } else {
        // Who can be stopped at any time fills the gap to its end.
        let piece = |tenant: &BestEffort| Piece {
            seat: tenant.seat,
            priority: tenant.priority,
            takes: tenant.piece.map_or(left, |piece| piece.max(tenant.certificate)),
        };
        best_fit(candidates.map(piece), left).map(|piece| Who::One(piece.seat))
    };
    match who {
        Some(who) => Decision { who, ..grant },
        None => Decision::nobody(Why::ShortGap, look_again(gap, view)),
    }
}

/// Whether somebody has something to gain from what is left of a gap.
fn fits(tenant: &BestEffort, left: Nanos) -> bool {
    match tenant.piece {
        Some(piece) => piece.max(tenant.certificate) <= left,
        None => tenant.certificate < left,
    }
}
