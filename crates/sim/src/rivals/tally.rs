//! Tally: transformed kernels that can be told to retreat, and a threshold.
//!
//! *Idea.* Every best-effort kernel is rewritten into persistent workers that look at a flag between two blocks. When the
//! high-priority client has a kernel, the flag is raised and blocks that run finish. Best-effort work comes back when that client has
//! been idle for 0.1 ms; after 100 ms of idleness the original kernels are used.
//!
//! *Source.* ASPLOS'25; the open code of its server, and the figures of its artifact: the transformation costs best-effort work about 14%.
//!
//! *Known weakness.* Gaps under 100 µs are never used, which are nearly all of those inside a request; and one kernel at a time is in
//! flight, so the GPU waits for the host before each.

use model::Nanos;
use policy::{Decision, Why};

use super::{anything, idle_since, nobody};
use crate::{Means, Scene, Scheduler, StopAt};

/// How long the other must have been idle.
pub const THRESHOLD: Nanos = Nanos::from_micros(100);
/// How long until originals are used.
const ORIGINALS: Nanos = Nanos::from_millis(100);
/// What the transformation leaves of the speed.
const SPEED: f64 = 0.86;
/// From a kernel's end until the host has seen it and the next one has begun.
const ROUND_TRIP: Nanos = Nanos::from_micros(8);

#[derive(Clone, Copy, Debug, Default)]
pub struct Tally;

impl Scheduler for Tally {
    fn name(&self) -> &'static str {
        "tally"
    }

    fn means(&self) -> Means {
        Means {
            stop: StopAt::Block,
            tax: Some(1.0 / SPEED),
            round_trip: ROUND_TRIP,
            whole_after: Some(ORIGINALS),
        }
    }

    fn asks_in_gaps(&self) -> Option<Nanos> {
        Some(THRESHOLD)
    }

    fn decide(&mut self, scene: &Scene) -> Decision {
        match idle_since(scene) {
            None => nobody(),
            Some(since) if since > Nanos::ZERO && scene.now < since + THRESHOLD => {
                Decision::nobody(Why::ShortGap, since + THRESHOLD)
            }
            Some(_) => anything(Why::Idle),
        }
    }
}
