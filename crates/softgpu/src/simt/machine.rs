//! What an instruction works on, and the loop that carries instructions out.

use super::block::BlockState;
use super::clock::Trial;
use super::launch::{Clock, Launch};
use super::warp::Warp;
use crate::error::{Access, Fault};
use crate::isa::{Image, Instruction, PoolRow, Slot};
use crate::memory::AddressSpace;

/// What happens after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next instruction of this split, at the program counter.
    Next,
    /// Splits were made, merged, parked or ended: choose one.
    Reschedule,
    /// The warp has polled memory for a while: let others run.
    Yield,
    /// The fuel of this turn is used up.
    Spent,
    /// A lane faulted; [`Machine::fault`] says how.
    Fault,
    /// A clock loop came round and its end can be computed.
    ClockLoop,
}

/// One warp at work: everything its instructions can reach.
pub struct Machine<'a> {
    pub(crate) warp: &'a mut Warp,
    pub(crate) state: &'a mut BlockState,
    pub(crate) launch: &'a Launch,
    pub(crate) image: &'a Image,
    pub(crate) pool: &'a [PoolRow],
    pub(crate) space: &'a AddressSpace,
    pub(crate) clock: &'a mut dyn Clock,
    /// Instructions left in this turn, and what was left when the clock was last told.
    pub(crate) fuel: u32,
    pub(crate) told: u32,
    /// Set while a loop is only tried out at a hypothetical time.
    pub(crate) trial: Option<Box<Trial>>,
    /// What went wrong, and in which lane.
    pub(crate) fault: Option<(Fault, usize)>,
}

impl Machine<'_> {
    /// Tells the clock what has been executed.
    pub(crate) fn tell_clock(&mut self) {
        self.clock.executed(self.told - self.fuel);
        self.told = self.fuel;
    }

    /// Runs the current split. In a diverged warp it stops at every start of a basic block.
    pub(crate) fn go<const DIVERGED: bool>(&mut self) -> Flow {
        let code = &self.image.code[..];
        let mut first = true;
        loop {
            let i = &code[self.warp.pc as usize];
            if DIVERGED && i.leader && !first {
                return Flow::Reschedule;
            }
            first = false;
            if self.fuel == 0 {
                return Flow::Spent;
            }
            self.fuel -= 1;
            let flow = self.step(i);
            if flow != Flow::Next {
                return flow;
            }
        }
    }

    /// Carries out one instruction of the current split.
    #[inline(always)]
    pub(crate) fn step(&mut self, i: &Instruction) -> Flow {
        self.warp.pc += 1;
        let mut mask = self.warp.active;
        if i.guard != Slot::TRUE {
            mask &= self.predicate(i.guard);
            if mask == 0 {
                return Flow::Next;
            }
        }
        // SAFETY: lowering picks functions whose instruction sets this processor has.
        unsafe { (i.run)(self, i, mask) }
    }

    #[cold]
    pub(crate) fn fail(&mut self, fault: Fault, lane: usize) -> Flow {
        self.fault = Some((fault, lane));
        Flow::Fault
    }

    #[cold]
    pub(crate) fn illegal_address(&mut self, lane: usize, address: u64, size: u32, access: Access) -> Flow {
        self.fail(Fault::IllegalAddress { address, size, access }, lane)
    }
}
