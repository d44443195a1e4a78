//! `math32.cu` and `math64.cu`: the same functions in both precisions, against the host's in double.
//!
//! The tolerances are a few units in the last place, as the CUDA manual lists the errors of its library, plus what
//! the reference itself may be off.

use super::reference::{erf, erfc, gamma, ieee_remainder, log_gamma};
use super::trial::Trial;
use crate::compare;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::source;
use crate::suite::Case;
use anyhow::Result;
use std::f64::consts::PI;

const SINGLE: Source = source!("math32");
const DOUBLE: Source = source!("math64");

pub const CASES: &[Case] = &[
    Case::new("breadth/trigonometry_f32", trigonometry::<f32>),
    Case::new("breadth/trigonometry_f64", trigonometry::<f64>),
    Case::new("breadth/inverse_f32", inverse::<f32>),
    Case::new("breadth/inverse_f64", inverse::<f64>),
    Case::new("breadth/exponentials_f32", exponentials::<f32>),
    Case::new("breadth/exponentials_f64", exponentials::<f64>),
    Case::new("breadth/special_f32", special::<f32>),
    Case::new("breadth/special_f64", special::<f64>),
    Case::new("breadth/remainders_f32", remainders::<f32>),
    Case::new("breadth/remainders_f64", remainders::<f64>),
];

const N: usize = 384;

/// What differs between the precisions.
trait Precision: crate::memory::Element + compare::Approximate {
    const SOURCE: Source;
    /// Relative error granted to a function of a few units in the last place.
    const TOLERANCE: f64;
    fn of(x: f64) -> Self;
    fn kernel(kernels: [&'static str; 2]) -> &'static str;
}

impl Precision for f32 {
    const SOURCE: Source = SINGLE;
    const TOLERANCE: f64 = 2e-6;
    fn of(x: f64) -> f32 {
        x as f32
    }
    fn kernel(kernels: [&'static str; 2]) -> &'static str {
        kernels[0]
    }
}

impl Precision for f64 {
    const SOURCE: Source = DOUBLE;
    const TOLERANCE: f64 = 1e-14;
    fn of(x: f64) -> f64 {
        x
    }
    fn kernel(kernels: [&'static str; 2]) -> &'static str {
        kernels[1]
    }
}

fn narrowed<T: Precision>(values: impl Iterator<Item = f64>) -> Vec<T> {
    values.map(T::of).collect()
}

fn trigonometry<T: Precision>(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(41);
    // One in four is so large that its quotient by pi/2 needs more bits than a number has.
    let x = random.many(N, |r| match r.below(4) {
        0 => T::of(r.f64(-1.0, 1.0) * 10.0f64.powi(r.below(9) as i32 + 4)),
        _ => T::of(r.f64(-20.0, 20.0)),
    });
    let want = x.iter().flat_map(|x| {
        let thousandth = T::of(x.as_f64() * T::of(0.001).as_f64()).as_f64();
        let x = x.as_f64();
        let half = x * 0.5;
        [x.sin(), x.cos(), x.tan(), half.sin(), half.cos(), (thousandth % 2.0 * PI).sin()]
    });
    Trial::new(T::SOURCE, T::kernel(["trigonometry_f32", "trigonometry_f64"]))
        .threads(N)
        .input(&x)
        .close(&narrowed::<T>(want), T::TOLERANCE, T::TOLERANCE / 4.0)
        .value(N as i32)
        .run(context)
}

fn inverse<T: Precision>(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(42);
    let x = random.many(N, |r| T::of(r.f64(-1.0, 1.0)));
    let y = random.many(N, |r| T::of(r.f64(-5.0, 5.0)));
    let want = x.iter().zip(&y).flat_map(|(x, y)| {
        let twenty = T::of(x.as_f64() * 20.0).as_f64();
        let (x, y) = (x.as_f64(), y.as_f64());
        [x.asin(), x.acos(), twenty.atan(), x.atan2(y), y.asinh()]
    });
    Trial::new(T::SOURCE, T::kernel(["inverse_f32", "inverse_f64"]))
        .threads(N)
        .input(&x)
        .input(&y)
        .close(&narrowed::<T>(want), T::TOLERANCE, T::TOLERANCE / 4.0)
        .value(N as i32)
        .run(context)
}

fn exponentials<T: Precision>(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(43);
    let x = random.many(N, |r| T::of(r.f64(-8.0, 8.0)));
    let y = random.many(N, |r| T::of(10.0f64.powf(r.f64(-3.0, 2.0))));
    let want = x.iter().zip(&y).flat_map(|(x, y)| {
        let (x, y) = (x.as_f64(), y.as_f64());
        [x.exp(), x.exp2(), x.exp_m1(), y.ln(), y.ln_1p(), y.log10(), y.powf(x), x.tanh()]
    });
    Trial::new(T::SOURCE, T::kernel(["exponentials_f32", "exponentials_f64"]))
        .threads(N)
        .input(&x)
        .input(&y)
        .close(&narrowed::<T>(want), T::TOLERANCE, T::TOLERANCE / 4.0)
        .value(N as i32)
        .run(context)
}

fn special<T: Precision>(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(44);
    let x = random.many(N, |r| T::of(r.f64(-3.5, 3.5)));
    let y = random.many(N, |r| T::of(r.f64(0.1, 20.0)));
    let want = x.iter().zip(&y).flat_map(|(x, y)| {
        let (x, y) = (x.as_f64(), y.as_f64());
        [erf(x), erfc(x), gamma(y), log_gamma(y), x.cbrt(), x.hypot(y)]
    });
    // The reference loses a few bits more than the others in gamma and erfc.
    let tolerance = T::TOLERANCE.max(1e-12);
    Trial::new(T::SOURCE, T::kernel(["special_f32", "special_f64"]))
        .threads(N)
        .input(&x)
        .input(&y)
        .close(&narrowed::<T>(want), 3.0 * tolerance, tolerance)
        .value(N as i32)
        .run(context)
}

fn remainders<T: Precision>(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(45);
    let x = random.many(N, |r| T::of(r.f64(-1.0, 1.0) * 10.0f64.powi(r.below(12) as i32)));
    let y = random.many(N, |r| match r.below(5) {
        0 => T::of(r.below(8) as f64 * 0.5 + 0.5),
        _ => T::of(r.f64(-40.0, 40.0)),
    });
    let pairs = || x.iter().zip(&y).map(|(x, y)| (x.as_f64(), y.as_f64()));
    let want = pairs().flat_map(|(x, y)| {
        let nearest = ieee_remainder(x, y).0;
        [x % y, nearest, nearest]
    });
    let quotients: Vec<i32> = pairs().map(|(x, y)| ieee_remainder(x, y).1).collect();
    // Only the last three bits of the quotient are promised.
    let check = move |got: &[i32]| {
        let got: Vec<i32> = got.iter().map(|q| q % 8).collect();
        compare::equal(&got, &quotients)
    };
    Trial::new(T::SOURCE, T::kernel(["remainders_f32", "remainders_f64"]))
        .threads(N)
        .input(&x)
        .input(&y)
        .exactly(&narrowed::<T>(want))
        .checked(&[0i32; N], check)
        .value(N as i32)
        .run(context)
}
