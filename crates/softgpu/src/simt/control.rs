//! Branches, calls, returns, and the ways a thread can end.

use super::lanes::{RegisterRow, each_lane};
use super::machine::{Flow, Machine};
use super::warp::{Frame, Waiting};
use crate::error::Fault;
use crate::isa::{Instruction, Slot};

/// Rows of registers one warp may stack up by calls: 128 MiB.
const MOST_ROWS: usize = 1 << 20;
/// What a call costs of the stack besides the local variables of the callee: what a card saves there.
pub(crate) const CALL_BYTES: u32 = 16;
/// The window of local memory is 16 MiB, and CUDA allows a thread 512 KiB.
pub(crate) const MOST_LOCAL: u32 = 512 << 10;

/// `bra` forwards; the target is in `aux`.
pub(crate) fn branch(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    if mask == m.warp.active {
        m.warp.pc = i.aux;
        return Flow::Next;
    }
    m.warp.fork(mask, i.aux, Waiting::No);
    Flow::Reschedule
}

/// `bra` backwards: a loop comes round.
pub(crate) fn branch_back(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    let whole = mask == m.warp.active;
    if whole {
        m.warp.pc = i.aux;
    } else {
        m.warp.fork(mask, i.aux, Waiting::No);
    }
    match (m.warp.round(), whole) {
        (Flow::Next, false) => Flow::Reschedule,
        (flow, _) => flow,
    }
}

/// `bra` backwards in a loop that may only wait for a clock.
pub(crate) fn branch_clock(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    let flow = branch_back(m, i, mask);
    let hope = m.warp.others.is_empty() && !m.warp.hopeless.contains(&i.aux);
    if flow == Flow::Next && hope { Flow::ClockLoop } else { flow }
}

/// `brx.idx`: index in `a`, number of targets in `aux`, targets in the list.
pub(crate) fn branch_indexed(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    let index = m.source::<u32>(i.a);
    let mut left = mask;
    while left != 0 {
        let lane = left.trailing_zeros() as usize;
        let chosen = index.get(lane);
        if chosen >= i.aux {
            return m.fail(Fault::InvalidProgramCounter { target: u64::from(chosen) }, lane);
        }
        let target = m.image.lists[(i.list + chosen) as usize].0;
        let group =
            each_lane(left).filter(|lane| index.get(*lane) == chosen).fold(0, |all, lane| all | 1 << lane);
        left &= !group;
        if group == m.warp.active {
            m.warp.pc = target;
            return Flow::Next;
        }
        m.warp.fork(group, target, Waiting::No);
    }
    Flow::Reschedule
}

/// `ret` from a kernel, and `exit`.
pub(crate) fn exit(m: &mut Machine<'_>, _: &Instruction, mask: u32) -> Flow {
    if m.trial.is_some() {
        // Whoever leaves the program leaves the loop.
        return Flow::Reschedule;
    }
    m.warp.dead |= mask;
    m.warp.active &= !mask;
    m.warp.epoch = m.warp.epoch.wrapping_add(1);
    m.state.barriers.exit(m.warp.index as usize, mask);
    if m.warp.active == 0 { Flow::Reschedule } else { Flow::Next }
}

/// `ret` from a device function.
pub(crate) fn ret(m: &mut Machine<'_>, _: &Instruction, mask: u32) -> Flow {
    let split = mask != m.warp.active;
    if split {
        let (stay, next) = (m.warp.active & !mask, m.warp.pc);
        m.warp.fork(stay, next, Waiting::No);
    }
    let frame = m.warp.frames[m.warp.frame as usize];
    let call = &m.image.code[frame.return_pc as usize - 1];
    let results = m.image.functions[frame.function as usize].parameter_rows;
    let callee_base = m.warp.base as u32 + results;
    m.warp.leave_frame();
    let (list, shift) = (call.list as usize, m.warp.base as u32);
    let arguments = m.image.lists[list].0 as usize;
    let count = m.image.lists[list + 1].0;
    for number in 0..count {
        let place = m.image.lists[list + 2 + arguments + number as usize];
        copy_row(m, Slot(callee_base + number - shift), place, mask);
    }
    m.warp.pc = frame.return_pc;
    if split || !m.warp.others.is_empty() { Flow::Reschedule } else { Flow::Next }
}

/// A direct call: the function is in `aux`. The list holds the number of argument rows, of result rows, then
/// the rows of both in the caller's frame.
pub(crate) fn call(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    let split = leave_behind(m, mask);
    let flow = enter(m, i, i.aux, mask);
    if split && flow == Flow::Next { Flow::Reschedule } else { flow }
}

