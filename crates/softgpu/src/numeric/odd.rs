//! f64 arithmetic rounded to odd: an inexact result takes whichever neighbour has an odd last bit.
//!
//! Such a result, rounded again to a format at least two bits narrower, gives in every direction
//! what rounding the exact value once would give. Operands must come from f32 or narrower: then no
//! operation over- or underflows in f64 and all error terms are exact.

/// Moves `nearest`, an f64 rounded to nearest, to the odd neighbour if `error` (exact value minus
/// `nearest`, only its sign counts) is not zero.
#[inline]
fn to_odd(nearest: f64, error: f64) -> f64 {
    let bits = nearest.to_bits();
    if error == 0.0 || bits & 1 == 1 || !nearest.is_finite() {
        return nearest;
    }
    let outwards = (error > 0.0) == (nearest > 0.0);
    f64::from_bits(if outwards { bits + 1 } else { bits - 1 })
}

#[inline]
pub(super) fn add(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let from_b = sum - a;
    let error = (a - (sum - from_b)) + (b - from_b);
    to_odd(sum, if error.is_nan() { 0.0 } else { error })
}

#[inline]
pub(super) fn divide(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if !quotient.is_finite() || quotient == 0.0 {
        return quotient;
    }
    let rest = (-quotient).mul_add(b, a);
    to_odd(quotient, if b < 0.0 { -rest } else { rest })
}

#[inline]
pub(super) fn square_root(a: f64) -> f64 {
    let root = a.sqrt();
    if !root.is_finite() || root == 0.0 {
        return root;
    }
    to_odd(root, (-root).mul_add(root, a))
}

/// f64 to f32, rounded to odd again: good for one more rounding to f16 or bf16.
#[inline]
pub(super) fn to_f32(x: f64) -> f32 {
    let nearest = x as f32;
    let back = nearest as f64;
    let bits = nearest.to_bits();
    if back == x || bits & 1 == 1 || x.is_nan() {
        return nearest;
    }
    f32::from_bits(if back.abs() < x.abs() { bits + 1 } else { bits - 1 })
}
