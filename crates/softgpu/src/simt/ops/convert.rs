//! `cvt`: the frequent pairs as vector loops, all others lane by lane.

use super::float::{FTZ, RELU, SAT, rounding_of};
use super::{lanes_aux, lanes1};
use crate::isa::{Execute, Instruction, Type};
use crate::numeric::{self, Float, Integer, Rounding, bf16, f16};
use crate::simt::lanes::{Lane, each_lane};
use crate::simt::{Flow, Machine};

/// Besides the mode in the low byte, `aux` holds the two types and these.
const FROM_SHIFT: u32 = 16;
const TO_SHIFT: u32 = 24;
/// Round to an integral value in the same type.
pub(crate) const INTEGRAL: u32 = 1 << 8;
pub(crate) const SATFINITE: u32 = 1 << 9;

const TYPES: [Type; 12] = [
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S8,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F16,
    Type::Bf16,
    Type::F32,
    Type::F64,
];

fn code(ty: Type) -> Option<u32> {
    let plain = match ty {
        Type::B8 => Type::U8,
        Type::B16 => Type::U16,
        Type::B32 => Type::U32,
        Type::B64 => Type::U64,
        ty => ty,
    };
    TYPES.iter().position(|known| *known == plain).map(|index| index as u32)
}

fn integer_of(ty: Type) -> Option<Integer> {
    ty.is_integer().then(|| Integer { bits: ty.bits(), signed: ty.is_signed() })
}

/// The function for a conversion and its `aux`.
pub(crate) fn convert(from: Type, to: Type, mode: u32) -> Option<(Execute, u32)> {
    let aux = mode | code(from)? << FROM_SHIFT | code(to)? << TO_SHIFT;
    let run = frequent(from, to, mode).unwrap_or_else(|| any(from.is_wide(), to.is_wide()));
    Some((run, aux))
}

fn frequent(from: Type, to: Type, mode: u32) -> Option<Execute> {
    use Type::*;
    let rounding = rounding_of(mode);
    let plain = mode & !7 == 0;
    Some(match (from, to) {
        _ if !plain => return None,
        (U32 | B32, U64 | S64 | B64) => lanes1!(|a: u32| u64::from(a)),
        (S32, U64 | S64 | B64) => lanes1!(|a: u32| a as i32 as u64),
        (U64 | S64 | B64, U32 | S32 | B32) => lanes1!(|a: u64| a as u32),
        (U32 | S32 | B32, U32 | S32 | B32) => lanes1!(|a: u32| a),
        (U64 | S64 | B64, U64 | S64 | B64) => lanes1!(|a: u64| a),
        (U16 | B16, U32 | S32 | B32) | (U32 | S32 | B32, U16 | B16) => lanes1!(|a: u32| a & 0xffff),
        (S16, U32 | S32 | B32) | (U32 | S32 | B32, S16) => lanes1!(|a: u32| a as i16 as u32),
        (U8 | B8, U32 | S32 | B32 | U16 | S16) | (U32 | S32 | B32 | U16 | S16, U8) => {
            lanes1!(|a: u32| a & 0xff)
        }
        (S8, U32 | S32 | B32 | U16 | S16) | (U32 | S32 | B32 | U16 | S16, S8) => {
            lanes1!(|a: u32| a as i8 as u32)
        }
        (S32, F32) if rounding == Rounding::Nearest => lanes1!(|a: u32| (a as i32 as f32).to_bits()),
        (U32, F32) if rounding == Rounding::Nearest => lanes1!(|a: u32| (a as f32).to_bits()),
        (S32, F64) => lanes1!(|a: u32| f64::from(a as i32).to_bits()),
        (U32, F64) => lanes1!(|a: u32| f64::from(a).to_bits()),
        // `as` clamps and turns NaN into zero, as `cvt` does.
        (F32, S32) if rounding == Rounding::Zero => lanes1!(|a: u32| f32::from_bits(a) as i32 as u32),
        (F32, U32) if rounding == Rounding::Zero => lanes1!(|a: u32| f32::from_bits(a) as u32),
        (F16, F32) => lanes1!(|a: u32| {
            let x: f32 = numeric::convert_float(f16::from_bits(a as u16), Rounding::Nearest);
            x.to_bits()
        }),
        (Bf16, F32) => lanes1!(|a: u32| {
            let x: f32 = numeric::convert_float(bf16::from_bits(a as u16), Rounding::Nearest);
            x.to_bits()
        }),
        (F32, F16) if rounding == Rounding::Nearest => lanes1!(|a: u32| {
            let x: f16 = numeric::convert_float(f32::from_bits(a), Rounding::Nearest);
            u32::from(x.to_bits())
        }),
        (F32, F64) => lanes1!(|a: u32| {
            let x: f64 = numeric::convert_float(f32::from_bits(a), Rounding::Nearest);
            x.to_bits()
        }),
        (F64, F32) if rounding == Rounding::Nearest => lanes1!(|a: u64| {
            let x: f32 = numeric::convert_float(f64::from_bits(a), Rounding::Nearest);
            x.to_bits()
        }),
        _ => return None,
    })
}

