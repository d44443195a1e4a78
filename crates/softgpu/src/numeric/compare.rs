//! Comparisons and predicates: set, setp, testp, copysign.

use super::{Float, Integer};

/// The comparison operators of `set` and `setp`. The last letter `u` of PTX ("unordered": true if
/// an operand is NaN) is spelt out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    EqualUnordered,
    NotEqualUnordered,
    LessUnordered,
    LessEqualUnordered,
    GreaterUnordered,
    GreaterEqualUnordered,
    /// Neither operand is NaN.
    Ordered,
    /// An operand is NaN.
    Unordered,
}

/// `set`, `setp` over floats. For `.ftz` flush the operands first.
#[inline]
pub fn compare<F: Float>(operator: Comparison, a: F, b: F) -> bool {
    let unordered = a.is_nan() || b.is_nan();
    match operator {
        Comparison::Equal => a == b,
        Comparison::NotEqual => !unordered && a != b,
        Comparison::Less => a < b,
        Comparison::LessEqual => a <= b,
        Comparison::Greater => a > b,
        Comparison::GreaterEqual => a >= b,
        Comparison::EqualUnordered => unordered || a == b,
        Comparison::NotEqualUnordered => a != b,
        Comparison::LessUnordered => unordered || a < b,
        Comparison::LessEqualUnordered => unordered || a <= b,
        Comparison::GreaterUnordered => unordered || a > b,
        Comparison::GreaterEqualUnordered => unordered || a >= b,
        Comparison::Ordered => !unordered,
        Comparison::Unordered => unordered,
    }
}

/// `set`, `setp` over integers given in the low bits of `a` and `b`. PTX's `lo, ls, hi, hs` are the
/// comparisons of an unsigned type. Integers are never unordered.
#[inline]
pub fn compare_integers(operator: Comparison, of: Integer, a: u64, b: u64) -> bool {
    let (a, b) = (of.value(a), of.value(b));
    match operator {
        Comparison::Equal | Comparison::EqualUnordered => a == b,
        Comparison::NotEqual | Comparison::NotEqualUnordered => a != b,
        Comparison::Less | Comparison::LessUnordered => a < b,
        Comparison::LessEqual | Comparison::LessEqualUnordered => a <= b,
        Comparison::Greater | Comparison::GreaterUnordered => a > b,
        Comparison::GreaterEqual | Comparison::GreaterEqualUnordered => a >= b,
        Comparison::Ordered => true,
        Comparison::Unordered => false,
    }
}

/// What `testp` asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Property {
    Finite,
    Infinite,
    Number,
    NotANumber,
    /// Neither zero, subnormal, infinite nor NaN.
    Normal,
    Subnormal,
}

#[inline]
pub fn test_property<F: Float>(property: Property, x: F) -> bool {
    let magnitude = x.magnitude();
    let finite = magnitude <= F::MAX_FINITE;
    match property {
        Property::Finite => finite,
        Property::Infinite => !finite && !x.is_nan(),
        Property::Number => !x.is_nan(),
        Property::NotANumber => x.is_nan(),
        Property::Normal => finite && magnitude != F::ZERO && !x.is_subnormal(),
        Property::Subnormal => x.is_subnormal(),
    }
}

/// `copysign d, a, b`: the value of `b` with the sign of `a`.
#[inline]
pub fn copysign<F: Float>(sign: F, value: F) -> F {
    F::of_bits64((sign.to_bits64() & F::SIGN) | value.magnitude().to_bits64())
}
