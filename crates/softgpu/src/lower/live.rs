//! Where registers are live, one register after the other.
//!
//! A register that a block reads before it writes it is live at the block's start, and from there backwards
//! up to the blocks that write it. Following each register back visits the blocks where it is live and no
//! others, so the work is the size of the answer; most registers are used up in the block that makes them and
//! cost nothing. The answer itself can be the square of a text made for it, hence [`MOST_STEPS`].

use std::collections::HashSet;

use super::flow::Blocks;
use super::raw::{Raw, Register, Virtual};

/// The stretch of positions over which a register holds something: twice the instruction's index for what it
/// reads, and one more for what it writes.
#[derive(Clone, Copy)]
pub(super) struct Interval {
    pub start: u32,
    pub end: u32,
}

impl Interval {
    const NEVER: Interval = Interval { start: u32::MAX, end: 0 };
    const ALWAYS: Interval = Interval { start: 0, end: u32::MAX };

    /// Nobody mentions the register.
    pub(super) fn is_empty(self) -> bool {
        self.start == u32::MAX
    }

    fn cover(&mut self, position: usize) {
        self.start = self.start.min(position as u32);
        self.end = self.end.max(position as u32);
    }
}

pub(super) struct Liveness {
    pub intervals: Vec<Interval>,
    /// Those of the watched registers that are live at the start of the block they were watched at.
    pub entering: HashSet<Watch>,
}

/// A register and a block.
pub(super) type Watch = (Virtual, usize);

/// Edges to follow back in all functions of a module. Registers for which none are left count as live
/// everywhere. Every instruction adds [`STEPS_PER_INSTRUCTION`], so no honest program comes near the end.
pub(super) const MOST_STEPS: u64 = 1 << 26;
const STEPS_PER_INSTRUCTION: u64 = 64;

/// What a function may take, given what those before it have left.
pub(super) fn granted(left: u64, instructions: usize) -> u64 {
    left.saturating_add(STEPS_PER_INSTRUCTION.saturating_mul(instructions as u64))
}

/// `watched` is sorted; what is taken of the `steps` is subtracted from them.
pub(super) fn liveness(
    code: &[Raw],
    blocks: &Blocks,
    registers: &[Register],
    watched: &[Watch],
    steps: &mut u64,
) -> Liveness {
    let mut intervals = mentioned(code, registers.len());
    let mut entering = HashSet::new();
    let (exposed, written) = borders(code, blocks, registers);
    let mut trail = Trail::new(blocks);
    for reads in exposed.chunk_by(|one, next| one.0 == next.0) {
        let register = reads[0].0;
        let interval = &mut intervals[register.0 as usize];
        let known = trail.follow(reads, of(&written, register), interval, steps);
        if !known {
            *interval = Interval::ALWAYS;
        }
        let live = of(watched, register).iter().filter(|watch| !known || trail.is_live(**watch));
        entering.extend(live.copied());
    }
    Liveness { intervals, entering }
}

/// The part of a sorted list that is about one register.
fn of(list: &[Watch], register: Virtual) -> &[Watch] {
    let start = list.partition_point(|entry| entry.0 < register);
    let count = list[start..].partition_point(|entry| entry.0 == register);
    &list[start..start + count]
}

/// From the first to the last mention of each register.
fn mentioned(code: &[Raw], registers: usize) -> Vec<Interval> {
    let mut intervals = vec![Interval::NEVER; registers];
    for (index, raw) in code.iter().enumerate() {
        raw.uses().for_each(|v| intervals[v.0 as usize].cover(2 * index));
        raw.definitions().for_each(|v| intervals[v.0 as usize].cover(2 * index + 1));
    }
    intervals
}

/// The blocks that read a register before they write it, and those that write it; both sorted by register.
fn borders(code: &[Raw], blocks: &Blocks, registers: &[Register]) -> (Vec<Watch>, Vec<Watch>) {
    let (mut exposed, mut written) = (Vec::new(), Vec::new());
    // The last block that did either.
    let mut read_in = vec![usize::MAX; registers.len()];
    let mut written_in = vec![usize::MAX; registers.len()];
    for block in 0..blocks.starts.len() {
        for raw in &code[blocks.range(block)] {
            for v in raw.uses() {
                let index = v.0 as usize;
                if written_in[index] != block && std::mem::replace(&mut read_in[index], block) != block {
                    exposed.push((v, block));
                }
            }
            for v in raw.definitions() {
                let index = v.0 as usize;
                // A guarded result leaves the other lanes as they were.
                let whole = raw.guard.is_none() || registers[index].temporary;
                if whole && std::mem::replace(&mut written_in[index], block) != block {
                    written.push((v, block));
                }
            }
        }
    }
    exposed.sort_unstable();
    written.sort_unstable();
    (exposed, written)
}

