//! Each operation in each direction, against exact numbers.

use super::reference::{Number, is_rounding};
use crate::numeric::*;
use proptest::prelude::*;
use std::cmp::Ordering;

const DIRECTED: [Rounding; 3] = [Rounding::Zero, Rounding::Down, Rounding::Up];

/// The directions to test in a format: nearest f64 is the host's own.
fn directions<F: Float>() -> Vec<Rounding> {
    let nearest = (F::BITS < 64).then_some(Rounding::Nearest);
    DIRECTED.into_iter().chain(nearest).collect()
}

/// Bits of a finite number, with the corners of the format more often than chance has them.
fn finite<F: Float>() -> impl Strategy<Value = F> {
    let smallest = F::FORMAT.smallest_normal();
    let one = F::ONE.to_bits64();
    let corner = prop_oneof![
        Just(0),
        Just(smallest),
        Just(one),
        Just(F::MAX_FINITE.to_bits64()),
        0..smallest,
        one - 3..one + 3,
        one - 3 * smallest..one + 3 * smallest,
    ];
    (prop_oneof![any::<u64>(), corner], any::<bool>(), 0u64..4).prop_map(|(bits, sign, off)| {
        let magnitude = (bits & !F::SIGN & (F::SIGN - 1)).wrapping_add(off) % F::FORMAT.infinity();
        F::of_bits64(if sign { magnitude | F::SIGN } else { magnitude })
    })
}

fn check<F: Float>(a: F, b: F, c: F) -> Result<(), TestCaseError> {
    let (x, y, z) = (a.to_f64(), b.to_f64(), c.to_f64());
    let product = Number::product(x, y);
    let sum = Number::of(x).plus(&Number::of(y));
    let fused = product.plus(&Number::of(z));
    let zero = Number::of(0.0);
    for r in directions::<F>() {
        let of = |result: F, exact: &Number| {
            is_rounding(result, r, exact.compare(&zero).is_lt(), |x| exact.compare(&Number::of(x)))
        };
        prop_assert!(of(a.add(b, r), &sum), "{a:?} + {b:?} {r:?} is not {:?}", a.add(b, r));
        prop_assert!(of(a.mul(b, r), &product), "{a:?} * {b:?} {r:?} is not {:?}", a.mul(b, r));
        prop_assert!(of(a.fma(b, c, r), &fused), "{a:?} * {b:?} + {c:?} {r:?} is not {:?}", a.fma(b, c, r));
        if y != 0.0 {
            let quotient = a.div(b, r);
            let negative = (x < 0.0) != (y < 0.0) && x != 0.0;
            // a / b against q is a against q * b, the other way round below zero.
            let against = |q: f64| {
                let order = Number::of(x).compare(&Number::product(q, y));
                if y < 0.0 { order.reverse() } else { order }
            };
            prop_assert!(
                is_rounding(quotient, r, negative, against),
                "{a:?} / {b:?} {r:?} is not {quotient:?}"
            );
        }
        let root = a.magnitude().square_root(r);
        let against = |q: f64| match q {
            q if q < 0.0 => Ordering::Greater,
            q => Number::of(x.abs()).compare(&Number::product(q, q)),
        };
        prop_assert!(is_rounding(root, r, false, against), "the root of {a:?} {r:?} is not {root:?}");
    }
    Ok(())
}

