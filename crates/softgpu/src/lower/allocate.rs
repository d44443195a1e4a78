//! Which rows registers get: liveness by blocks, then a linear scan.
//!
//! Positions in the scan are twice the instruction's index for what it reads and one more for what it writes,
//! so a result may take the row of an operand that dies in the same instruction: every function of the
//! executor reads a lane's operands before it writes the lane.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::flow::Blocks;
use super::raw::{Class, Raw, Register, Virtual};

/// Where each virtual register went.
pub(super) struct Allocation {
    /// First row, or predicate number, of each; registers never mentioned have 0.
    pub places: Vec<u32>,
    pub rows: u32,
    pub predicates: u32,
    /// The most 32-bit registers live at once.
    pub pressure: u32,
}

/// One bit per register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Set(Vec<u64>);

impl Set {
    fn new(registers: usize) -> Set {
        Set(vec![0; registers.div_ceil(64)])
    }

    fn insert(&mut self, v: Virtual) {
        self.0[v.0 as usize / 64] |= 1 << (v.0 % 64);
    }

    fn remove(&mut self, v: Virtual) {
        self.0[v.0 as usize / 64] &= !(1 << (v.0 % 64));
    }

    pub(super) fn contains(&self, v: Virtual) -> bool {
        self.0[v.0 as usize / 64] >> (v.0 % 64) & 1 != 0
    }

    /// Adds all of `other`; true if that changed something.
    fn add(&mut self, other: &Set) -> bool {
        let mut changed = false;
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            changed |= *more & !*word != 0;
            *word |= more;
        }
        changed
    }

    fn iter(&self) -> impl Iterator<Item = Virtual> + '_ {
        self.0.iter().enumerate().flat_map(|(index, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                (left != 0).then(|| {
                    left &= left - 1;
                    Virtual(index as u32 * 64 + bit)
                })
            })
        })
    }
}

/// What is live at the start and the end of each block.
pub(super) struct Liveness {
    pub entering: Vec<Set>,
    leaving: Vec<Set>,
}

/// Bits of liveness beyond which every register simply gets a row of its own.
const MOST_BITS: usize = 1 << 29;
/// Visits per block beyond which the same happens: real programs settle after a few.
const MOST_VISITS: usize = 64;

/// `None` when the function is too large for it.
pub(super) fn liveness(code: &[Raw], blocks: &Blocks, registers: &[Register]) -> Option<Liveness> {
    let (count, size) = (blocks.starts.len(), registers.len());
    if count.saturating_mul(size) > MOST_BITS {
        return None;
    }
    let mut entering = vec![Set::new(size); count];
    let mut leaving = vec![Set::new(size); count];
    let mut queue: Vec<usize> = (0..count).collect();
    let mut queued = vec![true; count];
    let predecessors = blocks.predecessors();
    let mut visits = 0;
    while let Some(block) = queue.pop() {
        visits += 1;
        if visits > count * MOST_VISITS {
            return None;
        }
        queued[block] = false;
        for successor in &blocks.successors[block] {
            leaving[block].add(&entering[*successor]);
        }
        let mut live = leaving[block].clone();
        for raw in code[blocks.range(block)].iter().rev() {
            step_back(&mut live, raw, registers);
        }
        if entering[block].add(&live) {
            for &predecessor in &predecessors[block] {
                if !std::mem::replace(&mut queued[predecessor], true) {
                    queue.push(predecessor);
                }
            }
        }
    }
    Some(Liveness { entering, leaving })
}

/// From what is live behind an instruction to what is live before it.
fn step_back(live: &mut Set, raw: &Raw, registers: &[Register]) {
    for v in raw.definitions() {
        // A guarded result leaves the other lanes as they were.
        if raw.guard.is_none() || registers[v.0 as usize].temporary {
            live.remove(v);
        }
    }
    raw.uses().for_each(|v| live.insert(v));
}

/// The stretch of positions over which a register holds something.
#[derive(Clone, Copy)]
struct Interval {
    start: u32,
    end: u32,
}

