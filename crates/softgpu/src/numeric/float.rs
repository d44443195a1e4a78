//! [`Float`]: the arithmetic of PTX over f16, bf16, f32 and f64.

use super::Rounding;
use super::exact::{Exact, Format};
use super::odd;
use half::{bf16, f16};

/// How `min` and `max` treat NaNs and signs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MinMax {
    /// `.NaN`: a NaN operand makes the result NaN. Otherwise the other operand wins.
    pub propagate_nan: bool,
    /// `.xorsign.abs`: magnitudes are compared, the sign is the exclusive or of both.
    pub xorsign_abs: bool,
}

/// A floating-point type of PTX. All operations round once and return the NaN a card returns;
/// `ftz` and `sat` are [`flush`](Float::flush) over the operands and result and
/// [`saturate`](Float::saturate) over the result.
///
/// f16, bf16 and f32 know one NaN result, all fraction bits set. f64 keeps the payload of an
/// operand, quietened: of the second, else the third, else the first; a quotient of the dividend.
pub trait Float: Copy + PartialEq + PartialOrd + std::fmt::Debug {
    const FORMAT: Format;
    /// Width of the encoding.
    const BITS: u32 = Self::FORMAT.bits();
    /// The sign of an encoding.
    const SIGN: u64 = Self::FORMAT.sign_bit();
    const ZERO: Self;
    const ONE: Self;
    const MAX_FINITE: Self;
    /// What an invalid operation returns.
    const CANONICAL_NAN: Self;

    fn to_bits64(self) -> u64;
    /// From the low bits of `bits`.
    fn of_bits64(bits: u64) -> Self;
    /// Exact.
    fn to_f64(self) -> f64;
    /// Rounded once; NaN becomes [`CANONICAL_NAN`](Float::CANONICAL_NAN).
    fn round_from(x: f64, rounding: Rounding) -> Self;

    fn add(self, other: Self, rounding: Rounding) -> Self;
    fn mul(self, other: Self, rounding: Rounding) -> Self;
    /// `self * factor + addend`.
    fn fma(self, factor: Self, addend: Self, rounding: Rounding) -> Self;
    fn div(self, by: Self, rounding: Rounding) -> Self;
    fn square_root(self, rounding: Rounding) -> Self;

    /// The NaN that a card's minimum, maximum or conversion gives for these operands, at least one
    /// of which is NaN.
    fn nan_of(self, other: Self) -> Self;

