//! `fast_math.cu`.

use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::source;
use crate::suite::Case;
use anyhow::Result;

const SOURCE: Source = source!("fast_math");

pub const CASES: &[Case] = &[
    Case::new("breadth/fast_functions", fast_functions),
    Case::new("breadth/fast_ordinary", fast_ordinary),
    Case::new("breadth/flush_subnormals", flush_subnormals),
];

const N: usize = 512;

fn inputs(seed: u64) -> (Vec<f32>, Vec<f32>) {
    let mut random = Random::new(seed);
    (random.many(N, |r| r.f32(-3.0, 3.0)), random.many(N, |r| r.f32(0.1, 20.0)))
}

fn fast_functions(context: &Context<'_>) -> Result<()> {
    let (x, y) = inputs(51);
    let want: Vec<f32> = x
        .iter()
        .zip(&y)
        .flat_map(|(x, y)| {
            let (x, y) = (*x as f64, *y as f64);
            let results = [
                x.sin(),
                x.cos(),
                x.exp(),
                y.ln(),
                y.powf(x),
                x / y,
                1.0 / y.sqrt(),
                y.log2(),
                10.0f64.powf(x),
            ];
            results.map(|x| x as f32)
        })
        .collect();
    Trial::new(SOURCE, "fast_functions")
        .threads(N)
        .input(&x)
        .input(&y)
        .close(&want, 1e-5, 2e-6)
        .value(N as i32)
        .run(context)
}

fn fast_ordinary(context: &Context<'_>) -> Result<()> {
    let (x, y) = inputs(52);
    let want: Vec<f32> = x
        .iter()
        .zip(&y)
        .flat_map(|(x, y)| {
            let (x, y) = (*x as f64, *y as f64);
            [x / y, y.sqrt(), x.sin() * x.cos(), 1.0 / y].map(|x| x as f32)
        })
        .collect();
    Trial::new(SOURCE, "fast_ordinary")
        .threads(N)
        .input(&x)
        .input(&y)
        .close(&want, 1e-6, 2e-6)
        .value(N as i32)
        .run(context)
}

fn flush_subnormals(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(53);
    // From well below the smallest normal number to well above it.
    let number = |r: &mut Random| r.f32(-1.0, 1.0) * 2.0f32.powi(-(r.below(34) as i32) - 110);
    let x = random.many(N, number);
    let y: Vec<f32> = random.many(N, |r| match r.below(3) {
        0 => r.f32(-2.0, 2.0),
        _ => number(r),
    });
    let flush = |x: f32| if x.is_subnormal() { 0.0f32.copysign(x) } else { x };
    let want: Vec<f32> = x
        .iter()
        .zip(&y)
        .flat_map(|(x, y)| {
            let (x, y) = (flush(*x), flush(*y));
            let (less, more) = if x.total_cmp(&y).is_gt() { (y, x) } else { (x, y) };
            [flush(x + y), flush(x * y), more, less.abs()]
        })
        .collect();
    Trial::new(SOURCE, "flush_subnormals")
        .threads(N)
        .input(&x)
        .input(&y)
        .exactly(&want)
        .value(N as i32)
        .run(context)
}
