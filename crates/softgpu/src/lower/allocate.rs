//! Which rows registers get: a linear scan over their intervals.
//!
//! An instruction reads at one position and writes at the next, so a result may take the row of an operand
//! that dies in the same instruction: every function of the executor reads a lane's operands before it writes
//! the lane.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::live::Interval;
use super::raw::{Class, Register};

/// Where each virtual register went.
pub(super) struct Allocation {
    /// First row, or predicate number, of each; registers never mentioned have 0.
    pub places: Vec<u32>,
    pub rows: u32,
    pub predicates: u32,
    /// The most 32-bit registers live at once.
    pub pressure: u32,
}

pub(super) fn allocate(intervals: &[Interval], registers: &[Register], fixed_rows: u32) -> Allocation {
    let mut allocation = scan(intervals, registers, fixed_rows);
    allocation.pressure = pressure(intervals, registers);
    allocation
}

fn scan(intervals: &[Interval], registers: &[Register], fixed_rows: u32) -> Allocation {
    let mut order: Vec<usize> = (0..registers.len()).filter(|v| !intervals[*v].is_empty()).collect();
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
        if !interval.is_empty() && register.class != Class::Predicate {
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
