//! Numbers worked out the long way, for references: directed rounding, the small formats, special functions.

use half::{bf16, f16};
use std::cmp::Ordering;

/// A direction of rounding other than to nearest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Toward {
    Zero,
    Down,
    Up,
}

/// Neighbouring values, which is all that directed rounding needs to know of a type.
pub trait Neighbours: Copy {
    fn below(self) -> Self;
    fn above(self) -> Self;
    fn negative(self) -> bool;
}

macro_rules! neighbours {
    ($($type:ty),*) => {
        $(impl Neighbours for $type {
            fn below(self) -> Self { self.next_down() }
            fn above(self) -> Self { self.next_up() }
            fn negative(self) -> bool { self.is_sign_negative() }
        })*
    };
}
neighbours!(f32, f64);

impl Neighbours for f16 {
    fn below(self) -> f16 {
        step(self, -1)
    }
    fn above(self) -> f16 {
        step(self, 1)
    }
    fn negative(self) -> bool {
        self.is_sign_negative()
    }
}

fn step(x: f16, by: i32) -> f16 {
    let magnitude = (x.to_bits() & 0x7fff) as i32;
    if x.is_sign_negative() {
        // Up from the least negative number is minus zero.
        return if magnitude < by {
            f16::from_bits(by as u16)
        } else {
            f16::from_bits(0x8000 | (magnitude - by) as u16)
        };
    }
    if magnitude + by < 0 { f16::from_bits(0x8001) } else { f16::from_bits((magnitude + by) as u16) }
}

/// The rounding of a value in a direction, given its rounding to nearest and how it compares with that.
pub fn directed<T: Neighbours>(nearest: T, exact_against_nearest: Ordering, toward: Toward) -> T {
    let down = match toward {
        Toward::Zero => !nearest.negative(),
        Toward::Down => true,
        Toward::Up => false,
    };
    match exact_against_nearest {
        Ordering::Less if down => nearest.below(),
        Ordering::Greater if !down => nearest.above(),
        _ => nearest,
    }
}

/// A sum and what rounding left out of it.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let from_b = sum - a;
    (sum, (a - (sum - from_b)) + (b - from_b))
}

/// A product as the exact sum of two numbers.
pub fn product(a: f64, b: f64) -> [f64; 2] {
    let p = a * b;
    [p, a.mul_add(b, -p)]
}

/// The sign of an exact sum. Keeps the sum as parts that do not overlap, smallest first (Shewchuk), so the last
/// that is not zero decides.
pub fn sign_of_sum(terms: &[f64]) -> Ordering {
    let mut parts: Vec<f64> = Vec::new();
    for term in terms {
        let mut carry = *term;
        for part in &mut parts {
            (carry, *part) = two_sum(carry, *part);
        }
        parts.push(carry);
    }
    let top = parts.iter().rev().find(|part| **part != 0.0).copied().unwrap_or(0.0);
    top.total_cmp(&0.0)
}

/// The nearest f16, ties to even.
pub fn nearest_f16(x: f64) -> f16 {
    let value = |h: f16| if h.is_infinite() { 65536.0f64.copysign(h.to_f64()) } else { h.to_f64() };
    let guess = f16::from_f32(x as f32);
    [guess, guess.below(), guess.above()]
        .into_iter()
        .filter(|h| !h.is_nan())
        .min_by(|a, b| {
            let distance = |h: f16| (value(h) - x).abs();
            distance(*a).total_cmp(&distance(*b)).then((a.to_bits() & 1).cmp(&(b.to_bits() & 1)))
        })
        .expect("the guess is a number")
}

/// The nearest bf16, ties to even, of a value that needs no more than the 53 bits of an f64.
pub fn nearest_bf16(x: f64) -> bf16 {
    let truncated = bf16::from_bits((x as f32).to_bits().wrapping_shr(16) as u16);
    let bits = truncated.to_bits();
    [bits.saturating_sub(1), bits, bits.saturating_add(1)]
        .map(bf16::from_bits)
        .into_iter()
        .filter(|b| b.is_finite())
        .min_by(|a, b| {
            let distance = |h: &bf16| (h.to_f64() - x).abs();
            distance(a).total_cmp(&distance(b)).then((a.to_bits() & 1).cmp(&(b.to_bits() & 1)))
        })
        .expect("the value is within the range of bf16")
}

/// The value of an fp8 encoding that is a number.
pub fn fp8_value(byte: u8, fraction_bits: u32, bias: i32) -> f64 {
    let exponent = ((byte & 0x7f) >> fraction_bits) as i32;
    let fraction = (byte & ((1 << fraction_bits) - 1)) as f64 / (1 << fraction_bits) as f64;
    let magnitude = match exponent {
        0 => fraction * 2.0f64.powi(1 - bias),
        _ => (1.0 + fraction) * 2.0f64.powi(exponent - bias),
    };
    if byte & 0x80 != 0 { -magnitude } else { magnitude }
}

