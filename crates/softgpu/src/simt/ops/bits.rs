//! Logic, shifts and bit fields.

use super::{lanes_aux, lanes1, lanes2, lanes3};
use crate::isa::{Execute, Type};

/// Picks by width; what is above bit 15 of a 16-bit register means nothing.
macro_rules! by_width {
    ($ty:expr, $narrow:expr, $wide:expr) => {
        match $ty.bits() {
            16 | 32 => $narrow,
            64 => $wide,
            _ => return None,
        }
    };
}

pub(crate) fn and(ty: Type) -> Option<Execute> {
    Some(by_width!(ty, lanes2!(|a: u32, b: u32| a & b), lanes2!(|a: u64, b: u64| a & b)))
}

pub(crate) fn or(ty: Type) -> Option<Execute> {
    Some(by_width!(ty, lanes2!(|a: u32, b: u32| a | b), lanes2!(|a: u64, b: u64| a | b)))
}

pub(crate) fn xor(ty: Type) -> Option<Execute> {
    Some(by_width!(ty, lanes2!(|a: u32, b: u32| a ^ b), lanes2!(|a: u64, b: u64| a ^ b)))
}

pub(crate) fn not(ty: Type) -> Option<Execute> {
    Some(by_width!(ty, lanes1!(|a: u32| !a), lanes1!(|a: u64| !a)))
}

pub(crate) fn cnot(ty: Type) -> Option<Execute> {
    Some(match ty.bits() {
        16 => lanes1!(|a: u32| u32::from(a as u16 == 0)),
        32 => lanes1!(|a: u32| u32::from(a == 0)),
        64 => lanes1!(|a: u64| u64::from(a == 0)),
        _ => return None,
    })
}

/// Shifts by more than the width give what shifting bit by bit would.
pub(crate) fn shift_left(ty: Type) -> Option<Execute> {
    Some(match ty.bits() {
        16 => lanes2!(|a: u32, b: u32| if b > 15 { 0 } else { a << b }),
        32 => lanes2!(|a: u32, b: u32| if b > 31 { 0 } else { a << (b & 31) }),
        64 => lanes2!(|a: u64, b: u32| if b > 63 { 0 } else { a << (b & 63) }),
        _ => return None,
    })
}

pub(crate) fn shift_right(ty: Type) -> Option<Execute> {
    Some(match ty {
        Type::U16 | Type::B16 => lanes2!(|a: u32, b: u32| if b > 15 { 0 } else { (a & 0xffff) >> (b & 15) }),
        Type::S16 => lanes2!(|a: u32, b: u32| (i32::from(a as i16) >> b.min(15)) as u32 & 0xffff),
        Type::U32 | Type::B32 => lanes2!(|a: u32, b: u32| if b > 31 { 0 } else { a >> (b & 31) }),
        Type::S32 => lanes2!(|a: u32, b: u32| (a as i32 >> b.min(31)) as u32),
        Type::U64 | Type::B64 => lanes2!(|a: u64, b: u32| if b > 63 { 0 } else { a >> (b & 63) }),
        Type::S64 => lanes2!(|a: u64, b: u32| (a as i64 >> b.min(63)) as u64),
        _ => return None,
    })
}

/// `shf`: the 64 bits of `b` above `a`, shifted.
pub(crate) fn funnel(left: bool, clamp: bool) -> Execute {
    fn both(a: u32, b: u32) -> u64 {
        u64::from(b) << 32 | u64::from(a)
    }
    match (left, clamp) {
        (true, true) => lanes3!(|a: u32, b: u32, c: u32| ((both(a, b) << c.min(32)) >> 32) as u32),
        (true, false) => lanes3!(|a: u32, b: u32, c: u32| ((both(a, b) << (c & 31)) >> 32) as u32),
        (false, true) => lanes3!(|a: u32, b: u32, c: u32| (both(a, b) >> c.min(32)) as u32),
        (false, false) => lanes3!(|a: u32, b: u32, c: u32| (both(a, b) >> (c & 31)) as u32),
    }
}

/// `lop3` with its truth table in `aux`. Each minterm is one `and` chain, so lanes stay vectors.
pub(crate) fn lop3() -> Execute {
    lanes_aux!(map3, |table| |a: u32, b: u32, c: u32| {
        let pick = |bit: u32| 0u32.wrapping_sub(table >> bit & 1);
        (pick(0) & !a & !b & !c)
            | (pick(1) & !a & !b & c)
            | (pick(2) & !a & b & !c)
            | (pick(3) & !a & b & c)
            | (pick(4) & a & !b & !c)
            | (pick(5) & a & !b & c)
            | (pick(6) & a & b & !c)
            | (pick(7) & a & b & c)
    })
}

pub(crate) fn population(ty: Type) -> Option<Execute> {
    Some(match ty.bits() {
        32 => lanes1!(|a: u32| a.count_ones()),
        64 => lanes1!(|a: u64| a.count_ones()),
        _ => return None,
    })
}