    /// `neg`. A NaN is made quiet, or canonical, and keeps its sign.
    #[inline]
    fn negated(self) -> Self {
        if self.is_nan() { self.nan_of(self) } else { self.negate() }
    }
    /// `abs`. A NaN is made quiet, or canonical, and keeps its sign.
    #[inline]
    fn absolute(self) -> Self {
        if self.is_nan() { self.nan_of(self) } else { self.magnitude() }
    }
    #[inline]
    fn sub(self, other: Self, rounding: Rounding) -> Self {
        // A NaN keeps its sign here only in f64, where the operand is told apart.
        if other.is_nan() { self.add(other, rounding) } else { self.add(other.negate(), rounding) }
    }
    #[inline]
    fn reciprocal(self, rounding: Rounding) -> Self {
        Self::ONE.div(self, rounding)
    }
    #[inline]
    fn is_nan(self) -> bool {
        self.to_bits64() & !Self::SIGN > Self::FORMAT.infinity()
    }
    #[inline]
    fn is_negative(self) -> bool {
        self.to_bits64() & Self::SIGN != 0
    }
    /// Flips the sign bit, of NaNs too.
    #[inline]
    fn negate(self) -> Self {
        Self::of_bits64(self.to_bits64() ^ Self::SIGN)
    }
    /// Clears the sign bit, of NaNs too.
    #[inline]
    fn magnitude(self) -> Self {
        Self::of_bits64(self.to_bits64() & !Self::SIGN)
    }
    #[inline]
    fn is_subnormal(self) -> bool {
        let magnitude = self.to_bits64() & !Self::SIGN;
        magnitude != 0 && magnitude < Self::FORMAT.smallest_normal()
    }
    /// `.ftz`: a subnormal becomes a zero of the same sign.
    #[inline]
    fn flush(self) -> Self {
        if self.is_subnormal() { Self::of_bits64(self.to_bits64() & Self::SIGN) } else { self }
    }
    /// [`flush`](Float::flush) on request.
    #[inline]
    fn flush_if(self, ftz: bool) -> Self {
        if ftz { self.flush() } else { self }
    }
    /// `add.ftz`. A sum that is subnormal is exact, so flushing it afterwards is all there is to it.
    #[inline]
    fn add_ftz(self, other: Self, rounding: Rounding) -> Self {
        self.flush().add(other.flush(), rounding).flush()
    }
    /// `sub.ftz`.
    #[inline]
    fn sub_ftz(self, other: Self, rounding: Rounding) -> Self {
        self.flush().sub(other.flush(), rounding).flush()
    }
    /// `mul.ftz`. A card judges what is too small after rounding to the usual number of bits, not to
    /// the fewer of a subnormal: some products that round to the smallest normal number are flushed.
    #[inline]
    fn mul_ftz(self, other: Self, rounding: Rounding) -> Self {
        let (a, b) = (self.flush(), other.flush());
        a.mul(b, rounding).flush_judging(rounding, || a.to_f64() * b.to_f64())
    }
    /// `fma.ftz`, judged like [`mul_ftz`](Float::mul_ftz).
    #[inline]
    fn fma_ftz(self, factor: Self, addend: Self, rounding: Rounding) -> Self {
        let (a, b, c) = (self.flush(), factor.flush(), addend.flush());
        a.fma(b, c, rounding).flush_judging(rounding, || odd::add(a.to_f64() * b.to_f64(), c.to_f64()))
    }
    /// `div.ftz`, judged like [`mul_ftz`](Float::mul_ftz).
    #[inline]
    fn div_ftz(self, by: Self, rounding: Rounding) -> Self {
        let (a, b) = (self.flush(), by.flush());
        a.div(b, rounding).flush_judging(rounding, || odd::divide(a.to_f64(), b.to_f64()))
    }
    /// Flushes a result that is subnormal, or would be had it been rounded with an exponent of any
    /// size. `unrounded` is the value before rounding, exact or rounded to odd.
    #[inline]
    fn flush_judging(self, rounding: Rounding, unrounded: impl FnOnce() -> f64) -> Self {
        let smallest = Self::FORMAT.smallest_normal();
        if self.to_bits64() & !Self::SIGN != smallest {
            return self.flush();
        }
        // Twice the value has its full number of bits.
        let doubled = Self::round_from(unrounded() * 2.0, rounding).to_bits64() & !Self::SIGN;
        if doubled < 2 * smallest { Self::of_bits64(self.to_bits64() & Self::SIGN) } else { self }
    }
    /// `.sat`: clamped to [0, 1]; NaN and -0 become +0.
    #[inline]
    fn saturate(self) -> Self {
        if self >= Self::ONE {
            Self::ONE
        } else if self > Self::ZERO {
            self
        } else {
            Self::ZERO
        }
    }
    /// `.relu`: negative values, -0 among them, become +0; NaN is canonical.
    #[inline]
    fn relu(self) -> Self {
        if self.is_nan() {
            Self::CANONICAL_NAN
        } else if self.is_negative() {
            Self::ZERO
        } else {
            self
        }
    }
    #[inline]
    fn smaller(self, other: Self, how: MinMax) -> Self {
        select(self, other, how, true)
    }
    #[inline]
    fn larger(self, other: Self, how: MinMax) -> Self {
        select(self, other, how, false)
    }
}

#[inline]
fn select<F: Float>(a: F, b: F, how: MinMax, smaller: bool) -> F {
    let sign = (a.to_bits64() ^ b.to_bits64()) & F::SIGN;
    let (a, b) = if how.xorsign_abs { (a.magnitude(), b.magnitude()) } else { (a, b) };
    if a.is_nan() || b.is_nan() {
        if how.propagate_nan || (a.is_nan() && b.is_nan()) {
            return a.nan_of(b);
        }
        let number = if a.is_nan() { b } else { a };
        return if how.xorsign_abs { with_sign(number, sign) } else { number };
    }
    // Zeros of different sign compare equal, yet -0 counts as the smaller.
    let a_smaller = a < b || (a == b && a.is_negative());
    let chosen = if a_smaller == smaller { a } else { b };
    if how.xorsign_abs { with_sign(chosen, sign) } else { chosen }
}

#[inline]
fn with_sign<F: Float>(x: F, sign: u64) -> F {
    F::of_bits64(x.magnitude().to_bits64() | sign)
}

/// A sum of operands exact in f64, rounded to odd, with the sign that `rounding` gives to a zero.
#[inline]
fn sum_for(a: f64, b: f64, rounding: Rounding) -> f64 {
    let sum = odd::add(a, b);
    let cancelled = sum == 0.0 && (a.is_sign_negative() || b.is_sign_negative());
    if cancelled && rounding == Rounding::Down { -0.0 } else { sum }
}

impl Float for f32 {
    const FORMAT: Format = Format::F32;
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
    const MAX_FINITE: f32 = f32::MAX;
    const CANONICAL_NAN: f32 = f32::from_bits(0x7fff_ffff);