/// A call through a pointer in `a`.
pub(crate) fn call_indirect(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    let split = leave_behind(m, mask);
    let pointers = m.source::<u64>(i.a);
    let lane = mask.trailing_zeros() as usize;
    let pointer = pointers.get(lane);
    let Some(function) = m.image.function_of_handle(pointer) else {
        return m.fail(Fault::InvalidProgramCounter { target: pointer }, lane);
    };
    let group =
        each_lane(mask).filter(|lane| pointers.get(*lane) == pointer).fold(0, |all, lane| all | 1 << lane);
    if group != mask {
        // The rest comes back to this very instruction with what is left of its lanes.
        let again = m.warp.pc - 1;
        m.warp.fork(mask & !group, again, Waiting::No);
    }
    let callee = &m.image.functions[function as usize];
    let list = i.list as usize;
    let fits = callee.kernel.is_none()
        && m.image.lists[list].0 == callee.parameter_rows
        && m.image.lists[list + 1].0 == callee.result_rows;
    if !fits {
        return m.fail(Fault::InvalidProgramCounter { target: pointer }, lane);
    }
    let flow = enter(m, i, function, group);
    if (split || group != mask) && flow == Flow::Next { Flow::Reschedule } else { flow }
}

/// Lanes that do not call go on behind it.
fn leave_behind(m: &mut Machine<'_>, mask: u32) -> bool {
    let rest = m.warp.active & !mask;
    if rest != 0 {
        let next = m.warp.pc;
        m.warp.fork(rest, next, Waiting::No);
    }
    rest != 0
}

fn enter(m: &mut Machine<'_>, i: &Instruction, function: u32, mask: u32) -> Flow {
    let callee = &m.image.functions[function as usize];
    let caller = m.warp.frames[m.warp.frame as usize];
    let of_caller = &m.image.functions[caller.function as usize];
    let predicate_base = caller.predicate_base + of_caller.predicates;
    let local_base = caller.local_top + CALL_BYTES;
    let local_top = local_base.saturating_add(callee.local_bytes.next_multiple_of(16));
    let call = Frame {
        parent: m.warp.frame,
        return_pc: m.warp.pc,
        function,
        depth: caller.depth + 1,
        base: caller.base + of_caller.rows,
        predicate_base,
        local_base,
        local_top,
    };
    let (frame, known) = m.warp.place_call(call, |function| m.image.functions[function as usize].rows);
    let rows = (frame.base + callee.rows) as usize;
    let predicates = (predicate_base + callee.predicates) as usize;
    if rows > MOST_ROWS || local_top > m.state.stack_limit {
        let bytes = u64::from(local_top);
        return m.fail(Fault::StackOverflow { bytes }, mask.trailing_zeros() as usize);
    }
    if m.warp.rows.len() < rows {
        m.warp.rows.resize_with(rows.next_power_of_two(), RegisterRow::zero);
    }
    if m.warp.predicates.len() < predicates {
        m.warp.predicates.resize(predicates.next_power_of_two(), 0);
    }
    m.reserve_local(local_top);
    let list = i.list as usize;
    let arguments = m.image.lists[list].0;
    for number in 0..arguments {
        let place = m.image.lists[list + 2 + number as usize];
        copy_row(m, place, Slot(frame.base - caller.base + number), mask);
    }
    m.warp.enter(frame, known);
    m.warp.pc = callee.entry;
    if m.warp.others.is_empty() { Flow::Next } else { Flow::Reschedule }
}

fn copy_row(m: &Machine<'_>, from: Slot, to: Slot, mask: u32) {
    let (from, to) = (m.source::<u32>(from), m.target::<u32>(to));
    for lane in each_lane(mask) {
        to.set(lane, from.get(lane));
    }
}

pub(crate) fn trap(m: &mut Machine<'_>, _: &Instruction, mask: u32) -> Flow {
    m.fail(Fault::Trap, mask.trailing_zeros() as usize)
}

/// `__assertfail`.
pub(crate) fn assert_failed(m: &mut Machine<'_>, _: &Instruction, mask: u32) -> Flow {
    m.fail(Fault::Assert, mask.trailing_zeros() as usize)
}

/// Device-side `malloc` and `free`.
pub(crate) fn no_heap(m: &mut Machine<'_>, _: &Instruction, mask: u32) -> Flow {
    let what = "malloc and free in kernels are not supported".to_owned();
    m.fail(Fault::IllegalInstruction(what), mask.trailing_zeros() as usize)
}

/// Behind the last instruction of a function that does not end in a jump.
pub(crate) fn fell_off(m: &mut Machine<'_>, _: &Instruction, mask: u32) -> Flow {
    let target = u64::from(m.warp.pc);
    m.fail(Fault::InvalidProgramCounter { target }, mask.trailing_zeros() as usize)
}

/// Does nothing: fences between threads of one host thread, hints, prefetches.
pub(crate) fn nothing(_: &mut Machine<'_>, _: &Instruction, _: u32) -> Flow {
    Flow::Next
}