pub(crate) fn leading_zeros(ty: Type) -> Option<Execute> {
    Some(match ty.bits() {
        32 => lanes1!(|a: u32| a.leading_zeros()),
        64 => lanes1!(|a: u64| a.leading_zeros()),
        _ => return None,
    })
}

pub(crate) fn reverse(ty: Type) -> Option<Execute> {
    Some(match ty.bits() {
        32 => lanes1!(|a: u32| a.reverse_bits()),
        64 => lanes1!(|a: u64| a.reverse_bits()),
        _ => return None,
    })
}

/// Position of the top bit that differs from the sign, or how far it must be shifted to get to the top.
pub(crate) fn find_top(ty: Type, amount: bool) -> Option<Execute> {
    fn top32(a: u32, amount: bool) -> u32 {
        match (a, amount) {
            (0, _) => u32::MAX,
            (_, true) => a.leading_zeros(),
            (_, false) => 31 - a.leading_zeros(),
        }
    }
    fn top64(a: u64, amount: bool) -> u32 {
        match (a, amount) {
            (0, _) => u32::MAX,
            (_, true) => a.leading_zeros(),
            (_, false) => 63 - a.leading_zeros(),
        }
    }
    Some(match (ty, amount) {
        (Type::U32, false) => lanes1!(|a: u32| top32(a, false)),
        (Type::U32, true) => lanes1!(|a: u32| top32(a, true)),
        (Type::S32, false) => lanes1!(|a: u32| top32(a ^ (a as i32 >> 31) as u32, false)),
        (Type::S32, true) => lanes1!(|a: u32| top32(a ^ (a as i32 >> 31) as u32, true)),
        (Type::U64, false) => lanes1!(|a: u64| top64(a, false)),
        (Type::U64, true) => lanes1!(|a: u64| top64(a, true)),
        (Type::S64, false) => lanes1!(|a: u64| top64(a ^ (a as i64 >> 63) as u64, false)),
        (Type::S64, true) => lanes1!(|a: u64| top64(a ^ (a as i64 >> 63) as u64, true)),
        _ => return None,
    })
}

/// `fns`: the n-th set bit of `a` from position `b`, upwards or downwards.
pub(crate) fn find_nth_set() -> Execute {
    lanes3!(|a: u32, b: u32, c: u32| {
        let (base, count) = (b & 31, c as i32);
        if count == 0 {
            return if a >> base & 1 != 0 { base } else { u32::MAX };
        }
        let mut left = count.unsigned_abs();
        let mut position = base as i32;
        while (0..32).contains(&position) {
            left -= u32::from(a >> position & 1 != 0);
            if left == 0 {
                return position as u32;
            }
            position += count.signum();
        }
        u32::MAX
    })
}

pub(crate) fn extract(ty: Type) -> Option<Execute> {
    Some(match ty {
        Type::U32 => lanes3!(|a: u32, b: u32, c: u32| extract_bits(u64::from(a), b, c, 32, false) as u32),
        Type::S32 => lanes3!(|a: u32, b: u32, c: u32| extract_bits(u64::from(a), b, c, 32, true) as u32),
        Type::U64 => lanes3!(|a: u64, b: u32, c: u32| extract_bits(a, b, c, 64, false)),
        Type::S64 => lanes3!(|a: u64, b: u32, c: u32| extract_bits(a, b, c, 64, true)),
        _ => return None,
    })
}

/// `bfe`: `length` bits from `position`; bits beyond the value are its sign, or zero.
#[inline(always)]
fn extract_bits(a: u64, position: u32, length: u32, bits: u32, signed: bool) -> u64 {
    let (position, length) = (position & 0xff, length & 0xff);
    if length == 0 {
        return 0;
    }
    let spare = 64 - bits;
    let wide = if signed { (a << spare) as i64 >> spare } else { a as i64 };
    let shifted = match signed {
        true => wide >> position.min(63),
        false => (a.checked_shr(position).unwrap_or(0)) as i64,
    };
    match 64u32.saturating_sub(length) {
        0 => shifted as u64,
        cut if signed => (shifted << cut >> cut) as u64,
        cut => (shifted as u64) << cut >> cut,
    }
}

/// `bfi`: the low `d` bits of `a` into `b` from position `c`.
#[inline(always)]
fn insert_bits(a: u64, b: u64, position: u32, length: u32, bits: u32) -> u64 {
    let (position, length) = (position & 0xff, (length & 0xff).min(bits));
    if position >= bits || length == 0 {
        return b;
    }
    let field = (u64::MAX >> (64 - length)) << position;
    (b & !field) | ((a << position) & field)
}

