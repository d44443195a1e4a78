//! Scalar and SIMD video instructions: arithmetic on selected bytes or halves of registers.

use crate::isa::Instruction;
use crate::simt::lanes::each_lane;
use crate::simt::{Flow, Machine};

/// What a SIMD video instruction does with a pair of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Element {
    Add,
    Subtract,
    Average,
    AbsoluteDifference,
    Minimum,
    Maximum,
}

const ELEMENTS: [Element; 6] = [
    Element::Add,
    Element::Subtract,
    Element::Average,
    Element::AbsoluteDifference,
    Element::Minimum,
    Element::Maximum,
];

/// `aux`: operation, then signs of `a`, `b` and the result, saturation, accumulation, bytes or halves.
pub(crate) const SIGNED_A: u32 = 1 << 4;
pub(crate) const SIGNED_B: u32 = 1 << 5;
pub(crate) const SIGNED_D: u32 = 1 << 6;
pub(crate) const SATURATE: u32 = 1 << 7;
pub(crate) const ACCUMULATE: u32 = 1 << 8;
pub(crate) const BYTES: u32 = 1 << 9;

fn element(x: u32, number: u32, bits: u32, signed: bool) -> i32 {
    let raw = x >> (number * bits) & (u32::MAX >> (32 - bits));
    if signed { (raw << (32 - bits)) as i32 >> (32 - bits) } else { raw as i32 }
}

fn clamp(x: i32, bits: u32, signed: bool) -> i32 {
    match signed {
        true => x.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => x.clamp(0, (1 << bits) - 1),
    }
}

fn pair(operation: Element, x: i32, y: i32) -> i32 {
    match operation {
        Element::Add => x + y,
        Element::Subtract => x - y,
        // Rounds halves away from zero.
        Element::Average => (x + y + i32::from(x + y >= 0)) >> 1,
        Element::AbsoluteDifference => (x - y).abs(),
        Element::Minimum => x.min(y),
        Element::Maximum => x.max(y),
    }
}

/// `vadd4` and its like without selectors or masks: `a`, `b`, and `c` to accumulate onto or to merge with.
pub(crate) fn simd(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    let (a, b, c, d) =
        (m.source::<u32>(i.a), m.source::<u32>(i.b), m.source::<u32>(i.c), m.target::<u32>(i.d));
    let bits = if i.aux & BYTES != 0 { 8 } else { 16 };
    let has = |flag: u32| i.aux & flag != 0;
    let operation = ELEMENTS[(i.aux & 15) as usize];
    for lane in each_lane(mask) {
        let (x, y) = (a.get(lane), b.get(lane));
        let mut packed = 0;
        let mut sum = c.get(lane);
        for number in 0..32 / bits {
            let (x, y) = (element(x, number, bits, has(SIGNED_A)), element(y, number, bits, has(SIGNED_B)));
            let result = pair(operation, x, y);
            let result = if has(SATURATE) { clamp(result, bits, has(SIGNED_D)) } else { result };
            packed |= (result as u32 & (u32::MAX >> (32 - bits))) << (number * bits);
            sum = sum.wrapping_add(result as u32);
        }
        d.set(lane, if has(ACCUMULATE) { sum } else { packed });
    }
    Flow::Next
}
