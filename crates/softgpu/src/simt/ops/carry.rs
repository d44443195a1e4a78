//! Arithmetic with the condition code register.
//!
//! A card subtracts by adding the complement, so behind a subtraction the register holds the carry of
//! `a + !b + 1`: set where nothing was borrowed. Chains of one kind cannot tell this from a borrow, but the
//! division of 128-bit integers reads the carry of a `subc.cc` with an `addc`.

use crate::isa::{Execute, Instruction};
use crate::simt::lanes::{Lane, each_lane};
use crate::simt::{Flow, Machine};

/// Writes the carry.
pub(crate) const CARRY_OUT: u32 = 1;
/// Adds the carry; without it a subtraction begins with nothing borrowed.
pub(crate) const CARRY_IN: u32 = 2;
/// Multiplies `a` and `b` first: their low or high half; signed halves differ.
pub(crate) const LOW: u32 = 4;
pub(crate) const HIGH: u32 = 8;
pub(crate) const SIGNED: u32 = 16;
pub(crate) const SUBTRACT: u32 = 32;

#[inline(always)]
fn product(a: u64, b: u64, bits: u32, aux: u32) -> u64 {
    let shift = if aux & HIGH != 0 { bits } else { 0 };
    let spare = 64 - bits;
    match aux & SIGNED {
        0 => ((u128::from(a) * u128::from(b)) >> shift) as u64,
        _ => {
            let extend = |x: u64| i128::from((x << spare) as i64 >> spare);
            ((extend(a) * extend(b)) >> shift) as u64
        }
    }
}

fn run<T: Lane, const BITS: u32>(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    let (multiplies, subtracts) = (i.aux & (LOW | HIGH) != 0, i.aux & SUBTRACT != 0);
    let (a, b, d) = (m.source::<T>(i.a), m.source::<T>(i.b), m.target::<T>(i.d));
    let c = if multiplies { m.source::<T>(i.c) } else { b };
    let cut = u64::MAX >> (64 - BITS);
    let mut carries = 0;
    for lane in each_lane(mask) {
        let (mut x, mut y) = (a.get(lane).bits(), c.get(lane).bits());
        if multiplies {
            x = product(x, b.get(lane).bits(), BITS, i.aux) & cut;
        }
        let carry = match i.aux & CARRY_IN {
            0 => subtracts,
            _ => m.warp.carry >> lane & 1 != 0,
        };
        if subtracts {
            y = !y & cut;
        }
        let sum = u128::from(x) + u128::from(y) + u128::from(carry);
        d.set(lane, T::low(sum as u64 & cut));
        carries |= u32::from(sum > u128::from(cut)) << lane;
    }
    if i.aux & CARRY_OUT != 0 {
        m.warp.carry = (m.warp.carry & !mask) | carries;
    }
    Flow::Next
}

/// Addition and the like of 32 or 64 bits, as `aux` says.
pub(crate) fn with_carry(bits: u32) -> Option<Execute> {
    match bits {
        32 => Some(run::<u32, 32>),
        64 => Some(run::<u64, 64>),
        _ => None,
    }
}