pub(crate) fn insert(ty: Type) -> Option<Execute> {
    use crate::isa::Instruction;
    use crate::simt::{Flow, Machine, lanes::Lane, lanes::each_lane};
    fn run<T: Lane, const BITS: u32>(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
        let (a, b, d) = (m.source::<T>(i.a), m.source::<T>(i.b), m.target::<T>(i.d));
        let (c, e) = (m.source::<u32>(i.c), m.source::<u32>(i.e));
        for lane in each_lane(mask) {
            let bits = insert_bits(a.get(lane).bits(), b.get(lane).bits(), c.get(lane), e.get(lane), BITS);
            d.set(lane, T::low(bits));
        }
        Flow::Next
    }
    match ty.bits() {
        32 => Some(run::<u32, 32>),
        64 => Some(run::<u64, 64>),
        _ => None,
    }
}

/// `bmsk`: `b` ones from position `a`.
pub(crate) fn mask(clamp: bool) -> Execute {
    match clamp {
        true => lanes2!(|a: u32, b: u32| {
            if a > 31 {
                0
            } else {
                (u64::MAX >> (64 - b.clamp(1, 32)) << a) as u32 & if b == 0 { 0 } else { u32::MAX }
            }
        }),
        false => lanes2!(|a: u32, b: u32| {
            let (a, b) = (a & 31, b & 31);
            (((1u64 << b) - 1) << a) as u32
        }),
    }
}

/// `szext`: the low `b` bits of `a`, extended.
pub(crate) fn extend(ty: Type, clamp: bool) -> Option<Execute> {
    #[inline(always)]
    fn width(b: u32, clamp: bool) -> u32 {
        if clamp { b.min(32) } else { b & 31 }
    }
    #[inline(always)]
    fn unsigned(a: u32, width: u32) -> u32 {
        if width == 0 { 0 } else { a << (32 - width) >> (32 - width) }
    }
    #[inline(always)]
    fn signed(a: u32, width: u32) -> u32 {
        if width == 0 { 0 } else { ((a << (32 - width)) as i32 >> (32 - width)) as u32 }
    }
    Some(match (ty, clamp) {
        (Type::U32, true) => lanes2!(|a: u32, b: u32| unsigned(a, width(b, true))),
        (Type::U32, false) => lanes2!(|a: u32, b: u32| unsigned(a, width(b, false))),
        (Type::S32, true) => lanes2!(|a: u32, b: u32| signed(a, width(b, true))),
        (Type::S32, false) => lanes2!(|a: u32, b: u32| signed(a, width(b, false))),
        _ => return None,
    })
}

/// `prmt`: the selector picks bytes of `b` above `a`; each bit 3 replicates the sign.
#[inline(always)]
fn permute_bytes(a: u32, b: u32, selector: u32) -> u32 {
    let both = u64::from(b) << 32 | u64::from(a);
    (0..4).fold(0, |result, place| {
        let pick = selector >> (4 * place);
        let byte = (both >> (8 * (pick & 7))) as u8;
        let byte = if pick & 8 != 0 { ((byte as i8) >> 7) as u8 } else { byte };
        result | u32::from(byte) << (8 * place)
    })
}

/// The selectors of the special modes, by the low two bits of the control operand.
const FORWARD: [u32; 4] = [0x3210, 0x4321, 0x5432, 0x6543];
const BACKWARD: [u32; 4] = [0x5670, 0x6701, 0x7012, 0x0123];
const REPLICATE8: [u32; 4] = [0x0000, 0x1111, 0x2222, 0x3333];
const EDGE_LEFT: [u32; 4] = [0x3210, 0x3211, 0x3222, 0x3333];
const EDGE_RIGHT: [u32; 4] = [0x0000, 0x1110, 0x2210, 0x3210];
const REPLICATE16: [u32; 4] = [0x1010, 0x3232, 0x1010, 0x3232];

pub(crate) fn permute(mode: &str) -> Option<Execute> {
    Some(match mode {
        "" => lanes3!(|a: u32, b: u32, c: u32| permute_bytes(a, b, c)),
        "f4e" => lanes3!(|a: u32, b: u32, c: u32| permute_bytes(a, b, FORWARD[c as usize & 3])),
        "b4e" => lanes3!(|a: u32, b: u32, c: u32| permute_bytes(a, b, BACKWARD[c as usize & 3])),
        "rc8" => lanes3!(|a: u32, b: u32, c: u32| permute_bytes(a, b, REPLICATE8[c as usize & 3])),
        "ecl" => lanes3!(|a: u32, b: u32, c: u32| permute_bytes(a, b, EDGE_LEFT[c as usize & 3])),
        "ecr" => lanes3!(|a: u32, b: u32, c: u32| permute_bytes(a, b, EDGE_RIGHT[c as usize & 3])),
        "rc16" => lanes3!(|a: u32, b: u32, c: u32| permute_bytes(a, b, REPLICATE16[c as usize & 3])),
        _ => return None,
    })
}