fn any(from_wide: bool, to_wide: bool) -> Execute {
    fn run<A: Lane, D: Lane>(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
        let (from, to) = (TYPES[(i.aux >> FROM_SHIFT & 0xff) as usize], TYPES[(i.aux >> TO_SHIFT) as usize]);
        let (a, d) = (m.source::<A>(i.a), m.target::<D>(i.d));
        for lane in each_lane(mask) {
            d.set(lane, D::low(value(a.get(lane).bits(), from, to, i.aux)));
        }
        Flow::Next
    }
    match (from_wide, to_wide) {
        (false, false) => run::<u32, u32>,
        (false, true) => run::<u32, u64>,
        (true, false) => run::<u64, u32>,
        (true, true) => run::<u64, u64>,
    }
}

/// One value from one type to another.
fn value(bits: u64, from: Type, to: Type, mode: u32) -> u64 {
    match from {
        Type::F16 => of_float(f16::from_bits(bits as u16), to, mode),
        Type::Bf16 => of_float(bf16::from_bits(bits as u16), to, mode),
        Type::F32 => of_float(f32::from_bits(bits as u32), to, mode),
        Type::F64 => of_float(f64::from_bits(bits), to, mode),
        _ => of_integer(bits, from, to, mode),
    }
}

fn of_integer(bits: u64, from: Type, to: Type, mode: u32) -> u64 {
    let source = integer_of(from).unwrap_or(Integer::U64);
    if let Some(target) = integer_of(to) {
        return numeric::convert_integer(bits, source, target, mode & SAT != 0);
    }
    let rounding = rounding_of(mode);
    let finish = |bits: u64| bits;
    match to {
        Type::F16 => finish(saturated(numeric::integer_to_float::<f16>(bits, source, rounding), mode)),
        Type::Bf16 => finish(saturated(numeric::integer_to_float::<bf16>(bits, source, rounding), mode)),
        Type::F32 => finish(saturated(numeric::integer_to_float::<f32>(bits, source, rounding), mode)),
        _ => finish(saturated(numeric::integer_to_float::<f64>(bits, source, rounding), mode)),
    }
}

fn saturated<F: Float>(x: F, mode: u32) -> u64 {
    let x = if mode & SAT != 0 { x.saturate() } else { x };
    if mode & RELU != 0 { x.relu().to_bits64() } else { x.to_bits64() }
}

fn of_float<F: Float>(x: F, to: Type, mode: u32) -> u64 {
    match to {
        Type::F16 => float_to_float::<F, f16>(x, mode),
        Type::Bf16 => float_to_float::<F, bf16>(x, mode),
        Type::F32 => float_to_float::<F, f32>(x, mode),
        Type::F64 => float_to_float::<F, f64>(x, mode),
        _ => {
            // `.ftz` is about f32 alone.
            let x = x.flush_if(mode & FTZ != 0 && F::BITS == 32);
            let target = integer_of(to).unwrap_or(Integer::U64);
            numeric::float_to_integer(x, target, rounding_of(mode))
        }
    }
}

fn float_to_float<A: Float, B: Float>(x: A, mode: u32) -> u64 {
    let rounding = rounding_of(mode);
    if mode & INTEGRAL != 0 && A::FORMAT == B::FORMAT {
        let flushed = x.flush_if(mode & FTZ != 0);
        return saturated(numeric::round_integral(flushed, rounding), mode);
    }
    if mode & SATFINITE != 0 {
        return saturated(numeric::round_satfinite::<B>(x.to_f64(), rounding), mode);
    }
    let y: B = match mode & FTZ != 0 {
        true => numeric::convert_float_ftz(x, rounding),
        false => numeric::convert_float(x, rounding),
    };
    saturated(y, mode)
}

