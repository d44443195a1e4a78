//! REEF: stop at once, by killing, and do again what was killed.
//!
//! *Idea.* A real-time task is served the moment it arrives: queues of best-effort work are emptied and everything that runs
//! is killed. That is correct if kernels are idempotent: afterwards the last few are simply executed again. Best-effort work
//! runs when no real-time task is there. (Its *padding*, which puts best-effort blocks beside a real-time kernel by offline
//! tables, is not modelled.) On NVIDIA's cards nothing can be killed: REEF-N empties the queues and waits for the running kernel.
//!
//! *Source.* OSDI'22; the open code of its server: at most two kernels are in the device's queue.
//!
//! *Known weakness.* Work is done twice, the more often requests come and the longer kernels are: a kernel longer than every pause never
//! ends. It needs idempotent kernels. REEF-N waits for a whole kernel.

use model::Nanos;
use policy::{Decision, Why};

use super::{active, anything, nobody};
use crate::{Means, Scene, Scheduler, StopAt};

/// How many kernels before the running one are executed again: the device's queue holds two, and the host does not know
/// which of them were done.
const REDO: u32 = 1;

#[derive(Clone, Copy, Debug)]
pub struct Reef {
    stop: StopAt,
}

impl Reef {
    /// As on the card it was made for.
    pub fn killing() -> Reef {
        Reef { stop: StopAt::Anywhere { redo: REDO } }
    }

    /// As on NVIDIA's.
    pub fn waiting() -> Reef {
        Reef { stop: StopAt::Kernel }
    }
}

impl Scheduler for Reef {
    fn name(&self) -> &'static str {
        if self.stop == StopAt::Kernel { "reef-n" } else { "reef" }
    }

    fn means(&self) -> Means {
        Means { stop: self.stop, tax: Some(1.0), ..Means::ebb() }
    }

    fn asks_in_gaps(&self) -> Option<Nanos> {
        None
    }

    fn decide(&mut self, scene: &Scene) -> Decision {
        if active(scene).next().is_some() { nobody() } else { anything(Why::Idle) }
    }
}
