//! The `.approx` functions.
//!
//! A card's results differ from the true value by a few units in the last place and from chip to
//! chip; PTX bounds the error and fixes the special cases. Here they are computed in f64 and
//! rounded to nearest, so they lie within every bound. `ftz` flushes subnormal operands and
//! results.

use super::{Float, Rounding, copysign};

#[inline]
fn of_f32(x: f32, ftz: bool, f: impl Fn(f64) -> f64) -> f32 {
    let x = x.flush_if(ftz);
    <f32 as Float>::round_from(f(x as f64), Rounding::Nearest).flush_if(ftz)
}

/// `rcp.approx.f32`.
#[inline]
pub fn approximate_recip(x: f32, ftz: bool) -> f32 {
    of_f32(x, ftz, |x| 1.0 / x)
}

/// `div.full.f32`.
#[inline]
pub fn full_range_divide(a: f32, b: f32, ftz: bool) -> f32 {
    if ftz { a.div_ftz(b, Rounding::Nearest) } else { Float::div(a, b, Rounding::Nearest) }
}

/// `div.approx.f32`: the dividend times a reciprocal, which for divisors above 2^126 is too small
/// to be anything but zero.
#[inline]
pub fn approximate_divide(a: f32, b: f32, ftz: bool) -> f32 {
    const TWO_TO_126: f32 = f32::from_bits(0x7e80_0000);
    if b.abs() > TWO_TO_126 && b.is_finite() {
        return Float::mul(a.flush_if(ftz), copysign(b, 0.0), Rounding::Nearest);
    }
    full_range_divide(a, b, ftz)
}

/// `sqrt.approx.f32`.
#[inline]
pub fn approximate_sqrt(x: f32, ftz: bool) -> f32 {
    of_f32(x, ftz, f64::sqrt)
}

/// `rsqrt.approx.f32`.
#[inline]
pub fn approximate_rsqrt(x: f32, ftz: bool) -> f32 {
    of_f32(x, ftz, |x| 1.0 / x.sqrt())
}

/// `sin.approx.f32`.
#[inline]
pub fn approximate_sin(x: f32, ftz: bool) -> f32 {
    of_f32(x, ftz, f64::sin)
}

/// `cos.approx.f32`.
#[inline]
pub fn approximate_cos(x: f32, ftz: bool) -> f32 {
    of_f32(x, ftz, f64::cos)
}

/// `lg2.approx.f32`.
#[inline]
pub fn approximate_log2(x: f32, ftz: bool) -> f32 {
    of_f32(x, ftz, f64::log2)
}

/// `ex2.approx.f32`.
#[inline]
pub fn approximate_exp2(x: f32, ftz: bool) -> f32 {
    of_f32(x, ftz, f64::exp2)
}

/// `tanh.approx.f32`.
#[inline]
pub fn approximate_tanh(x: f32) -> f32 {
    of_f32(x, false, f64::tanh)
}

/// `ex2.approx` over f16 or bf16; `.ftz.bf16` passes `ftz`.
#[inline]
pub fn approximate_exp2_of<F: Float>(x: F, ftz: bool) -> F {
    F::round_from(x.flush_if(ftz).to_f64().exp2(), Rounding::Nearest).flush_if(ftz)
}

/// `tanh.approx` over f16 or bf16.
#[inline]
pub fn approximate_tanh_of<F: Float>(x: F) -> F {
    F::round_from(x.to_f64().tanh(), Rounding::Nearest)
}

/// `rcp.approx.ftz.f64`: works on the upper 32 bits, so the result's lower 32 bits are zero.
#[inline]
pub fn approximate_recip_f64(x: f64) -> f64 {
    upper_word(x, |x| 1.0 / x)
}

/// `rsqrt.approx.ftz.f64`: works on the upper 32 bits, so the result's lower 32 bits are zero.
#[inline]
pub fn approximate_rsqrt_f64(x: f64) -> f64 {
    upper_word(x, |x| 1.0 / x.sqrt())
}

fn upper_word(x: f64, f: impl Fn(f64) -> f64) -> f64 {
    const UPPER: u64 = 0xffff_ffff_0000_0000;
    // Cut off first: a NaN whose payload lies in the lower word counts as infinity.
    let x = f64::from_bits(x.flush().to_bits() & UPPER);
    let result = f(x).flush();
    if result.is_nan() {
        return f64::from_bits(0x7fff_ffff_0000_0000);
    }
    if !result.is_finite() {
        return result;
    }
    // Nearest among the values with a clear lower word; a carry may run into the exponent.
    f64::from_bits((result.to_bits() + 0x8000_0000) & UPPER)
}
