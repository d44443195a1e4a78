//! Instructions in which lanes of a warp exchange values: shuffles, votes, match, redux, elect.
//!
//! Each names the lanes that take part. It runs once all of them that have not exited are there; until then a
//! split waits, and grows as others arrive at the same instruction.

use super::lanes::each_lane;
use super::machine::{Flow, Machine};
use super::warp::Waiting;
use crate::error::Fault;
use crate::isa::{Instruction, Slot};

impl Machine<'_> {
    /// The lanes that may carry out the instruction now, given the member masks in `members`; those that may
    /// not are parked. `None` when nobody may.
    fn gate(&mut self, mask: u32, members: Slot) -> Option<u32> {
        let row = self.source::<u32>(members);
        let present = mask | self.warp.dead;
        let ready = each_lane(mask)
            .filter(|lane| row.get(*lane) & !present == 0)
            .fold(0, |all, lane| all | 1 << lane);
        if ready == mask {
            return Some(mask);
        }
        let (next, epoch) = (self.warp.pc, self.warp.epoch);
        let (parked, rest) = (mask & !ready, self.warp.active & !mask);
        if ready == 0 && rest == 0 {
            self.warp.pc = next - 1;
            self.warp.waiting = Waiting::Lanes { epoch };
            return None;
        }
        self.warp.fork(parked, next - 1, Waiting::Lanes { epoch });
        if ready == 0 {
            return None;
        }
        if rest != 0 {
            self.warp.fork(rest, next, Waiting::No);
        }
        Some(ready)
    }

    /// What follows an instruction that went through the gate.
    fn passed(&self) -> Flow {
        if self.warp.others.is_empty() { Flow::Next } else { Flow::Reschedule }
    }
}

/// Runs `f` for the lanes that have come together, or waits.
#[inline(always)]
fn together(m: &mut Machine<'_>, mask: u32, members: Slot, f: impl FnOnce(&mut Machine<'_>, u32)) -> Flow {
    if m.trial.is_some() {
        return Flow::Fault;
    }
    // The usual case: nobody is missing and nobody has a mask of its own.
    let all = m.whole(mask);
    match if all { Some(mask) } else { m.gate(mask, members) } {
        Some(mask) => {
            f(m, mask);
            m.passed()
        }
        None => Flow::Reschedule,
    }
}

pub(crate) const UP: u32 = 0;
pub(crate) const DOWN: u32 = 1;
pub(crate) const BUTTERFLY: u32 = 2;
pub(crate) const INDEX: u32 = 3;

/// `shfl.sync`: value `a`, lane or delta `b`, clamp and segment mask `c`, members `e`; to `d` and, when there
/// is one, the predicate in the list. The mode is in `aux`.
pub(crate) fn shuffle(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    together(m, mask, i.e, |m, mask| {
        let (value, b, c) = (m.source::<u32>(i.a), m.source::<u32>(i.b), m.source::<u32>(i.c));
        let values: [u32; 32] = std::array::from_fn(|lane| value.get(lane));
        let mut valid = 0u32;
        let target = m.target::<u32>(i.d);
        // All operands are read before anything is written: the result may be one of them.
        let picks: [(u32, bool); 32] =
            std::array::from_fn(|lane| pick(i.aux, lane as u32, b.get(lane), c.get(lane)));
        for lane in each_lane(mask) {
            let (from, in_range) = picks[lane];
            let from = if in_range { from as usize } else { lane };
            target.set(lane, values[from]);
            valid |= u32::from(in_range) << lane;
        }
        if i.list != 0 {
            let predicate = m.image.lists[i.list as usize];
            m.set_predicate(predicate, mask, valid);
        }
    })
}

/// The lane read from, and whether it lies in the segment.
#[inline(always)]
fn pick(mode: u32, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let most = (lane & segment) | (clamp & !segment);
    let least = lane & segment;
    match mode {
        UP => (lane.wrapping_sub(b) & 31, lane as i32 - b as i32 >= most as i32),
        DOWN => ((lane + b) & 31, lane + b <= most),
        BUTTERFLY => (lane ^ b, lane ^ b <= most),
        _ => {
            let from = least | (b & !segment);
            (from, from <= most)
        }
    }
}

pub(crate) const ALL: u32 = 0;
pub(crate) const ANY: u32 = 1;
pub(crate) const UNIFORM: u32 = 2;
pub(crate) const BALLOT: u32 = 3;

/// `vote.sync`: predicate `a`, members `e`, to the predicate or register `d`.
pub(crate) fn vote(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    together(m, mask, i.e, |m, mask| {
        let members = m.source::<u32>(i.e);
        let truths = m.predicate(i.a);
        let mut result = 0u32;
        let members: [u32; 32] = std::array::from_fn(|lane| members.get(lane));
        for lane in each_lane(mask) {
            let group = members[lane] & mask;
            let yes = truths & group;
            let holds = match i.aux {
                ALL => yes == group,
                ANY => yes != 0,
                _ => yes == 0 || yes == group,
            };
            result |= u32::from(holds) << lane;
        }
        match i.aux {
            BALLOT => m.fill(i.d, mask, |lane| truths & members[lane] & mask),
            _ => m.set_predicate(i.d, mask, result),
        }
    })
}

/// `activemask`.
pub(crate) fn active_mask(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    m.fill(i.d, mask, |_| mask);
    Flow::Next
}