    #[inline]
    fn to_bits64(self) -> u64 {
        self.to_bits() as u64
    }
    #[inline]
    fn of_bits64(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
    #[inline]
    fn to_f64(self) -> f64 {
        self as f64
    }
    #[inline]
    fn round_from(x: f64, rounding: Rounding) -> f32 {
        let nearest = canonical(x as f32);
        let back = nearest as f64;
        match rounding {
            Rounding::Nearest => nearest,
            Rounding::Zero if back.abs() > x.abs() => f32::from_bits(nearest.to_bits() - 1),
            Rounding::Down if back > x => nearest.next_down(),
            Rounding::Up if back < x => nearest.next_up(),
            // Comparisons with a NaN are false, so that it falls through.
            Rounding::NearestAway if x.is_finite() => round_exactly(x, Format::F32, rounding),
            _ => nearest,
        }
    }
    #[inline]
    fn add(self, other: f32, rounding: Rounding) -> f32 {
        match rounding {
            Rounding::Nearest => canonical(self + other),
            _ => Self::round_from(sum_for(self as f64, other as f64, rounding), rounding),
        }
    }
    #[inline]
    fn mul(self, other: f32, rounding: Rounding) -> f32 {
        match rounding {
            Rounding::Nearest => canonical(self * other),
            _ => Self::round_from(self as f64 * other as f64, rounding),
        }
    }
    #[inline]
    fn fma(self, factor: f32, addend: f32, rounding: Rounding) -> f32 {
        match rounding {
            Rounding::Nearest => canonical(self.mul_add(factor, addend)),
            _ => Self::round_from(sum_for(self as f64 * factor as f64, addend as f64, rounding), rounding),
        }
    }
    #[inline]
    fn div(self, by: f32, rounding: Rounding) -> f32 {
        match rounding {
            Rounding::Nearest => canonical(self / by),
            _ => Self::round_from(odd::divide(self as f64, by as f64), rounding),
        }
    }
    #[inline]
    fn square_root(self, rounding: Rounding) -> f32 {
        match rounding {
            Rounding::Nearest => canonical(f32::sqrt(self)),
            _ => Self::round_from(odd::square_root(self as f64), rounding),
        }
    }
    #[inline]
    fn nan_of(self, _other: f32) -> f32 {
        Self::CANONICAL_NAN
    }
}

/// Chosen among integers: the compiler takes one NaN for as good as another and may fold a choice
/// among floats away.
#[inline]
fn canonical(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(if bits << 1 > 0xff00_0000 { 0x7fff_ffff } else { bits })
}

fn round_exactly<F: Float>(x: f64, format: Format, rounding: Rounding) -> F {
    match Exact::of_f64(x) {
        Some(value) => F::of_bits64(value.round(format, rounding)),
        None => F::of_bits64(if x.is_sign_negative() { F::SIGN } else { 0 }),
    }
}

impl Float for f64 {
    const FORMAT: Format = Format::F64;
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    const MAX_FINITE: f64 = f64::MAX;
    const CANONICAL_NAN: f64 = f64::from_bits(0xfff8_0000_0000_0000);

