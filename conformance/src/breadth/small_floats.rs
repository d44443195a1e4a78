//! `small_floats.cu`.

use super::reference::{Toward, directed, fp8_value, nearest_bf16, nearest_f16, nearest_fp8};
use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::source;
use crate::suite::Case;
use anyhow::Result;
use half::{bf16, f16};

const SOURCE: Source = source!("small_floats");

pub const CASES: &[Case] = &[
    Case::new("breadth/half_conversions", half_conversions),
    Case::new("breadth/half_to_integer", half_to_integer),
    Case::new("breadth/half2_polynomial", half2_polynomial),
    Case::new("breadth/half_functions", half_functions),
    Case::new("breadth/bfloat2_dot", bfloat2_dot),
    Case::new("breadth/fp8_conversions", fp8_conversions),
    Case::new("breadth/fp8x4_scale", fp8x4_scale),
];

const N: usize = 600;

fn half_conversions(context: &Context<'_>) -> Result<()> {
    // From the subnormals of f16 to beyond its largest number.
    let x = Random::new(61).many(N, |r| r.f32(-1.0, 1.0) * 2.0f32.powi(r.below(44) as i32 - 26));
    let want: Vec<[u16; 8]> = x
        .iter()
        .map(|&x| {
            let nearest = nearest_f16(x as f64);
            let order = (x as f64).partial_cmp(&nearest.to_f64()).expect("neither is NaN");
            let toward = |toward| directed(nearest, order, toward).to_bits();
            [
                nearest.to_bits(),
                toward(Toward::Zero),
                toward(Toward::Down),
                toward(Toward::Up),
                bf16::from_f32(x).to_bits(),
                (x.to_bits() >> 16) as u16,
                nearest_f16(x as f64 * 1.0009765625).to_bits(),
                nearest_f16(x.trunc() as f64 + 0.0).to_bits(),
            ]
        })
        .collect();
    Trial::new(SOURCE, "half_conversions").threads(N).input(&x).output(&want).value(N as i32).run(context)
}

fn half_to_integer(context: &Context<'_>) -> Result<()> {
    let x = Random::new(62).many(N, |r| {
        let bits = r.u32() as u16;
        if f16::from_bits(bits).is_finite() { bits } else { bits & 0x83ff }
    });
    let value = |bits: &u16| f16::from_bits(*bits).to_f32();
    let want: Vec<[i32; 4]> = x
        .iter()
        .map(|bits| {
            let x = value(bits);
            [x.round_ties_even() as i32, x as i32, x.ceil() as u16 as i32, x.floor() as i16 as i32]
        })
        .collect();
    let wide: Vec<f32> = x.iter().map(value).collect();
    Trial::new(SOURCE, "half_to_integer")
        .threads(N)
        .input(&x)
        .output(&want)
        .exactly(&wide)
        .value(N as i32)
        .run(context)
}

fn half2_polynomial(context: &Context<'_>) -> Result<()> {
    let x = Random::new(63).many(N, |r| [0; 2].map(|_| nearest_f16(r.f64(-3.0, 3.0))));
    let fma = |a: f16, b: f16, c: f16| nearest_f16(a.to_f64() * b.to_f64() + c.to_f64());
    let want: Vec<[[f16; 2]; 2]> = x
        .iter()
        .map(|v| {
            let p = [0, 1].map(|k| {
                let addend = if k == 0 { f16::ONE } else { f16::NEG_ONE };
                let square = nearest_f16(v[k].to_f64() * v[k].to_f64());
                fma(fma(v[k], nearest_f16(0.25), addend), v[k], square)
            });
            let larger = [0, 1].map(|k| if p[k] > -v[k] { p[k] } else { -v[k] });
            let rest = [0, 1].map(|k| {
                let sum = nearest_f16((v[k].to_f64() + p[k].to_f64()).clamp(0.0, 1.0));
                nearest_f16(p[1 - k].to_f64() - sum.to_f64())
            });
            [larger, rest]
        })
        .collect();
    Trial::new(SOURCE, "half2_polynomial").threads(N).input(&x).output(&want).value(N as i32).run(context)
}

fn half_functions(context: &Context<'_>) -> Result<()> {
    let x = Random::new(64).many(N, |r| nearest_f16(r.f64(0.1, 8.0)));
    let want: Vec<f16> = x
        .iter()
        .flat_map(|x| {
            let x = x.to_f64();
            [x.sqrt(), 1.0 / x, x.exp(), x.ln(), x.sin(), x / 3.0].map(nearest_f16)
        })
        .collect();
    Trial::new(SOURCE, "half_functions")
        .threads(N)
        .input(&x)
        .close(&want, 2e-3, 1e-3)
        .value(N as i32)
        .run(context)
}

fn bfloat2_dot(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(65);
    let [a, b] = [0; 2].map(|_| random.many(N, |r| [0; 2].map(|_| nearest_bf16(r.f64(-50.0, 50.0)))));
    let want: Vec<f32> = a
        .iter()
        .zip(&b)
        .flat_map(|(a, b)| {
            let product = [0, 1].map(|k| nearest_bf16(a[k].to_f64() * b[k].to_f64()));
            let fused = nearest_bf16(a[0].to_f64() * b[0].to_f64() + product[0].to_f64());
            let larger = a[0].to_f32().max(b[1].to_f32());
            [product[0].to_f32() + product[1].to_f32(), fused.to_f32(), larger]
        })
        .collect();
    Trial::new(SOURCE, "bfloat2_dot")
        .threads(N)
        .input(&a)
        .input(&b)
        .output(&want)
        .value(N as i32)
        .run(context)
}

fn fp8_conversions(context: &Context<'_>) -> Result<()> {
    let x = Random::new(66).many(N, |r| r.f32(-1.0, 1.0) * 2.0f32.powi(r.below(38) as i32 - 20));
    let e4m3: Vec<u8> = x.iter().map(|x| nearest_fp8(*x as f64, 0x7e, 3, 7)).collect();
    let e5m2: Vec<u8> = x.iter().map(|x| nearest_fp8(*x as f64, 0x7b, 2, 15)).collect();
    let back: Vec<f32> = e4m3
        .iter()
        .zip(&e5m2)
        .flat_map(|(a, b)| [fp8_value(*a, 3, 7) as f32, fp8_value(*b, 2, 15) as f32])
        .collect();
    Trial::new(SOURCE, "fp8_conversions")
        .threads(N)
        .input(&x)
        .output(&e4m3)
        .output(&e5m2)
        .exactly(&back)
        .value(N as i32)
        .run(context)
}

fn fp8x4_scale(context: &Context<'_>) -> Result<()> {
    // No NaN among the bytes.
    let x = Random::new(67)
        .many(N, |r| [0; 4].map(|_| r.u32() as u8).map(|b| if b & 0x7f == 0x7f { 0x31 } else { b }));
    let want: Vec<[u8; 4]> = x
        .iter()
        .map(|bytes| {
            let v = bytes.map(|byte| fp8_value(byte, 3, 7));
            [v[0] * 0.5, v[1] * 3.0, v[2] + v[3], v[3]].map(|x| nearest_fp8(x, 0x7e, 3, 7))
        })
        .collect();
    Trial::new(SOURCE, "fp8x4_scale").threads(N).input(&x).output(&want).value(N as i32).run(context)
}
