//! Hummingbird: split kernels, harvest bubbles, consolidate when it is quiet.
//!
//! *Idea.* A best-effort kernel is launched as pieces of one full wave of blocks, one after the other, each when the one before it is
//! predicted to be done (the *kernel tick*, which saves a synchronisation for each piece). Whenever the high-priority task leaves
//! the GPU idle, be it for a bubble inside a request, pieces go in; when it launches, no more are issued, so it waits for
//! one piece at most. When it has been idle for longer than its bubbles are, the rest of a kernel is issued as a whole.
//!
//! *Source.* arXiv 2601.04071 (abstract, and notes on its sections 4 to 6): splitting alone costs best-effort work 37%; a port by others was
//! a fifth behind a plain context switch.
//!
//! *Known weakness.* The splitting tax, in every bubble; and consolidation re-opens what splitting had closed: a request after a long
//! pause waits for a whole kernel.

use model::Nanos;
use policy::{Decision, Why};

use super::{anything, idle_since, nobody};
use crate::{Means, Scene, Scheduler, StopAt};

/// What is left of the speed of best-effort work when its kernels are split.
const SPEED: f64 = 0.63;
/// Just above the bubbles of a request.
const CONSOLIDATE: Nanos = Nanos::from_micros(200);
/// From the end of the task's last kernel until a marker event has shown it.
const MARKER: Nanos = Nanos::from_micros(5);

#[derive(Clone, Copy, Debug, Default)]
pub struct Hummingbird;

impl Scheduler for Hummingbird {
    fn name(&self) -> &'static str {
        "hummingbird"
    }

    fn means(&self) -> Means {
        Means { stop: StopAt::Piece, tax: Some(1.0 / SPEED), whole_after: Some(CONSOLIDATE), ..Means::ebb() }
    }

    fn asks_in_gaps(&self) -> Option<Nanos> {
        Some(MARKER)
    }

    fn decide(&mut self, scene: &Scene) -> Decision {
        match idle_since(scene) {
            None => nobody(),
            Some(since) if scene.now < since + MARKER => Decision::nobody(Why::ShortGap, since + MARKER),
            Some(_) if super::active(scene).next().is_some() => anything(Why::Gap),
            Some(_) => anything(Why::Idle),
        }
    }
}