    #[inline]
    fn to_bits64(self) -> u64 {
        self.to_bits()
    }
    #[inline]
    fn of_bits64(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    #[inline]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline]
    fn round_from(x: f64, _rounding: Rounding) -> f64 {
        x
    }
    #[inline]
    fn add(self, other: f64, rounding: Rounding) -> f64 {
        let sum = self + other;
        if sum.is_nan() {
            return invalid([self, other]);
        }
        if rounding == Rounding::Nearest || !self.is_finite() || !other.is_finite() {
            return sum;
        }
        match (Exact::of_f64(self), Exact::of_f64(other)) {
            (Some(a), Some(b)) => rounded_sum(a, b, rounding),
            (None, None) if self.is_sign_negative() != other.is_sign_negative() => cancelled(rounding),
            _ => sum,
        }
    }
    #[inline]
    fn mul(self, other: f64, rounding: Rounding) -> f64 {
        let product = self * other;
        if product.is_nan() {
            return invalid([self, other]);
        }
        match operands(self, other, rounding) {
            Some((a, b)) => round_f64(a.multiply(b), rounding),
            None => product,
        }
    }
    #[inline]
    fn fma(self, factor: f64, addend: f64, rounding: Rounding) -> f64 {
        if rounding == Rounding::Nearest || !addend.is_finite() {
            let result = self.mul_add(factor, addend);
            return if result.is_nan() { invalid([self, addend, factor]) } else { result };
        }
        match (operands(self, factor, rounding), Exact::of_f64(addend)) {
            (Some((a, b)), Some(c)) => rounded_sum(a.multiply(b), c, rounding),
            (Some((a, b)), None) => round_f64(a.multiply(b), rounding),
            (None, _) if self.is_nan() || factor.is_nan() => invalid([self, factor]),
            // The product is zero, infinite or invalid, so it is no rounding to form it.
            (None, _) => self.mul(factor, rounding).add(addend, rounding),
        }
    }
    #[inline]
    fn div(self, by: f64, rounding: Rounding) -> f64 {
        let quotient = self / by;
        if quotient.is_nan() {
            return invalid([by, self]);
        }
        match operands(self, by, rounding) {
            Some((a, b)) => round_f64(a.divide(b), rounding),
            None => quotient,
        }
    }
    #[inline]
    fn square_root(self, rounding: Rounding) -> f64 {
        let root = f64::sqrt(self);
        if root.is_nan() {
            return invalid([self]);
        }
        match operands(self, self, rounding) {
            Some((a, _)) => round_f64(a.square_root(), rounding),
            None => root,
        }
    }
    #[inline]
    fn nan_of(self, other: f64) -> f64 {
        invalid([self, other])
    }
}

/// The f64 NaN for an operation over `operands`, least preferred first: the last NaN among them
/// made quiet, or the canonical one.
#[cold]
fn invalid<const N: usize>(operands: [f64; N]) -> f64 {
    match operands.iter().rfind(|x| x.is_nan()) {
        Some(nan) => f64::from_bits(nan.to_bits() | 1 << 51),
        None => f64::CANONICAL_NAN,
    }
}

/// Both operands as exact values where a directed rounding has work to do: finite and not zero.
#[inline]
fn operands(a: f64, b: f64, rounding: Rounding) -> Option<(Exact, Exact)> {
    if rounding == Rounding::Nearest || !a.is_finite() || !b.is_finite() {
        return None;
    }
    Some((Exact::of_f64(a)?, Exact::of_f64(b)?))
}

fn round_f64(x: Exact, rounding: Rounding) -> f64 {
    f64::from_bits(x.round(Format::F64, rounding))
}

fn rounded_sum(a: Exact, b: Exact, rounding: Rounding) -> f64 {
    a.add(b).map_or_else(|| cancelled(rounding), |sum| round_f64(sum, rounding))
}

/// The zero left when equal magnitudes of different sign are added.
fn cancelled(rounding: Rounding) -> f64 {
    if rounding == Rounding::Down { -0.0 } else { 0.0 }
}

/// f16 and bf16 differ in name and format only: all their arithmetic is f64 rounded to odd.
macro_rules! narrow_float {
    ($type:ident, $format:expr) => {
        impl Float for $type {
            const FORMAT: Format = $format;
            const ZERO: $type = $type::ZERO;
            const ONE: $type = $type::ONE;
            const MAX_FINITE: $type = $type::MAX;
            const CANONICAL_NAN: $type = $type::from_bits(0x7fff);

            #[inline]
            fn to_bits64(self) -> u64 {
                self.to_bits() as u64
            }
            #[inline]
            fn of_bits64(bits: u64) -> $type {
                $type::from_bits(bits as u16)
            }
            #[inline]
            fn to_f64(self) -> f64 {
                self.to_f32() as f64
            }
            #[inline]
            fn round_from(x: f64, rounding: Rounding) -> $type {
                if x.is_nan() {
                    return <$type>::CANONICAL_NAN;
                }
                match rounding {
                    Rounding::Nearest => $type::from_f32(odd::to_f32(x)),
                    _ if x.is_infinite() => $type::from_f32(x as f32),
                    _ => round_exactly(x, $format, rounding),
                }
            }
            #[inline]
            fn add(self, other: $type, rounding: Rounding) -> $type {
                Self::round_from(sum_for(self.to_f64(), other.to_f64(), rounding), rounding)
            }
            #[inline]
            fn mul(self, other: $type, rounding: Rounding) -> $type {
                Self::round_from(self.to_f64() * other.to_f64(), rounding)
            }
            #[inline]
            fn fma(self, factor: $type, addend: $type, rounding: Rounding) -> $type {
                let product = self.to_f64() * factor.to_f64();
                Self::round_from(sum_for(product, addend.to_f64(), rounding), rounding)
            }
            #[inline]
            fn div(self, by: $type, rounding: Rounding) -> $type {
                Self::round_from(odd::divide(self.to_f64(), by.to_f64()), rounding)
            }
            #[inline]
            fn square_root(self, rounding: Rounding) -> $type {
                Self::round_from(odd::square_root(self.to_f64()), rounding)
            }
            #[inline]
            fn nan_of(self, _other: $type) -> $type {
                <$type>::CANONICAL_NAN
            }
        }
    };
}

narrow_float!(f16, Format::F16);
narrow_float!(bf16, Format::BF16);
