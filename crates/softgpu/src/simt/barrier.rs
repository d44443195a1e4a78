//! The sixteen barriers of a block.
//!
//! Arrival is counted in threads, so that lanes of a diverged warp may come one after the other. A barrier
//! without a count waits for every thread that has not exited; one with a count is met by so many threads,
//! where a warp whose living lanes have all come counts as a whole, as on a card.

use super::machine::{Flow, Machine};
use super::warp::Waiting;
use crate::error::Fault;
use crate::isa::{Instruction, LANES, Slot};

pub(crate) const BARRIERS: usize = 16;
const WARPS: usize = 32;

#[derive(Clone, Copy, Debug, Default)]
struct Barrier {
    generation: u32,
    /// Threads it waits for; zero for all.
    expected: u32,
    arrived: [u32; WARPS],
    /// Of the threads that have arrived, and of the last generation: how many brought a true predicate.
    count: u32,
    truths: u32,
    last_count: u32,
    last_truths: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Barriers {
    /// The last one is the cluster's, which is a single block.
    barriers: [Barrier; BARRIERS + 1],
    /// Barriers at which some thread has arrived.
    pending: u32,
    /// Lanes of each warp that have not exited.
    living: [u32; WARPS],
}

impl Barriers {
    /// A new block with these lanes in each warp.
    pub(crate) fn start(&mut self, lanes: impl Iterator<Item = u32>) {
        for (place, lanes) in self.living.iter_mut().zip(lanes) {
            *place = lanes;
        }
        if self.pending != 0 {
            self.barriers.iter_mut().for_each(Barrier::reset);
            self.pending = 0;
        }
    }

    pub(crate) fn generation(&self, id: u8) -> u32 {
        self.barriers[usize::from(id)].generation
    }

    fn arrive(&mut self, id: usize, warp: usize, lanes: u32, truths: u32, expected: u32) {
        let barrier = &mut self.barriers[id];
        barrier.expected = expected;
        barrier.arrived[warp] |= lanes;
        barrier.count += lanes.count_ones();
        barrier.truths += (truths & lanes).count_ones();
        self.pending |= 1 << id;
        self.check(id);
    }

    /// Lanes that exit count as arrived wherever all threads are waited for.
    pub(crate) fn exit(&mut self, warp: usize, lanes: u32) {
        self.living[warp] &= !lanes;
        for id in 0..=BARRIERS {
            if self.pending >> id & 1 != 0 {
                self.check(id);
            }
        }
    }

    fn check(&mut self, id: usize) {
        let barrier = &self.barriers[id];
        let complete = match barrier.expected {
            0 => barrier.arrived.iter().zip(&self.living).all(|(arrived, living)| living & !arrived == 0),
            expected => {
                let warps = barrier.arrived.iter().zip(&self.living);
                let threads = warps.map(|(arrived, living)| match (arrived, living & !arrived) {
                    (0, _) => 0,
                    (_, 0) => LANES as u32,
                    _ => arrived.count_ones(),
                });
                threads.sum::<u32>() >= expected
            }
        };
        if complete {
            self.barriers[id].complete();
            self.pending &= !(1 << id);
        }
    }
}

impl Barrier {
    fn complete(&mut self) {
        (self.last_count, self.last_truths) = (self.count, self.truths);
        self.reset();
        self.generation = self.generation.wrapping_add(1);
    }

    fn reset(&mut self) {
        (self.expected, self.arrived, self.count, self.truths) = (0, [0; WARPS], 0, 0);
    }
}

/// What a barrier instruction does, in its `aux`.
pub(crate) const SYNC: u32 = 0;
pub(crate) const ARRIVE: u32 = 1;
pub(crate) const RED_POPC: u32 = 2;
pub(crate) const RED_AND: u32 = 3;
pub(crate) const RED_OR: u32 = 4;

/// `barrier`: number in `a`, thread count in `b` (or none), predicate in `c`, result in `d`.
pub(crate) fn barrier(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    if m.trial.is_some() {
        return Flow::Fault;
    }
    let lane = mask.trailing_zeros() as usize;
    let id = m.source::<u32>(i.a).get(lane) as usize;
    let expected = if i.b == Slot::NONE { 0 } else { m.source::<u32>(i.b).get(lane) };
    let uneven = i.b != Slot::NONE && (expected == 0 || !(expected as usize).is_multiple_of(LANES));
    if id > BARRIERS || uneven {
        return m.fail(Fault::IllegalInstruction(format!("barrier {id} of {expected} threads")), lane);
    }
    let truths = if i.c == Slot::NONE { 0 } else { m.predicate(i.c) };
    let generation = m.state.barriers.generation(id as u8);
    m.state.barriers.arrive(id, m.warp.index as usize, mask, truths, expected);
    if i.aux == ARRIVE {
        return Flow::Next;
    }
    let wait = Waiting::Barrier { id: id as u8, generation };
    if mask == m.warp.active {
        m.warp.waiting = wait;
    } else {
        let next = m.warp.pc;
        m.warp.fork(mask, next, wait);
    }
    Flow::Reschedule
}

impl Machine<'_> {
    /// The current split goes on after a barrier: its result is there.
    pub(crate) fn finish_barrier(&mut self, id: u8) {
        let i = &self.image.code[self.warp.pc as usize - 1];
        let barrier = &self.state.barriers.barriers[usize::from(id)];
        let (count, truths) = (barrier.last_count, barrier.last_truths);
        let active = self.warp.active;
        match i.aux {
            RED_POPC => self.fill(i.d, active, |_| truths),
            RED_AND => self.set_predicate(i.d, active, if truths == count { u32::MAX } else { 0 }),
            RED_OR => self.set_predicate(i.d, active, if truths > 0 { u32::MAX } else { 0 }),
            _ => {}
        }
    }
}
