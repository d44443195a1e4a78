//! Exact numbers the slow way: integers of any length counting in units of `2^-SCALE`. They share
//! nothing with the arithmetic under test.

use crate::numeric::{Float, Rounding};
use std::cmp::Ordering;

/// Below the square of the smallest f64, with room to halve.
const SCALE: i32 = 2200;

/// A number without sign; limbs from the lowest.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Magnitude(Vec<u32>);

impl Magnitude {
    /// `mantissa * 2^exponent`.
    fn new(mantissa: u128, exponent: i32) -> Magnitude {
        let shift = (SCALE + exponent) as usize;
        let mut limbs = vec![0; shift / 32 + 6];
        for bit in (0..128).filter(|bit| mantissa >> bit & 1 == 1) {
            limbs[(shift + bit) / 32] |= 1 << ((shift + bit) % 32);
        }
        Magnitude(limbs).trimmed()
    }

    fn trimmed(mut self) -> Magnitude {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    fn limb(&self, i: usize) -> i64 {
        self.0.get(i).copied().unwrap_or(0) as i64
    }

    fn compare(&self, other: &Magnitude) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// `self + sign * other`, which must not be negative.
    fn combine(&self, other: &Magnitude, sign: i64) -> Magnitude {
        let mut carry = 0i64;
        let mut limbs = Vec::new();
        for i in 0..self.0.len().max(other.0.len()) + 1 {
            let sum = self.limb(i) + sign * other.limb(i) + carry;
            limbs.push(sum as u32);
            carry = sum >> 32;
        }
        assert_eq!(carry, 0);
        Magnitude(limbs).trimmed()
    }
}

/// An exact number.
#[derive(Clone, Debug)]
pub struct Number {
    negative: bool,
    magnitude: Magnitude,
}

fn parts(x: f64) -> (bool, u128, i32) {
    let bits = x.to_bits();
    let field = (bits >> 52 & 0x7ff) as i32;
    let fraction = (bits & ((1 << 52) - 1)) as u128;
    let (mantissa, exponent) =
        if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
    (x.is_sign_negative(), mantissa, exponent)
}

impl Number {
    pub fn of(x: f64) -> Number {
        let (negative, mantissa, exponent) = parts(x);
        Number { negative, magnitude: Magnitude::new(mantissa, exponent) }
    }

    pub fn integer(x: i128) -> Number {
        Number { negative: x < 0, magnitude: Magnitude::new(x.unsigned_abs(), 0) }
    }

    pub fn product(a: f64, b: f64) -> Number {
        let ((a_negative, a, a_exponent), (b_negative, b, b_exponent)) = (parts(a), parts(b));
        Number {
            negative: a_negative != b_negative,
            magnitude: Magnitude::new(a * b, a_exponent + b_exponent),
        }
    }

    pub fn plus(&self, other: &Number) -> Number {
        if self.negative == other.negative {
            let magnitude = self.magnitude.combine(&other.magnitude, 1);
            return Number { negative: self.negative, magnitude };
        }
        if self.magnitude.compare(&other.magnitude) == Ordering::Less {
            return other.plus(self);
        }
        Number { negative: self.negative, magnitude: self.magnitude.combine(&other.magnitude, -1) }
    }

    pub fn compare(&self, other: &Number) -> Ordering {
        let zero = |x: &Number| x.magnitude.0.is_empty();
        match (self.negative && !zero(self), other.negative && !zero(other)) {
            (false, false) => self.magnitude.compare(&other.magnitude),
            (true, true) => other.magnitude.compare(&self.magnitude),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

/// The next value up (`step` 1) or down (-1) in the format, infinities included.
pub fn neighbour<F: Float>(x: F, step: i64) -> F {
    let bits = x.to_bits64();
    let order = if x.is_negative() { -((bits & !F::SIGN) as i64) } else { bits as i64 };
    let infinity = F::FORMAT.infinity() as i64;
    let moved = (order + step).clamp(-infinity, infinity);
    F::of_bits64(if moved < 0 { moved.unsigned_abs() | F::SIGN } else { moved as u64 })
}

/// Whether `result` is the rounding of an exact number, of which `against(x)` tells how it compares
/// with a finite `x`.
pub fn is_rounding<F: Float>(
    result: F,
    rounding: Rounding,
    negative: bool,
    against: impl Fn(f64) -> Ordering,
) -> bool {
    let compare = |x: f64| match x {
        f64::INFINITY => Ordering::Less,
        f64::NEG_INFINITY => Ordering::Greater,
        _ => against(x),
    };
    let [below, here, above] = [neighbour(result, -1), result, neighbour(result, 1)];
    let exact = compare(here.to_f64()).is_eq();
    let floor = exact || (compare(here.to_f64()).is_gt() && compare(above.to_f64()).is_lt());
    let ceiling = exact || (compare(here.to_f64()).is_lt() && compare(below.to_f64()).is_gt());
    match rounding {
        Rounding::Down => floor,
        Rounding::Up => ceiling,
        Rounding::Zero => {
            if negative {
                ceiling
            } else {
                floor
            }
        }
        Rounding::Nearest | Rounding::NearestAway => {
            let even = result.to_bits64() & 1 == 0;
            let from_below = compare(middle(below, here));
            let from_above = compare(middle(here, above));
            (from_below.is_gt() || (even && from_below.is_eq()))
                && (from_above.is_lt() || (even && from_above.is_eq()))
        }
    }
}

/// Half way between neighbours of a format narrower than f64, infinity counting as the power of two
/// that comes after the largest number.
fn middle<F: Float>(a: F, b: F) -> f64 {
    assert!(F::BITS < 64, "the middle is exact in f64");
    let value = |x: F| match x.to_f64() {
        x if x.is_infinite() => x.signum() * 2.0f64.powi(1 << (F::FORMAT.exponent_bits - 1)),
        x => x,
    };
    if a.to_bits64() == b.to_bits64() {
        // Beyond infinity there is nothing to be nearer to.
        return value(a) * f64::INFINITY;
    }
    (value(a) + value(b)) / 2.0
}
