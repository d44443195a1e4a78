//! `mbarrier` objects: barriers that live in shared memory, 64 bits each.
//!
//! A block runs on one host thread, so the object needs no atomic updates. The word holds the phase, the
//! arrivals still missing in it, and how many the next phase wants; PTX leaves the layout to the machine.

use super::access::{Memory, NARROW};
use super::address::{GENERIC, SHARED};
use super::lanes::each_lane;
use super::machine::{Flow, Machine};
use crate::error::{Access, Fault};
use crate::isa::{Instruction, Slot};

/// The wait is for a parity, not for a state.
pub(crate) const PARITY: u32 = 1 << 12;

const COUNT_BITS: u32 = 20;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
const PHASE: u64 = 1 << 63;

#[derive(Clone, Copy)]
struct Word(u64);

impl Word {
    fn new(phase: u64, pending: u64, expected: u64) -> Word {
        Word(phase | pending << COUNT_BITS | expected)
    }

    fn phase(self) -> u64 {
        self.0 & PHASE
    }

    fn pending(self) -> u64 {
        self.0 >> COUNT_BITS & COUNT
    }

    fn expected(self) -> u64 {
        self.0 & COUNT
    }

    /// After `count` arrivals, the last of which completes the phase. `None` if there are too many.
    fn arrive(self, count: u64) -> Option<Word> {
        let left = self.pending().checked_sub(count)?;
        Some(match left {
            0 => Word::new(self.phase() ^ PHASE, self.expected(), self.expected()),
            left => Word::new(self.phase(), left, self.expected()),
        })
    }
}

impl Machine<'_> {
    /// Where a lane's object lies.
    fn object(&mut self, i: &Instruction, lane: usize) -> Result<*mut u8, Flow> {
        let address = self.address(i, lane);
        let generic = address >= super::address::PARAM_OFFSET && i.aux & NARROW == 0;
        match generic {
            true => self.aligned::<GENERIC>(lane, address, 8, Access::Atomic),
            false => self.aligned::<SHARED>(lane, address, 8, Access::Atomic),
        }
    }
}

/// Applies `f` to the object of each lane: from the lane, the operand in `b` and the word to the new word.
fn each(
    m: &mut Machine<'_>,
    i: &Instruction,
    mask: u32,
    mut f: impl FnMut(&mut Machine<'_>, usize, u64, Word) -> Option<Word>,
) -> Flow {
    if m.trial.is_some() {
        return Flow::Fault;
    }
    for lane in each_lane(mask) {
        let place = match m.object(i, lane) {
            Ok(place) => place,
            Err(flow) => return flow,
        };
        let operand = u64::from(m.source::<u32>(i.b).get(lane));
        // SAFETY: `object` gave a place for eight aligned bytes.
        let word = Word(unsafe { u64::load(place) });
        let Some(word) = f(m, lane, operand, word) else {
            return m.fail(Fault::IllegalInstruction("more arrivals than an mbarrier expects".into()), lane);
        };
        // SAFETY: as above.
        unsafe { u64::store(place, word.0) };
    }
    Flow::Next
}

/// `mbarrier.init` for the count in `b`.
pub(crate) fn init(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    each(m, i, mask, |_, _, count, _| Some(Word::new(0, count & COUNT, count & COUNT)))
}

fn note(m: &mut Machine<'_>, i: &Instruction, lane: usize, word: Word) {
    if i.d != Slot::NONE {
        m.target::<u64>(i.d).set(lane, word.0);
    }
}

/// `mbarrier.arrive`: the state before goes to `d`.
pub(crate) fn arrive(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    each(m, i, mask, |m, lane, count, word| {
        note(m, i, lane, word);
        word.arrive(count)
    })
}

/// `mbarrier.arrive_drop`: later phases want fewer.
pub(crate) fn arrive_and_drop(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    each(m, i, mask, |m, lane, count, word| {
        note(m, i, lane, word);
        let expected = word.expected().checked_sub(count)?;
        Word::new(word.phase(), word.pending(), expected).arrive(count)
    })
}

/// `mbarrier.test_wait`, `try_wait`: whether the phase of a state, or of a parity, is over.
pub(crate) fn test_wait(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    m.warp.polled = true;
    let mut over = 0;
    for lane in each_lane(mask) {
        let place = match m.object(i, lane) {
            Ok(place) => place,
            Err(flow) => return flow,
        };
        // SAFETY: `object` gave a place for eight aligned bytes.
        let word = Word(unsafe { u64::load(place) });
        let phase = match i.aux & PARITY {
            0 => Word(m.source::<u64>(i.b).get(lane)).phase(),
            _ => u64::from(m.source::<u32>(i.b).get(lane) & 1) << 63,
        };
        over |= u32::from(word.phase() != phase) << lane;
    }
    m.set_predicate(i.d, mask, over);
    Flow::Next
}

/// `mbarrier.pending_count` of the state in `a`.
pub(crate) fn pending_count(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    m.map1(i, mask, |state: u64| Word(state).pending() as u32);
    Flow::Next
}
