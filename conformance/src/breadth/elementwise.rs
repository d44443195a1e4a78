//! `elementwise.cu`.

use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::source;
use crate::suite::Case;
use anyhow::Result;

const SOURCE: Source = source!("elementwise");

pub const CASES: &[Case] = &[
    Case::new("breadth/saxpy", saxpy),
    Case::new("breadth/polynomial_int", polynomial_int),
    Case::new("breadth/double_norm", double_norm),
    Case::new("breadth/blend_bytes", blend_bytes),
    Case::new("breadth/vector_types", vector_types),
    Case::new("breadth/mix_samples", mix_samples),
];

const N: usize = 3001;

fn saxpy(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(1);
    let x = random.many(N, |r| r.f32(-10.0, 10.0));
    let y = random.many(N, |r| r.f32(-10.0, 10.0));
    let a = 1.7f32;
    let want: Vec<f32> = x.iter().zip(&y).map(|(x, y)| a.mul_add(*x, *y)).collect();
    Trial::new(SOURCE, "saxpy").threads(N).value(a).input(&x).changed(&y, &want).value(N as i32).run(context)
}

fn polynomial_int(context: &Context<'_>) -> Result<()> {
    let x = Random::new(2).many(N, |r| r.below(1001) as i32 - 500);
    let want: Vec<i32> = x.iter().map(|&v| ((3 * v - 7) * v + 11) * v - (v >> 3) + v.abs()).collect();
    Trial::new(SOURCE, "polynomial_int").threads(N).input(&x).output(&want).value(N as i32).run(context)
}

fn double_norm(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(3);
    let x = random.many(N, |r| r.f64(-1e3, 1e3));
    let y = random.many(N, |r| r.f64(-1e-3, 1e3));
    let want: Vec<f64> = x.iter().zip(&y).map(|(x, y)| (x - y) / ((x * x + y * y).sqrt() + 1.0)).collect();
    Trial::new(SOURCE, "double_norm")
        .threads(N)
        .input(&x)
        .input(&y)
        .exactly(&want)
        .value(N as i32)
        .run(context)
}

fn blend_bytes(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(4);
    let a = random.many(N, |r| r.u32() as u8);
    let b = random.many(N, |r| r.u32() as u8);
    let blend = |(a, b): (&u8, &u8)| ((*a as u32 * 77 + *b as u32 * 179 + 128) >> 8) as u8;
    let want: Vec<u8> = a.iter().zip(&b).map(blend).collect();
    // Fewer threads than bytes: each strides over the array.
    Trial::new(SOURCE, "blend_bytes")
        .shape(4, 64)
        .input(&a)
        .input(&b)
        .output(&want)
        .value(N as i32)
        .run(context)
}

fn vector_types(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(5);
    let a = random.many(N, |r| [0; 4].map(|_| r.f32(-100.0, 100.0)));
    let b = random.many(N, |r| [r.i32() >> 8, r.i32() >> 8]);
    let wide: Vec<[f32; 4]> =
        a.iter().zip(&b).map(|(v, w)| [v[3] + v[0], v[2] * 2.0, v[1] - w[0] as f32, w[1] as f32]).collect();
    let narrow: Vec<[i16; 4]> =
        b.iter().map(|w| [w[0] as i16, w[1] as i16, (w[0] >> 16) as i16, (w[1] >> 16) as i16]).collect();
    Trial::new(SOURCE, "vector_types")
        .threads(N)
        .input(&a)
        .input(&b)
        .output(&wide)
        .output(&narrow)
        .value(N as i32)
        .run(context)
}

fn mix_samples(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(6);
    let a = random.many(N, |r| r.u32() as i16);
    let b = random.many(N, |r| r.u32() as i16);
    let want: Vec<i16> = a.iter().zip(&b).map(|(a, b)| a.saturating_add(*b)).collect();
    Trial::new(SOURCE, "mix_samples")
        .threads(N)
        .input(&a)
        .input(&b)
        .output(&want)
        .value(N as i32)
        .run(context)
}
