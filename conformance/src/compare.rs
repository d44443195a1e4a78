//! Comparing what the device computed with a reference from the CPU.

use anyhow::{Result, bail, ensure};
use std::fmt::Debug;

/// Numbers that can be compared with a tolerance.
pub trait Approximate: Copy + Debug {
    fn as_f64(self) -> f64;
}

macro_rules! approximate {
    ($($type:ty => $convert:expr),* $(,)?) => {
        $(impl Approximate for $type {
            fn as_f64(self) -> f64 {
                let convert: fn($type) -> f64 = $convert;
                convert(self)
            }
        })*
    };
}

approximate! {
    f32 => f64::from,
    f64 => |x| x,
    half::f16 => half::f16::to_f64,
    half::bf16 => half::bf16::to_f64,
}

/// Fails unless both slices are equal element by element, naming the first that differ.
pub fn equal<T: PartialEq + Debug>(got: &[T], want: &[T]) -> Result<()> {
    report(got, want, |a, b| a == b)
}

/// Fails unless `|got - want| <= absolute + relative * |want|` everywhere; a NaN equals only a NaN, an infinity only itself.
pub fn close<T: Approximate>(got: &[T], want: &[T], relative: f64, absolute: f64) -> Result<()> {
    report(got, want, |a, b| {
        let (a, b) = (a.as_f64(), b.as_f64());
        if a.is_nan() || b.is_nan() {
            return a.is_nan() && b.is_nan();
        }
        a == b || (a - b).abs() <= absolute + relative * b.abs()
    })
}

fn report<T: Debug>(got: &[T], want: &[T], same: impl Fn(&T, &T) -> bool) -> Result<()> {
    ensure!(got.len() == want.len(), "{} elements, wanted {}", got.len(), want.len());
    let wrong: Vec<usize> = (0..got.len()).filter(|&i| !same(&got[i], &want[i])).collect();
    let Some(&first) = wrong.first() else { return Ok(()) };
    let shown: Vec<String> =
        wrong.iter().take(4).map(|&i| format!("[{i}] is {:?}, wanted {:?}", got[i], want[i])).collect();
    bail!("{} of {} elements differ from number {first} on: {}", wrong.len(), got.len(), shown.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_the_first_difference() {
        let error = equal(&[1, 2, 3], &[1, 5, 3]).unwrap_err().to_string();
        assert!(error.contains("[1] is 2, wanted 5"), "{error}");
    }

    #[test]
    fn close_is_relative_to_the_wanted_value_and_strict_about_nan() {
        assert!(close(&[1.001f32], &[1.0], 0.01, 0.0).is_ok());
        assert!(close(&[1.1f32], &[1.0], 0.01, 0.0).is_err());
        assert!(close(&[f32::NAN], &[f32::NAN], 0.0, 0.0).is_ok());
        assert!(close(&[f32::NAN], &[1.0], 10.0, 10.0).is_err());
        assert!(close(&[f32::INFINITY], &[f32::INFINITY], 0.0, 0.0).is_ok());
    }
}