/// The nearest fp8 encoding up to `largest`, ties to even; found by looking at all.
pub fn nearest_fp8(x: f64, largest: u8, fraction_bits: u32, bias: i32) -> u8 {
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    let nearest = (0..=largest).min_by(|&a, &b| {
        let distance = |byte| (fp8_value(byte, fraction_bits, bias) - x.abs()).abs();
        distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1)))
    });
    sign | nearest.expect("there are encodings")
}

/// x - n*y for the integer n nearest to x/y, ties to even; and n modulo 8 with the sign of x/y.
pub fn ieee_remainder(x: f64, y: f64) -> (f64, i32) {
    let magnitude = y.abs();
    let rest8 = x.abs() % (8.0 * magnitude);
    let mut quotient = (rest8 / magnitude).floor() as i32;
    let mut rest = x.abs() % magnitude;
    // The division above may have rounded up to the next integer.
    if quotient as f64 * magnitude > rest8 {
        quotient -= 1;
    }
    let half = magnitude / 2.0;
    if rest > half || (rest == half && quotient % 2 == 1) {
        rest -= magnitude;
        quotient += 1;
    }
    let sign = if (x < 0.0) == (y < 0.0) { 1 } else { -1 };
    (if x.is_sign_negative() { -rest } else { rest }, sign * (quotient % 8))
}

/// The error function: a series without cancellation, good to the last few bits for |x| below 6.
pub fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..200 {
        term *= 2.0 * x * x / (2 * n + 1) as f64;
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// 1 - erf(x), by a continued fraction where the difference would cancel.
pub fn erfc(x: f64) -> f64 {
    if x < 1.5 {
        return 1.0 - erf(x);
    }
    let fraction = (1..200).rev().fold(x, |below, n| x + n as f64 / 2.0 / below);
    (-x * x).exp() / fraction / std::f64::consts::PI.sqrt()
}

/// ln(gamma(x)) for x > 0: Stirling's series above 25, and the recurrence down from there.
pub fn log_gamma(x: f64) -> f64 {
    let shift = if x < 25.0 { (25.0 - x).ceil() as i32 } else { 0 };
    let product: f64 = (0..shift).map(|k| x + k as f64).product();
    stirling(x + shift as f64) - product.ln()
}

/// gamma(x) for x > 0.
pub fn gamma(x: f64) -> f64 {
    let shift = if x < 25.0 { (25.0 - x).ceil() as i32 } else { 0 };
    let product: f64 = (0..shift).map(|k| x + k as f64).product();
    stirling(x + shift as f64).exp() / product
}

fn stirling(z: f64) -> f64 {
    let series = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0];
    let tail: f64 = series.iter().rev().fold(0.0, |sum, c| sum / (z * z) + c) / z;
    (z - 0.5) * z.ln() - z + 0.5 * (2.0 * std::f64::consts::PI).ln() + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_functions_have_their_known_values() {
        let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-13 * b.abs(), "{a} is not {b}");
        close(erf(0.5), 0.520_499_877_813_046_5);
        close(erfc(3.0), 2.209_049_699_858_544e-5);
        close(gamma(5.0), 24.0);
        close(gamma(0.5), std::f64::consts::PI.sqrt());
        close(log_gamma(10.0), 362_880f64.ln());
    }

    #[test]
    fn directed_rounding_steps_to_the_right_side() {
        let third = 1.0f32 / 3.0;
        let order = sign_of_sum(&[1.0, -product(third as f64, 3.0)[0]]);
        assert_eq!(order, Ordering::Less);
        assert_eq!(directed(third, order, Toward::Down), third.next_down());
        assert_eq!(directed(third, order, Toward::Up), third);
    }

    #[test]
    fn remainders_take_the_nearest_multiple() {
        assert_eq!(ieee_remainder(5.0, 2.0), (1.0, 2));
        assert_eq!(ieee_remainder(7.0, 2.0), (-1.0, 4));
        assert_eq!(ieee_remainder(-5.5, 2.0), (0.5, -3));
    }

    #[test]
    fn small_formats_round_to_even() {
        assert_eq!(nearest_f16(2049.0).to_f64(), 2048.0);
        assert_eq!(nearest_f16(2051.0).to_f64(), 2052.0);
        assert_eq!(nearest_f16(65520.0), f16::INFINITY);
        assert_eq!(nearest_bf16(257.0).to_f64(), 256.0);
        assert_eq!(nearest_fp8(-449.0, 0x7e, 3, 7), 0xfe);
    }
}