fn check_integer<F: Float>(raw: u64, from: Integer) -> Result<(), TestCaseError> {
    let exact = Number::integer(from.value(raw));
    for r in directions::<F>() {
        let result: F = integer_to_float(raw, from, r);
        let rounded = is_rounding(result, r, from.value(raw) < 0, |x| exact.compare(&Number::of(x)));
        prop_assert!(rounded, "{} {r:?} is not {result:?}", from.value(raw));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn f64_rounds_as_directed(a in finite::<f64>(), b in finite::<f64>(), c in finite::<f64>()) {
        check(a, b, c)?;
    }

    #[test]
    fn f32_rounds_as_directed(a in finite::<f32>(), b in finite::<f32>(), c in finite::<f32>()) {
        check(a, b, c)?;
    }

    #[test]
    fn f16_rounds_as_directed(a in finite::<f16>(), b in finite::<f16>(), c in finite::<f16>()) {
        check(a, b, c)?;
    }

    #[test]
    fn bf16_rounds_as_directed(a in finite::<bf16>(), b in finite::<bf16>(), c in finite::<bf16>()) {
        check(a, b, c)?;
    }

    #[test]
    fn integers_round_as_directed(raw: u64, lost in 0u32..64, signed: bool) {
        let from = Integer { bits: 64, signed };
        check_integer::<f64>(raw >> lost, from)?;
        check_integer::<f32>(raw >> lost, from)?;
        check_integer::<f16>(raw >> lost, from)?;
        check_integer::<bf16>(raw >> lost, from)?;
    }

    #[test]
    fn narrowing_rounds_as_directed(x in finite::<f64>(), y in finite::<f32>()) {
        for x in [x, y as f64] {
            let exact = Number::of(x);
            let against = |x: f64| exact.compare(&Number::of(x));
            for r in directions::<f32>() {
                prop_assert!(is_rounding(convert_float::<f64, f32>(x, r), r, x < 0.0, against));
                prop_assert!(is_rounding(convert_float::<f64, f16>(x, r), r, x < 0.0, against));
                prop_assert!(is_rounding(convert_float::<f64, bf16>(x, r), r, x < 0.0, against));
            }
        }
    }

    #[test]
    fn integral_rounding_and_clamping_agree_with_integers(x in finite::<f64>(), scaled in -70i32..70) {
        for x in [x, (x.fract() + 1.5) * 2.0f64.powi(scaled)] {
            for (r, integral) in [
                (Rounding::Zero, x.trunc()),
                (Rounding::Down, x.floor()),
                (Rounding::Up, x.ceil()),
                (Rounding::Nearest, x.round_ties_even()),
            ] {
                prop_assert_eq!(round_integral(x, r), integral);
                for to in [Integer::S8, Integer::U8, Integer::S16, Integer::U32, Integer::S32, Integer::U64, Integer::S64] {
                    let want = (integral as i128).clamp(to.min(), to.max());
                    prop_assert_eq!(to.value(float_to_integer(x, to, r)), want);
                }
            }
        }
    }
}

/// A zero that comes of cancelling is negative only when rounding down; a sum of zeros of the same
/// sign keeps it.
#[test]
fn zeros_take_the_sign_the_direction_gives() {
    fn signs<F: Float>() {
        let minus_zero = F::ZERO.negate();
        let minus_one = F::ONE.negate();
        for r in [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up] {
            let down = r == Rounding::Down;
            assert_eq!(F::ONE.add(minus_one, r).is_negative(), down);
            assert_eq!(F::ZERO.add(minus_zero, r).is_negative(), down);
            assert_eq!(F::ONE.fma(F::ONE, minus_one, r).is_negative(), down);
            assert_eq!(F::ONE.fma(F::ZERO, minus_zero, r).is_negative(), down);
            assert!(minus_zero.add(minus_zero, r).is_negative());
            assert!(!F::ZERO.add(F::ZERO, r).is_negative());
            assert!(minus_zero.mul(F::ONE, r).is_negative());
        }
    }
    signs::<f32>();
    signs::<f64>();
    signs::<f16>();
    signs::<bf16>();
}

/// The fused operation rounds once: 2^-24 survives below a product that alone would round it away.
#[test]
fn fma_rounds_once_in_the_narrow_formats() {
    let a = f16::of_bits64(0x3c01);
    let product = a.to_f64() * a.to_f64();
    let addend = f16::round_from(-a.mul(a, Rounding::Nearest).to_f64(), Rounding::Nearest);
    assert_eq!(a.fma(a, addend, Rounding::Nearest).to_f64(), product + addend.to_f64());
    // A bf16 product half way between two numbers, and an addend 2^-100 times smaller.
    let (x, tiny) = (bf16::of_bits64(0x3f81), bf16::round_from(2.0f64.powi(-100), Rounding::Nearest));
    let half_way = bf16::of_bits64(0x3fc0);
    let tie = x.to_f64() * half_way.to_f64();
    let up = x.fma(half_way, tiny, Rounding::Nearest).to_f64();
    let down = x.fma(half_way, tiny.negate(), Rounding::Nearest).to_f64();
    assert!(down < tie && tie < up, "{down} {tie} {up}");
}
