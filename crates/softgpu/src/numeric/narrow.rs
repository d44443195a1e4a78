//! `cvt` to and from the formats that are only stored: tf32, e4m3, e5m2; and `.satfinite`.

use super::exact::{Exact, Format};
use super::{Float, Rounding};
use half::f16;

/// f32 to tf32, which lives in a 32-bit register with its low 13 bits clear. That holds for NaNs
/// too: `.rna` cuts them off as they are, the other roundings give the canonical one cut off.
#[inline]
pub fn tf32_from(x: f32, rounding: Rounding, satfinite: bool) -> u32 {
    const KEPT: u32 = 0xffff_e000;
    if x.is_nan() {
        return if rounding == Rounding::NearestAway { x.to_bits() & KEPT } else { 0x7fff_ffff & KEPT };
    }
    let sign = x.to_bits() & 0x8000_0000;
    let magnitude = if x.is_infinite() {
        Format::TF32.infinity()
    } else {
        match Exact::of_f64(x as f64) {
            Some(value) => value.round(Format::TF32, rounding) & !Format::TF32.sign_bit(),
            None => 0,
        }
    };
    let magnitude = if satfinite { magnitude.min(Format::TF32.infinity() - 1) } else { magnitude };
    sign | (magnitude as u32) << 13
}

/// `cvt.rn.satfinite` to e4m3: no infinities, the largest value is 448.
#[inline]
pub fn e4m3_from(x: f32, relu: bool) -> u8 {
    fp8_from(x, relu, Format::E4M3, 0x7e)
}

/// `cvt.rn.satfinite` to e5m2: the largest value is 57344.
#[inline]
pub fn e5m2_from(x: f32, relu: bool) -> u8 {
    fp8_from(x, relu, Format::E5M2, 0x7b)
}

fn fp8_from(x: f32, relu: bool, format: Format, largest: u64) -> u8 {
    if x.is_nan() {
        return 0x7f;
    }
    if relu && x.is_sign_negative() {
        return 0;
    }
    let sign = (x.is_sign_negative() as u8) << 7;
    let magnitude = if x.is_infinite() {
        largest
    } else {
        Exact::of_f64(x as f64).map_or(0, |value| value.round_magnitude(format, Rounding::Nearest))
    };
    sign | magnitude.min(largest) as u8
}

/// Exact.
#[inline]
pub fn e5m2_to_f16(x: u8) -> f16 {
    if x & 0x7f > 0x7c { f16::from_bits(0x7fff) } else { f16::from_bits((x as u16) << 8) }
}

/// Exact.
#[inline]
pub fn e4m3_to_f16(x: u8) -> f16 {
    let magnitude = x & 0x7f;
    if magnitude == 0x7f {
        return f16::from_bits(0x7fff);
    }
    let exponent = (magnitude >> 3) as i32;
    let fraction = (magnitude & 7) as f32;
    let value = if exponent == 0 {
        fraction * f32::exp2(-9.0)
    } else {
        (1.0 + fraction / 8.0) * f32::exp2((exponent - 7) as f32)
    };
    f16::from_f32(if x & 0x80 != 0 { -value } else { value })
}

/// `cvt.rn.satfinite.e4m3x2.f32 d, a, b`: `a` goes to the upper byte.
#[inline]
pub fn pack_e4m3x2(a: f32, b: f32, relu: bool) -> u16 {
    (e4m3_from(a, relu) as u16) << 8 | e4m3_from(b, relu) as u16
}

/// `cvt.rn.satfinite.e5m2x2.f32 d, a, b`: `a` goes to the upper byte.
#[inline]
pub fn pack_e5m2x2(a: f32, b: f32, relu: bool) -> u16 {
    (e5m2_from(a, relu) as u16) << 8 | e5m2_from(b, relu) as u16
}

/// `cvt.rn.f16x2.e4m3x2`: the lower byte gives the lower half.
#[inline]
pub fn unpack_e4m3x2(x: u16, relu: bool) -> u32 {
    unpack(x, relu, e4m3_to_f16)
}

/// `cvt.rn.f16x2.e5m2x2`: the lower byte gives the lower half.
#[inline]
pub fn unpack_e5m2x2(x: u16, relu: bool) -> u32 {
    unpack(x, relu, e5m2_to_f16)
}

fn unpack(x: u16, relu: bool, widen: fn(u8) -> f16) -> u32 {
    let half = |byte: u8| {
        let wide = widen(byte);
        (if relu { wide.relu() } else { wide }).to_bits() as u32
    };
    half((x >> 8) as u8) << 16 | half(x as u8)
}

/// `.satfinite` over a rounded f16 or bf16: infinity becomes the largest finite number.
#[inline]
pub fn round_satfinite<F: Float>(x: f64, rounding: Rounding) -> F {
    let rounded = F::round_from(x, rounding);
    if rounded.magnitude() > F::MAX_FINITE {
        let sign = rounded.to_bits64() & F::SIGN;
        F::of_bits64(F::MAX_FINITE.to_bits64() | sign)
    } else {
        rounded
    }
}
