//! Exact intermediate results, and the one place where they are rounded to a format.

use super::Rounding;

/// A binary interchange format: sign, `exponent_bits`, and `precision` significant bits of which
/// the leading one is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    pub precision: u32,
    pub exponent_bits: u32,
}

impl Format {
    pub const F64: Format = Format { precision: 53, exponent_bits: 11 };
    pub const F32: Format = Format { precision: 24, exponent_bits: 8 };
    pub const TF32: Format = Format { precision: 11, exponent_bits: 8 };
    pub const BF16: Format = Format { precision: 8, exponent_bits: 8 };
    pub const F16: Format = Format { precision: 11, exponent_bits: 5 };
    pub const E5M2: Format = Format { precision: 3, exponent_bits: 5 };
    pub const E4M3: Format = Format { precision: 4, exponent_bits: 4 };

    /// Exponent of the smallest normal number.
    const fn min_exponent(self) -> i32 {
        2 - (1 << (self.exponent_bits - 1))
    }

    /// Width of the encoding.
    pub const fn bits(self) -> u32 {
        self.precision + self.exponent_bits
    }

    /// Encoding of the smallest normal number: below it lie the subnormals.
    pub const fn smallest_normal(self) -> u64 {
        1 << (self.precision - 1)
    }

    pub const fn sign_bit(self) -> u64 {
        1 << (self.bits() - 1)
    }

    /// Infinity without sign. The largest finite number is one less.
    pub const fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << (self.precision - 1)
    }
}

/// A finite value, not zero: `mantissa * 2^exponent`, the top bit of the mantissa set.
///
/// The lowest bit is sticky: it is also set when anything non-zero lay below it. No format here
/// has more than 53 significant bits, so a sticky bit 128 places down decides roundings and is
/// never itself kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    pub negative: bool,
    pub mantissa: u128,
    pub exponent: i32,
}

impl Exact {
    /// `mantissa * 2^exponent` brought to normal form, or None for zero.
    pub fn new(negative: bool, mantissa: u128, exponent: i32) -> Option<Exact> {
        let shift = mantissa.checked_ilog2().map(|top| 127 - top)?;
        Some(Exact { negative, mantissa: mantissa << shift, exponent: exponent - shift as i32 })
    }

    /// The value of a finite f64; None for zero.
    pub fn of_f64(x: f64) -> Option<Exact> {
        debug_assert!(x.is_finite());
        let bits = x.to_bits();
        let field = (bits >> 52 & 0x7ff) as i32;
        let fraction = (bits & ((1 << 52) - 1)) as u128;
        let (mantissa, exponent) =
            if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
        Exact::new(bits >> 63 != 0, mantissa, exponent)
    }

    /// Rounds to `format`. Overflow goes to infinity or to the largest finite number, as the
    /// direction demands.
    pub fn round(self, format: Format, rounding: Rounding) -> u64 {
        let magnitude = self.round_magnitude(format, rounding);
        let away = match rounding {
            Rounding::Nearest | Rounding::NearestAway => true,
            Rounding::Zero => false,
            Rounding::Down => self.negative,
            Rounding::Up => !self.negative,
        };
        let infinity = format.infinity();
        let magnitude = if magnitude < infinity {
            magnitude
        } else if away {
            infinity
        } else {
            infinity - 1
        };
        if self.negative { magnitude | format.sign_bit() } else { magnitude }
    }

    /// The encoding without sign, as if exponents went on without end: whatever is not finite in
    /// `format` compares greater or equal to its infinity. Formats that give their top exponent
    /// another meaning (e4m3) clamp for themselves.
    pub fn round_magnitude(self, format: Format, rounding: Rounding) -> u64 {
        let leading = self.exponent + 127;
        let min_exponent = format.min_exponent();
        if leading > min_exponent + (1 << format.exponent_bits) {
            return format.sign_bit();
        }
        let lost_to_underflow = (min_exponent - leading).max(0);
        let keep = format.precision as i32 - lost_to_underflow;
        // Bits below the last one kept, as a fraction of it in units of 2^-128.
        let (kept, rest) = match keep {
            1.. => ((self.mantissa >> (128 - keep)) as u64, self.mantissa << keep),
            0 => (0, self.mantissa),
            _ => (0, 1),
        };
        const HALF: u128 = 1 << 127;
        let increment = match rounding {
            Rounding::Nearest => rest > HALF || (rest == HALF && kept & 1 == 1),
            Rounding::NearestAway => rest >= HALF,
            Rounding::Zero => false,
            Rounding::Down => self.negative && rest != 0,
            Rounding::Up => !self.negative && rest != 0,
        };
        // A carry out of the fraction moves into the exponent field, which is just what it means.
        let base = if leading < min_exponent { 0 } else { (leading - min_exponent) as u64 };
        (base << (format.precision - 1)) + kept + increment as u64
    }

