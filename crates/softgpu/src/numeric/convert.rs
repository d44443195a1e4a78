//! `cvt` among integers and the four float types.

use super::exact::{Exact, Format};
use super::{Float, Rounding};

/// An integer type of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Integer {
    pub bits: u32,
    pub signed: bool,
}

impl Integer {
    pub const U8: Integer = Integer { bits: 8, signed: false };
    pub const U16: Integer = Integer { bits: 16, signed: false };
    pub const U32: Integer = Integer { bits: 32, signed: false };
    pub const U64: Integer = Integer { bits: 64, signed: false };
    pub const S8: Integer = Integer { bits: 8, signed: true };
    pub const S16: Integer = Integer { bits: 16, signed: true };
    pub const S32: Integer = Integer { bits: 32, signed: true };
    pub const S64: Integer = Integer { bits: 64, signed: true };

    #[inline]
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// The number meant by the low bits of `raw`.
    #[inline]
    pub const fn value(self, raw: u64) -> i128 {
        if self.signed { self.extend(raw) as i64 as i128 } else { self.extend(raw) as i128 }
    }

    /// The low bits of `raw`, sign- or zero-extended to 64.
    #[inline]
    pub const fn extend(self, raw: u64) -> u64 {
        let spare = 64 - self.bits;
        if self.signed { ((raw << spare) as i64 >> spare) as u64 } else { raw << spare >> spare }
    }

    pub const fn min(self) -> i128 {
        if self.signed { -(1 << (self.bits - 1)) } else { 0 }
    }

    pub const fn max(self) -> i128 {
        if self.signed { (1 << (self.bits - 1)) - 1 } else { (1 << self.bits) - 1 }
    }

    #[inline]
    fn clamp(self, value: i128) -> u64 {
        value.clamp(self.min(), self.max()) as u64
    }
}

/// Integer to integer. The result is extended to 64 bits by the destination's own sign, so that a
/// register wider than the destination type holds what PTX says it holds.
#[inline]
pub fn convert_integer(raw: u64, from: Integer, to: Integer, saturate: bool) -> u64 {
    if saturate { to.clamp(from.value(raw)) } else { to.extend(from.extend(raw)) }
}

/// Float to integer: rounded to an integral value, then clamped to the range of `to`. The result is
/// extended to 64 bits by the sign of `to`. For `.ftz` flush the operand first.
#[inline]
pub fn float_to_integer<F: Float>(x: F, to: Integer, rounding: Rounding) -> u64 {
    if x.is_nan() {
        return nan_to_integer(F::BITS, to);
    }
    let x = integral_f64(x.to_f64(), rounding);
    // Every bound of 32 bits or fewer is exact in f64, and `as` clamps to its own type.
    match (to.bits, to.signed) {
        (64, true) => x as i64 as u64,
        (64, false) => x as u64,
        (32, true) => x as i32 as i64 as u64,
        (32, false) => x as u32 as u64,
        (16, true) => x as i16 as i64 as u64,
        (16, false) => x as u16 as u64,
        (8, true) => x as i8 as i64 as u64,
        _ => x as u8 as u64,
    }
}

/// NaN is 0, except that the 64-bit conversions of a card give the integer with only its top bit
/// set.
#[cold]
fn nan_to_integer(from_bits: u32, to: Integer) -> u64 {
    if from_bits == 64 || to.bits == 64 { to.extend(1 << (to.bits - 1)) } else { 0 }
}

#[inline]
fn integral_f64(x: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => x.round_ties_even(),
        Rounding::Zero => x.trunc(),
        Rounding::Down => x.floor(),
        Rounding::Up => x.ceil(),
        Rounding::NearestAway => x.round(),
    }
}

/// `cvt.rni.f32.f32` and its like: to an integral value in the same type. Zeros keep their sign.
#[inline]
pub fn round_integral<F: Float>(x: F, rounding: Rounding) -> F {
    if x.is_nan() {
        return x.nan_of(x);
    }
    // The integral neighbour of a value is representable wherever the value is.
    F::round_from(integral_f64(x.to_f64(), rounding), Rounding::Nearest)
}

/// Integer to float, rounded once.
#[inline]
pub fn integer_to_float<F: Float>(raw: u64, from: Integer, rounding: Rounding) -> F {
    let wide = from.extend(raw);
    // 53 bits or fewer are exact in f64.
    let small = if from.signed { (wide as i64).unsigned_abs() } else { wide } < 1 << 53;
    if small {
        let exact = if from.signed { wide as i64 as f64 } else { wide as f64 };
        return F::round_from(exact, rounding);
    }
    let value = from.value(raw);
    let exact = Exact::new(value < 0, value.unsigned_abs(), 0).expect("2^53 and more is not zero");
    F::of_bits64(exact.round(F::FORMAT, rounding))
}

/// Float to float. Widening is exact.
#[inline]
pub fn convert_float<A: Float, B: Float>(x: A, rounding: Rounding) -> B {
    if x.is_nan() { convert_nan(x) } else { B::round_from(x.to_f64(), rounding) }
}

/// `cvt.ftz`, which concerns f32 where it meets f32 or f64; a card ignores it between f32 and f16.
#[inline]
pub fn convert_float_ftz<A: Float, B: Float>(x: A, rounding: Rounding) -> B {
    let single = |format| format == Format::F32;
    if x.is_nan() && single(A::FORMAT) {
        return convert_nan(A::CANONICAL_NAN);
    }
    if A::BITS == 16 || B::BITS == 16 {
        return convert_float(x, rounding);
    }
    let x = x.flush_if(single(A::FORMAT));
    let result: B = convert_float(x, rounding);
    if single(B::FORMAT) { result.flush_judging(rounding, || x.to_f64()) } else { result }
}

/// Conversions from and to f64 keep sign and as much of the payload as fits, made quiet. bf16 is
/// the upper half of f32 and widens as such. All others give the canonical NaN.
#[cold]
fn convert_nan<A: Float, B: Float>(x: A) -> B {
    if A::FORMAT == Format::BF16 && B::FORMAT == Format::F32 {
        return B::of_bits64(x.to_bits64() << 16);
    }
    if A::FORMAT != Format::F64 && B::FORMAT != Format::F64 {
        return B::CANONICAL_NAN;
    }
    let (from, to) = (A::FORMAT.precision - 1, B::FORMAT.precision - 1);
    let payload = x.to_bits64() & ((1 << from) - 1);
    let payload = if from < to { payload << (to - from) } else { payload >> (from - to) };
    let sign = if x.is_negative() { B::SIGN } else { 0 };
    B::of_bits64(sign | B::FORMAT.infinity() | 1 << (to - 1) | payload)
}