/// `match.sync`: value `a` (64 bits if `aux & 1`), members `e`, to `d`; `.all` (`aux & 2`) has a predicate in `c`.
pub(crate) fn match_lanes(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    together(m, mask, i.e, |m, mask| {
        let members = m.source::<u32>(i.e);
        let values: [u64; 32] = match i.aux & 1 {
            0 => std::array::from_fn(|lane| u64::from(m.source::<u32>(i.a).get(lane))),
            _ => std::array::from_fn(|lane| m.source::<u64>(i.a).get(lane)),
        };
        let groups: [u32; 32] = std::array::from_fn(|lane| members.get(lane) & mask);
        let target = m.target::<u32>(i.d);
        let mut all = 0;
        for lane in each_lane(mask) {
            let same = each_lane(groups[lane]).filter(|other| values[*other] == values[lane]);
            let same = same.fold(0, |mask, other| mask | 1u32 << other);
            let whole = same == groups[lane];
            all |= u32::from(whole) << lane;
            target.set(lane, if i.aux & 2 != 0 && !whole { 0 } else { same });
        }
        m.set_predicate(i.c, mask, all);
    })
}

pub(crate) const REDUX_ADD: u32 = 0;
pub(crate) const REDUX_MIN: u32 = 1;
pub(crate) const REDUX_MAX: u32 = 2;
pub(crate) const REDUX_AND: u32 = 3;
pub(crate) const REDUX_OR: u32 = 4;
pub(crate) const REDUX_XOR: u32 = 5;
pub(crate) const REDUX_SIGNED: u32 = 8;

/// `redux.sync`: value `a`, members `e`, to `d`.
pub(crate) fn redux(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    together(m, mask, i.e, |m, mask| {
        let (members, value) = (m.source::<u32>(i.e), m.source::<u32>(i.a));
        let values: [u32; 32] = std::array::from_fn(|lane| value.get(lane));
        let groups: [u32; 32] = std::array::from_fn(|lane| members.get(lane) & mask);
        let target = m.target::<u32>(i.d);
        for lane in each_lane(mask) {
            let group = each_lane(groups[lane]).map(|other| values[other]);
            let signed = i.aux & REDUX_SIGNED != 0;
            let result = match i.aux & !REDUX_SIGNED {
                REDUX_ADD => group.reduce(u32::wrapping_add),
                REDUX_MIN if signed => group.map(|x| x as i32).min().map(|x| x as u32),
                REDUX_MIN => group.min(),
                REDUX_MAX if signed => group.map(|x| x as i32).max().map(|x| x as u32),
                REDUX_MAX => group.max(),
                REDUX_AND => group.reduce(|a, b| a & b),
                REDUX_OR => group.reduce(|a, b| a | b),
                _ => group.reduce(|a, b| a ^ b),
            };
            target.set(lane, result.unwrap_or(0));
        }
    })
}

/// `elect.sync`: the lowest member is chosen; its number to `d`, the choice to the predicate in `c`.
pub(crate) fn elect(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    together(m, mask, i.e, |m, mask| {
        let members = m.source::<u32>(i.e);
        let leader: [u32; 32] = std::array::from_fn(|lane| (members.get(lane) & mask).trailing_zeros());
        let chosen =
            each_lane(mask).filter(|lane| leader[*lane] == *lane as u32).fold(0, |all, lane| all | 1 << lane);
        if i.d != Slot::NONE {
            m.fill(i.d, mask, |lane| leader[lane]);
        }
        m.set_predicate(i.c, mask, chosen);
    })
}

/// `bar.warp.sync`: lanes may meet here from different places in the program.
pub(crate) fn warp_barrier(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    if m.trial.is_some() {
        return Flow::Fault;
    }
    if m.whole(mask) {
        return Flow::Next;
    }
    let lane = mask.trailing_zeros() as usize;
    let members = m.source::<u32>(i.e).get(lane);
    let same = each_lane(mask).filter(|lane| m.source::<u32>(i.e).get(*lane) == members);
    let group = same.fold(0u32, |all, lane| all | 1 << lane);
    if group & !members != 0 {
        return m
            .fail(Fault::IllegalInstruction("bar.warp.sync by a lane that is not a member".into()), lane);
    }
    let here =
        m.warp.others.iter().filter(
            |split| matches!(split.waiting, Waiting::Warp { members: other, .. } if other == members),
        );
    let arrived = here.fold(group | m.warp.dead, |all, split| all | split.active);
    let (next, epoch) = (m.warp.pc, m.warp.epoch);
    let complete = members & !arrived == 0;
    if complete {
        for split in &mut m.warp.others {
            if matches!(split.waiting, Waiting::Warp { members: other, .. } if other == members) {
                split.waiting = Waiting::No;
                split.pc += 1;
            }
        }
    }
    let rest = m.warp.active & !mask;
    if rest != 0 {
        m.warp.fork(rest, next, Waiting::No);
    }
    if mask & !group != 0 {
        m.warp.fork(mask & !group, next - 1, Waiting::No);
    }
    if !complete {
        m.warp.pc = next - 1;
        m.warp.waiting = Waiting::Warp { members, epoch };
    }
    if complete && m.warp.others.is_empty() { Flow::Next } else { Flow::Reschedule }
}
