//! FIKIT: fill the gaps between a task's kernels with kernels that are known to fit.
//!
//! *Idea.* Every kernel's duration and the gap behind it are measured offline. When a high-priority task launches a kernel, the
//! gap that will follow is looked up, and filled with kernels of lower-priority tasks: of the highest priority at which any
//! fits, the one that fits best (BestPrioFit), again and again until nothing fits. Nothing that runs is ever stopped.
//!
//! *Source.* arXiv 2311.10359, abstract of v5 and a summary of its body.
//!
//! *Known weakness.* A kernel that was started runs to its end: whoever arrives unexpectedly, between requests above all, waits for
//! a whole one. The table is of typical gaps; where a gap is shorter than usual, the filling overlaps.

use forecast::Recent;
use model::Nanos;
use policy::gaps::{Piece, best_fit};
use policy::{Decision, Who, Why};

use super::{active, anything, nobody};
use crate::{Means, Scene, Scheduler, StopAt};

/// Gaps of which less is left are not worth a launch.
const MARGIN: Nanos = Nanos::from_micros(10);

/// The table, by tenant and by place in the request.
#[derive(Default)]
pub struct Fikit {
    gaps: Vec<Vec<Recent<29>>>,
    /// For each tenant, the gap that was looked up last: the call that ends it, and when the table says that it ends.
    looked_up: Vec<Option<(Nanos, Nanos)>>,
}

impl Fikit {
    /// When the table says that the gap ends which the host will end by `call`.
    fn end(&mut self, seat: usize, place: usize, now: Nanos, call: Nanos) -> Nanos {
        self.gaps.resize_with(self.gaps.len().max(seat + 1), Vec::new);
        self.looked_up.resize(self.gaps.len(), None);
        if let Some((_, end)) = self.looked_up[seat].filter(|&(which, _)| which == call) {
            return end;
        }
        let places = &mut self.gaps[seat];
        places.resize_with(places.len().max(place + 1), Recent::new);
        // The offline pass has seen each gap before the first one is filled.
        places[place].observe(call.since(now));
        let end = now + places[place].tenth(5);
        self.looked_up[seat] = Some((call, end));
        end
    }
}

impl Scheduler for Fikit {
    fn name(&self) -> &'static str {
        "fikit"
    }

    fn means(&self) -> Means {
        Means { stop: StopAt::Kernel, tax: Some(1.0), ..Means::ebb() }
    }

    fn asks_in_gaps(&self) -> Option<Nanos> {
        Some(MARGIN)
    }

    fn decide(&mut self, scene: &Scene) -> Decision {
        let mut end = Nanos::MAX;
        for facts in active(scene) {
            let Some(call) = facts.next_call else { return nobody() };
            end = end.min(self.end(facts.seat as usize, facts.step as usize, scene.now, call));
        }
        if end == Nanos::MAX {
            return anything(Why::Idle);
        }
        let left = end.since(scene.now);
        let pieces = scene.tenants.iter().filter(|facts| facts.wants);
        let pieces =
            pieces.map(|facts| Piece { seat: facts.seat, priority: facts.priority, takes: facts.piece });
        match best_fit(pieces, left) {
            Some(piece) => Decision {
                longest: Nanos::ZERO,
                until: end,
                again: scene.now + piece.takes.max(MARGIN),
                why: Why::Gap,
                ..Decision::anything(Who::One(piece.seat), Nanos::MAX)
            },
            None => Decision::nobody(Why::ShortGap, Nanos::MAX),
        }
    }
}
