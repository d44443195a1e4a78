//! The small formats, every value of them.

use crate::numeric::*;

fn all_f16() -> impl Iterator<Item = f16> {
    (0..=u16::MAX).map(f16::from_bits)
}

#[test]
fn every_f16_and_bf16_survives_widening() {
    for x in all_f16().filter(|x| !x.is_nan()) {
        let wide: f32 = convert_float(x, Rounding::Nearest);
        let back: f16 = convert_float(wide, Rounding::Zero);
        assert_eq!(back.to_bits(), x.to_bits());
    }
    for x in (0..=u16::MAX).map(bf16::from_bits).filter(|x| !x.is_nan()) {
        let wide: f64 = convert_float(x, Rounding::Nearest);
        let back: bf16 = convert_float(wide, Rounding::Up);
        assert_eq!(back.to_bits(), x.to_bits());
    }
}

/// The values of e4m3 and e5m2 by their definition.
fn value(byte: u8, fraction_bits: u32, bias: i32) -> f64 {
    let exponent = ((byte & 0x7f) >> fraction_bits) as i32;
    let fraction = (byte & ((1 << fraction_bits) - 1)) as f64 / (1 << fraction_bits) as f64;
    let magnitude = match exponent {
        0 => fraction * 2.0f64.powi(1 - bias),
        _ => (1.0 + fraction) * 2.0f64.powi(exponent - bias),
    };
    if byte & 0x80 != 0 { -magnitude } else { magnitude }
}

#[test]
fn every_fp8_widens_to_its_value() {
    for byte in 0..=u8::MAX {
        if byte & 0x7f < 0x7f {
            assert_eq!(e4m3_to_f16(byte).to_f64(), value(byte, 3, 7));
        }
        if byte & 0x7f < 0x7c {
            assert_eq!(e5m2_to_f16(byte).to_f64(), value(byte, 2, 15));
        }
    }
    assert_eq!(e5m2_to_f16(0xfc), f16::NEG_INFINITY);
    assert!(e4m3_to_f16(0xff).is_nan() && e5m2_to_f16(0x7d).is_nan());
}

/// Every f16 to the nearest fp8, found by looking at all of them.
#[test]
fn every_f16_narrows_to_the_nearest_fp8() {
    let nearest = |x: f64, largest: u8, fraction_bits, bias| {
        (0..=largest)
            .min_by(|&a, &b| {
                let distance = |byte| (value(byte, fraction_bits, bias) - x.abs()).abs();
                distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1)))
            })
            .unwrap()
    };
    for x in all_f16().filter(|x| !x.is_nan()) {
        let sign = if x.is_sign_negative() { 0x80 } else { 0 };
        let (single, wide) = (x.to_f32(), x.to_f64().clamp(-1e6, 1e6));
        assert_eq!(e4m3_from(single, false), sign | nearest(wide, 0x7e, 3, 7), "{x}");
        assert_eq!(e5m2_from(single, false), sign | nearest(wide, 0x7b, 2, 15), "{x}");
        assert_eq!(e4m3_from(single, true), if sign != 0 { 0 } else { nearest(wide, 0x7e, 3, 7) });
    }
}

#[test]
fn integers_are_cut_extended_and_clamped() {
    assert_eq!(convert_integer(0xff, Integer::S8, Integer::U32, false), 0xffff_ffff);
    assert_eq!(convert_integer(0xff, Integer::S8, Integer::U32, true), 0);
    assert_eq!(convert_integer(0x1ff, Integer::U32, Integer::S8, false), u64::MAX);
    assert_eq!(convert_integer(0x1ff, Integer::U32, Integer::S8, true), 0x7f);
    assert_eq!(convert_integer(u64::MAX, Integer::S64, Integer::U64, true), 0);
    assert_eq!(convert_integer(u64::MAX, Integer::U64, Integer::S64, true), i64::MAX as u64);
}

#[test]
fn comparisons_know_ordered_from_unordered() {
    use Comparison::*;
    let nan = f32::CANONICAL_NAN;
    for op in [Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, Ordered] {
        assert!(!compare(op, nan, 1.0) && !compare(op, 1.0, nan));
    }
    for op in [EqualUnordered, NotEqualUnordered, LessUnordered, GreaterEqualUnordered, Unordered] {
        assert!(compare(op, nan, 1.0) && compare(op, 1.0, nan));
    }
    assert!(
        compare(Equal, 0.0f64, -0.0) && compare(LessEqual, 1.0f64, 1.0) && compare(NotEqual, 1.0f64, 2.0)
    );
    assert!(compare_integers(Less, Integer::S32, 0xffff_ffff, 0));
    assert!(!compare_integers(Less, Integer::U32, 0xffff_ffff, 0));
}

#[test]
fn properties_part_the_numbers() {
    use Property::*;
    let of = |x: f32| {
        [Finite, Infinite, Number, NotANumber, Normal, Subnormal]
            .map(|property| test_property(property, x) as u8)
    };
    assert_eq!(of(1.0), [1, 0, 1, 0, 1, 0]);
    assert_eq!(of(-0.0), [1, 0, 1, 0, 0, 0]);
    assert_eq!(of(1.0e-40), [1, 0, 1, 0, 0, 1]);
    assert_eq!(of(f32::NEG_INFINITY), [0, 1, 1, 0, 0, 0]);
    assert_eq!(of(f32::NAN), [0, 0, 0, 1, 0, 0]);
}