/// The way back of one register; its marks stay valid until the next.
struct Trail<'a> {
    blocks: &'a Blocks,
    predecessors: Vec<Vec<usize>>,
    /// The last register found live at each block's start, and the last that the block is known to write.
    live: Vec<Option<Virtual>>,
    written: Vec<Option<Virtual>>,
    queue: Vec<usize>,
}

impl Trail<'_> {
    fn new(blocks: &Blocks) -> Trail<'_> {
        let count = blocks.starts.len();
        let (live, written) = (vec![None; count], vec![None; count]);
        Trail { blocks, predecessors: blocks.predecessors(), live, written, queue: Vec::new() }
    }

    fn is_live(&self, (register, block): Watch) -> bool {
        self.live[block] == Some(register)
    }

    /// Extends the interval to all blocks the register is live in; false if the steps do not suffice.
    fn follow(
        &mut self,
        reads: &[Watch],
        writes: &[Watch],
        interval: &mut Interval,
        steps: &mut u64,
    ) -> bool {
        writes.iter().for_each(|(register, block)| self.written[*block] = Some(*register));
        let register = Some(reads[0].0);
        for &(_, block) in reads {
            self.live[block] = register;
            self.queue.push(block);
        }
        while let Some(block) = self.queue.pop() {
            let predecessors = &self.predecessors[block];
            let Some(left) = steps.checked_sub(1 + predecessors.len() as u64) else {
                self.queue.clear();
                return false;
            };
            *steps = left;
            interval.cover(2 * self.blocks.range(block).start);
            for &before in predecessors {
                interval.cover(2 * self.blocks.range(before).end);
                if self.live[before] != register && self.written[before] != register {
                    self.live[before] = register;
                    self.queue.push(before);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::raw::{Class, Control, Operand};
    use crate::simt::control;

    fn write(v: u32) -> Raw {
        Raw::new(control::nothing).d(Operand::Def(Virtual(v)))
    }

    fn read(v: u32) -> Raw {
        Raw::new(control::nothing).a(Operand::Use(Virtual(v)))
    }

    fn judge(code: &[Raw], labels: &[usize], count: usize, steps: &mut u64) -> Liveness {
        let registers = vec![Register { class: Class::Narrow, fixed: None, temporary: false }; count];
        liveness(code, &Blocks::of(code, labels), &registers, &[(Virtual(0), 1)], steps)
    }

    fn ends(liveness: &Liveness, v: usize) -> (u32, u32) {
        (liveness.intervals[v].start, liveness.intervals[v].end)
    }

    /// A loop from instruction 1 to 4 that reads register 0 before it writes it.
    fn carrying_loop() -> Vec<Raw> {
        let back = Raw { guard: Some((Virtual(1), false)), ..read(1).control(Control::Jumps(0)) };
        vec![write(1), write(2), read(0), write(0), back, Raw::end()]
    }

    #[test]
    fn a_register_lives_around_the_loop_that_carries_it() {
        let found = judge(&carrying_loop(), &[1], 3, &mut 1000);
        assert_eq!(ends(&found, 0), (0, 10), "nobody has written it before the loop");
        assert_eq!(ends(&found, 1), (1, 10));
        assert_eq!(ends(&found, 2), (3, 3));
        assert!(found.entering.contains(&(Virtual(0), 1)));
    }

    #[test]
    fn without_steps_what_crosses_blocks_lives_everywhere() {
        let found = judge(&carrying_loop(), &[1], 3, &mut 0);
        assert_eq!(ends(&found, 0), (0, u32::MAX));
        assert_eq!(ends(&found, 2), (3, 3));
        assert!(found.entering.contains(&(Virtual(0), 1)));
    }

    #[test]
    fn only_blocks_where_a_register_lives_cost_anything() {
        // Register 0 lives through a thousand blocks, the others in one each.
        let count = 1000;
        let mut code = vec![write(0)];
        for v in 1..=count {
            code.extend([write(v), read(v).control(Control::Meets), read(v)]);
        }
        code.push(read(0));
        let mut steps = 1 << 20;
        judge(&code, &[], count as usize + 1, &mut steps);
        assert!((1 << 20) - steps <= 10 * u64::from(count), "{steps} left");
    }
}
