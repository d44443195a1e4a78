//! `wide.cu`.

use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::source;
use crate::suite::Case;
use anyhow::Result;

const SOURCE: Source = source!("wide");

pub const CASES: &[Case] = &[
    Case::new("breadth/high_halves", high_halves),
    Case::new("breadth/arithmetic_128", arithmetic_128),
    Case::new("breadth/carry_chain", carry_chain),
    Case::new("breadth/modular_power", modular_power),
    Case::new("breadth/greatest_common_divisor", greatest_common_divisor),
];

fn high_halves(context: &Context<'_>) -> Result<()> {
    const N: usize = 1000;
    let mut random = Random::new(21);
    let [a, b] = [0; 2].map(|_| random.many(N, |r| r.i32()));
    let [c, d] = [0; 2].map(|_| random.many(N, |r| r.u64() as i64));
    let want: Vec<[u64; 5]> = (0..N)
        .map(|i| {
            let (ua, ub) = (a[i] as u32, b[i] as u32);
            let low24 = (ua & 0xff_ffff).wrapping_mul(ub & 0xff_ffff) as u64;
            let distance = ua.abs_diff(ub).wrapping_add(7) as u64;
            let product = (a[i] as u64).wrapping_mul(b[i] as u64);
            [
                ((a[i] as i64 * b[i] as i64) >> 32) as u32 as u64,
                (ua as u64 * ub as u64) >> 32,
                ((c[i] as i128 * d[i] as i128) >> 64) as u64,
                ((c[i] as u64 as u128 * d[i] as u64 as u128) >> 64) as u64,
                product.wrapping_add(low24).wrapping_add(distance),
            ]
        })
        .collect();
    Trial::new(SOURCE, "high_halves")
        .threads(N)
        .input(&a)
        .input(&b)
        .input(&c)
        .input(&d)
        .output(&want)
        .value(N as i32)
        .run(context)
}

fn halves(x: u128) -> [u64; 2] {
    [x as u64, (x >> 64) as u64]
}

fn u128_of(random: &mut Random) -> u128 {
    let by = random.below(128);
    ((random.u64() as u128) << 64 | random.u64() as u128) >> by
}

fn arithmetic_128(context: &Context<'_>) -> Result<()> {
    const N: usize = 400;
    let mut random = Random::new(22);
    let x = random.many(N, u128_of);
    let y = random.many(N, |r| u128_of(r).max(3));
    let want: Vec<[[u64; 2]; 7]> = (0..N)
        .map(|i| {
            let (x, y) = (x[i], y[i]);
            let (sx, sy) = (x as i128, y as i128);
            let shifted = (x >> (y as u32 & 127)) ^ (x << ((y >> 64) as u32 & 127));
            let results = [x.wrapping_mul(y), x.wrapping_sub(y), x / y, x % y, shifted, (sx / sy) as u128];
            let mut all = [[0; 2]; 7];
            all[..6].copy_from_slice(&results.map(halves));
            all[6] = [(sx < sy) as u64, (x < y) as u64];
            all
        })
        .collect();
    let split = |v: &[u128]| v.iter().map(|x| halves(*x)).collect::<Vec<_>>();
    Trial::new(SOURCE, "arithmetic_128")
        .threads(N)
        .input(&split(&x))
        .input(&split(&y))
        .output(&want)
        .value(N as i32)
        .run(context)
}

fn carry_chain(context: &Context<'_>) -> Result<()> {
    const N: usize = 1000;
    let mut random = Random::new(23);
    // Many words of all ones, so that carries run far.
    let number = |r: &mut Random| {
        (0..4)
            .fold(0, |x: u128, _| x << 32 | if r.below(2) == 0 { u32::MAX as u128 } else { r.u32() as u128 })
    };
    let a = random.many(N, number);
    let b = random.many(N, number);
    let words = |x: u128| [0, 32, 64, 96].map(|by| (x >> by) as u32);
    let of = |f: fn(u128, u128) -> u128| -> Vec<[u32; 4]> {
        a.iter().zip(&b).map(|(a, b)| words(f(*a, *b))).collect()
    };
    Trial::new(SOURCE, "carry_chain")
        .threads(N)
        .input(&of(|a, _| a))
        .input(&of(|_, b| b))
        .output(&of(u128::wrapping_add))
        .output(&of(u128::wrapping_sub))
        .value(N as i32)
        .run(context)
}

fn modular_power(context: &Context<'_>) -> Result<()> {
    const N: usize = 128;
    // The largest prime below 2^64.
    const MODULUS: u64 = 0xffff_ffff_ffff_ffc5;
    let mut random = Random::new(24);
    let base = random.many(N, |r| r.u64());
    let exponent = random.many(N, |r| r.below(2000));
    let power = |base: u64, exponent: u32| {
        (0..exponent).fold(1, |x: u128, _| x * (base as u128) % MODULUS as u128) as u64
    };
    let want: Vec<u64> = base.iter().zip(&exponent).map(|(b, e)| power(*b, *e)).collect();
    Trial::new(SOURCE, "modular_power")
        .threads(N)
        .input(&base)
        .input(&exponent)
        .value(MODULUS)
        .output(&want)
        .value(N as i32)
        .run(context)
}

fn greatest_common_divisor(context: &Context<'_>) -> Result<()> {
    const N: usize = 256;
    let mut random = Random::new(25);
    let common = random.many(N, |r| r.below(100_000) as u64 + 1);
    let a: Vec<u64> = common.iter().map(|c| c * (random.u32() as u64 + 1)).collect();
    let b: Vec<u64> = common.iter().map(|c| c * (random.u32() as u64 + 1)).collect();
    let gcd = |mut x: u64, mut y: u64| {
        while y != 0 {
            (x, y) = (y, x % y);
        }
        x
    };
    let want: Vec<u64> = a.iter().zip(&b).map(|(a, b)| gcd(*a, *b)).collect();
    Trial::new(SOURCE, "greatest_common_divisor")
        .threads(N)
        .input(&a)
        .input(&b)
        .output(&want)
        .value(N as i32)
        .run(context)
}