/// Two f32, `a` in the upper half, to a pair of 16-bit floats.
pub(crate) fn pack_pair(to: Type) -> Option<Execute> {
    fn part<F: Float>(x: u32, aux: u32) -> u32 {
        let x = f32::from_bits(x);
        float_to_float::<f32, F>(x, aux) as u32
    }
    Some(match to {
        Type::F16x2 => {
            lanes_aux!(map2, |aux| |a: u32, b: u32| part::<f16>(a, aux) << 16 | part::<f16>(b, aux))
        }
        Type::Bf16x2 => {
            lanes_aux!(map2, |aux| |a: u32, b: u32| part::<bf16>(a, aux) << 16 | part::<bf16>(b, aux))
        }
        Type::E4m3x2 => lanes_aux!(map2, |aux| |a: u32, b: u32| {
            u32::from(numeric::pack_e4m3x2(f32::from_bits(a), f32::from_bits(b), aux & RELU != 0))
        }),
        Type::E5m2x2 => lanes_aux!(map2, |aux| |a: u32, b: u32| {
            u32::from(numeric::pack_e5m2x2(f32::from_bits(a), f32::from_bits(b), aux & RELU != 0))
        }),
        _ => return None,
    })
}

/// One register of narrow formats to another: `cvt.rn.f16x2.e4m3x2` and back, `cvt.rna.tf32.f32`.
pub(crate) fn narrow(from: Type, to: Type) -> Option<Execute> {
    fn single(bits: u32) -> f32 {
        numeric::convert_float(f16::from_bits(bits as u16), Rounding::Nearest)
    }
    Some(match (from, to) {
        (Type::E4m3x2, Type::F16x2) => {
            lanes_aux!(map1, |aux| |a: u32| numeric::unpack_e4m3x2(a as u16, aux & RELU != 0))
        }
        (Type::E5m2x2, Type::F16x2) => {
            lanes_aux!(map1, |aux| |a: u32| numeric::unpack_e5m2x2(a as u16, aux & RELU != 0))
        }
        (Type::F16x2, Type::E4m3x2) => lanes_aux!(map1, |aux| |a: u32| {
            u32::from(numeric::pack_e4m3x2(single(a >> 16), single(a), aux & RELU != 0))
        }),
        (Type::F16x2, Type::E5m2x2) => lanes_aux!(map1, |aux| |a: u32| {
            u32::from(numeric::pack_e5m2x2(single(a >> 16), single(a), aux & RELU != 0))
        }),
        (Type::F32, Type::Tf32) => lanes_aux!(map1, |aux| |a: u32| {
            let bits = numeric::tf32_from(f32::from_bits(a), rounding_of(aux), aux & SATFINITE != 0);
            if aux & RELU != 0 && bits >> 31 != 0 && !f32::from_bits(bits).is_nan() { 0 } else { bits }
        }),
        _ => return None,
    })
}

/// `cvt.pack.sat`: `a` and `b` clamped to the type in `aux`, put above what is left of `c`.
pub(crate) fn pack_saturated(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    let to = TYPES[(i.aux >> TO_SHIFT) as usize];
    let target = integer_of(to).unwrap_or(Integer::U16);
    let (a, b, d) = (m.source::<u32>(i.a), m.source::<u32>(i.b), m.target::<u32>(i.d));
    let c = (i.c != crate::isa::Slot::NONE).then(|| m.source::<u32>(i.c));
    for lane in each_lane(mask) {
        let part = |x: u32| {
            numeric::convert_integer(u64::from(x), Integer::S32, target, true) as u32 & target.mask() as u32
        };
        let pair = part(a.get(lane)) << target.bits | part(b.get(lane));
        let above = c.map_or(0, |c| c.get(lane).checked_shl(2 * target.bits).unwrap_or(0));
        d.set(lane, above | pair);
    }
    Flow::Next
}

/// `aux` for [`pack_saturated`].
pub(crate) fn pack_aux(to: Type) -> Option<u32> {
    Some(code(to)? << TO_SHIFT)
}