impl Interval {
    fn cover(&mut self, position: u32) {
        self.start = self.start.min(position);
        self.end = self.end.max(position);
    }
}

pub(super) fn allocate(
    code: &[Raw],
    blocks: &Blocks,
    liveness: Option<&Liveness>,
    registers: &[Register],
    fixed_rows: u32,
) -> Allocation {
    let mut intervals = vec![Interval { start: u32::MAX, end: 0 }; registers.len()];
    for (index, raw) in code.iter().enumerate() {
        let position = 2 * index as u32;
        raw.uses().for_each(|v| intervals[v.0 as usize].cover(position));
        raw.definitions().for_each(|v| intervals[v.0 as usize].cover(position + 1));
    }
    match liveness {
        Some(liveness) => {
            for block in 0..blocks.starts.len() {
                let range = blocks.range(block);
                for v in liveness.entering[block].iter() {
                    intervals[v.0 as usize].cover(2 * range.start as u32);
                }
                for v in liveness.leaving[block].iter() {
                    intervals[v.0 as usize].cover(2 * range.end as u32);
                }
            }
        }
        None => intervals.iter_mut().filter(|i| i.start != u32::MAX).for_each(|i| i.end = u32::MAX),
    }
    let mut allocation = scan(&intervals, registers, fixed_rows);
    allocation.pressure = pressure(&intervals, registers);
    allocation
}

fn scan(intervals: &[Interval], registers: &[Register], fixed_rows: u32) -> Allocation {
    let mut order: Vec<usize> = (0..registers.len()).filter(|v| intervals[*v].start != u32::MAX).collect();
    order.sort_by_key(|v| intervals[*v].start);
    let mut slots = vec![0u32; registers.len()];
    let mut counts = [0u32; 4];
    let mut free: [Vec<u32>; 4] = Default::default();
    let mut active: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::new();
    for v in order {
        let (class, interval) = (registers[v].class as usize, intervals[v]);
        while let Some(Reverse((end, old))) = active.peek().copied() {
            if end >= interval.start {
                break;
            }
            active.pop();
            free[registers[old].class as usize].push(slots[old]);
        }
        if registers[v].fixed.is_some() {
            continue;
        }
        slots[v] = free[class].pop().unwrap_or_else(|| {
            counts[class] += 1;
            counts[class] - 1
        });
        active.push(Reverse((interval.end, v)));
    }
    place(registers, &slots, counts, fixed_rows)
}

/// Lays the slots of the classes out behind each other.
fn place(registers: &[Register], slots: &[u32], counts: [u32; 4], fixed_rows: u32) -> Allocation {
    let count = |class: Class| counts[class as usize];
    let wide = fixed_rows;
    let quad = wide + count(Class::Wide) * Class::Wide.rows();
    let narrow = quad + count(Class::Quad) * Class::Quad.rows();
    let rows = narrow + count(Class::Narrow);
    let of = |(register, slot): (&Register, &u32)| match (register.fixed, register.class) {
        (Some(row), _) => row,
        (None, Class::Predicate) => *slot,
        (None, Class::Narrow) => narrow + slot,
        (None, Class::Wide) => wide + slot * Class::Wide.rows(),
        (None, Class::Quad) => quad + slot * Class::Quad.rows(),
    };
    let places = registers.iter().zip(slots).map(of).collect();
    Allocation { places, rows, predicates: count(Class::Predicate), pressure: 0 }
}

fn pressure(intervals: &[Interval], registers: &[Register]) -> u32 {
    let mut events: Vec<(u32, i64)> = Vec::new();
    for (interval, register) in intervals.iter().zip(registers) {
        if interval.start != u32::MAX && register.class != Class::Predicate {
            let rows = i64::from(register.class.rows());
            events.push((interval.start, rows));
            events.push((interval.end.saturating_add(1), -rows));
        }
    }
    events.sort_unstable();
    let (mut live, mut most) = (0i64, 0i64);
    for (_, change) in events {
        live += change;
        most = most.max(live);
    }
    most as u32
}