    /// The product, exact: 53-bit factors give 106 bits.
    pub fn multiply(self, other: Exact) -> Exact {
        let product = (self.mantissa >> 64) * (other.mantissa >> 64);
        let negative = self.negative != other.negative;
        Exact::new(negative, product, self.exponent + other.exponent + 128)
            .expect("the product of normal forms is not zero")
    }

    /// The sum; None when it is exactly zero. Operands have at most 106 significant bits, so the
    /// alignment in 256 bits loses something only when the exponents are too far apart to cancel.
    pub fn add(self, other: Exact) -> Option<Exact> {
        let (large, small) = if (self.exponent, self.mantissa) >= (other.exponent, other.mantissa) {
            (self, other)
        } else {
            (other, self)
        };
        // One bit of headroom for the carry.
        let a = Wide { high: large.mantissa >> 1, low: large.mantissa << 127 };
        let b = Wide { high: small.mantissa >> 1, low: small.mantissa << 127 }
            .shift_right_sticky((large.exponent - small.exponent) as u32);
        let sum = if large.negative == small.negative { a.add(b) } else { a.subtract(b) };
        let (mantissa, lowered) = sum.top_128()?;
        Some(Exact { negative: large.negative, mantissa, exponent: large.exponent + 1 - lowered })
    }

    pub fn divide(self, by: Exact) -> Exact {
        // 64-bit mantissas: 2^127 <= a < 2^128 over 2^63 <= b < 2^64 gives a quotient of 64 or 65 bits.
        let divisor = by.mantissa >> 64;
        let quotient = self.mantissa / divisor;
        let rest = self.mantissa % divisor;
        let sticky = (rest != 0) as u128;
        Exact::new(self.negative != by.negative, quotient << 1 | sticky, self.exponent - by.exponent - 65)
            .expect("the quotient of normal forms is not zero")
    }

    /// Square root of a positive value.
    pub fn square_root(self) -> Exact {
        let odd = self.exponent & 1;
        let mantissa = self.mantissa >> odd;
        let root = mantissa.isqrt();
        let sticky = (root * root != mantissa || self.mantissa & odd as u128 != 0) as u128;
        Exact::new(false, root << 1 | sticky, (self.exponent + odd) / 2 - 1).expect("not zero")
    }
}

/// 256 bits, for aligning sums.
#[derive(Clone, Copy)]
struct Wide {
    high: u128,
    low: u128,
}

impl Wide {
    fn shift_right_sticky(self, by: u32) -> Wide {
        match by {
            0 => self,
            1..128 => {
                let lost = self.low << (128 - by) != 0;
                let low = self.low >> by | self.high << (128 - by) | lost as u128;
                Wide { high: self.high >> by, low }
            }
            128..256 => {
                let lost = self.low != 0 || (by > 128 && self.high << (256 - by) != 0);
                Wide { high: 0, low: self.high >> (by - 128) | lost as u128 }
            }
            _ => Wide { high: 0, low: (self.high | self.low != 0) as u128 },
        }
    }

    fn add(self, other: Wide) -> Wide {
        let (low, carry) = self.low.overflowing_add(other.low);
        Wide { high: self.high + other.high + carry as u128, low }
    }

    fn subtract(self, other: Wide) -> Wide {
        let (low, borrow) = self.low.overflowing_sub(other.low);
        Wide { high: self.high - other.high - borrow as u128, low }
    }

    /// The top 128 bits from the leading one on, sticky, and how far they were moved up.
    fn top_128(self) -> Option<(u128, i32)> {
        if self.high == 0 {
            let up = self.low.checked_ilog2().map(|top| 127 - top)?;
            return Some((self.low << up, 128 + up as i32));
        }
        let up = self.high.leading_zeros();
        if up == 0 {
            return Some((self.high | (self.low != 0) as u128, 0));
        }
        let lost = self.low << up != 0;
        Some((self.high << up | self.low >> (128 - up) | lost as u128, up as i32))
    }
}
