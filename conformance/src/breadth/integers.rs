//! `integers.cu`.

use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::source;
use crate::suite::Case;
use anyhow::Result;

const SOURCE: Source = source!("integers");

pub const CASES: &[Case] = &[
    Case::new("breadth/divide_32", divide_32),
    Case::new("breadth/divide_64", divide_64),
    Case::new("breadth/divide_constants", divide_constants),
    Case::new("breadth/count_bits", count_bits),
    Case::new("breadth/shifts", shifts),
    Case::new("breadth/permute_bytes", permute_bytes),
    Case::new("breadth/dot_products", dot_products),
    Case::new("breadth/bit_fields", bit_fields),
    Case::new("breadth/packed_bytes", packed_bytes),
];

const N: usize = 1500;

/// Numbers of all lengths, not only those with the top bits in use.
fn any_length_32(r: &mut Random) -> u32 {
    let by = r.below(32);
    r.u32() >> by
}

fn any_length_64(r: &mut Random) -> u64 {
    let by = r.below(64);
    r.u64() >> by
}

fn divide_32(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(11);
    let a = random.many(N, |r| any_length_32(r) as i32);
    // Neither zero nor -1, whose quotient with the least integer has no value.
    let b = random.many(N, |r| match any_length_32(r) as i32 {
        0 | -1 => 7,
        b if r.below(2) == 0 => b.wrapping_neg(),
        b => b,
    });
    let of = |f: fn(i32, i32) -> i32| -> Vec<i32> { a.iter().zip(&b).map(|(a, b)| f(*a, *b)).collect() };
    let unsigned = |f: fn(u32, u32) -> u32| -> Vec<u32> {
        a.iter().zip(&b).map(|(a, b)| f(*a as u32, *b as u32)).collect()
    };
    Trial::new(SOURCE, "divide_32")
        .threads(N)
        .input(&a)
        .input(&b)
        .output(&of(i32::wrapping_div))
        .output(&of(i32::wrapping_rem))
        .output(&unsigned(|a, b| a / b))
        .output(&unsigned(|a, b| a % b))
        .value(N as i32)
        .run(context)
}

fn divide_64(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(12);
    let a = random.many(N, |r| any_length_64(r) as i64);
    let b = random.many(N, |r| match any_length_64(r) as i64 {
        0 | -1 => 1_000_000_007,
        b if r.below(2) == 0 => b.wrapping_neg(),
        b => b,
    });
    let all = |(a, b): (&i64, &i64)| {
        let (ua, ub) = (*a as u64, *b as u64);
        [a.wrapping_div(*b), a.wrapping_rem(*b), (ua / ub) as i64, (ua % ub) as i64]
    };
    let want: Vec<[i64; 4]> = a.iter().zip(&b).map(all).collect();
    Trial::new(SOURCE, "divide_64").threads(N).input(&a).input(&b).output(&want).value(N as i32).run(context)
}

fn divide_constants(context: &Context<'_>) -> Result<()> {
    let x = Random::new(13).many(N, any_length_32);
    let all = |&x: &u32| {
        let s = x as i32;
        [x / 3, x % 10 * 1000, x / 641, (s / 7) as u32, (s % 1000) as u32, (s / -16) as u32]
            .into_iter()
            .fold(0, u32::wrapping_add)
    };
    let want: Vec<u32> = x.iter().map(all).collect();
    Trial::new(SOURCE, "divide_constants").threads(N).input(&x).output(&want).value(N as i32).run(context)
}

fn count_bits(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(14);
    let x = random.many(N, |r| if r.below(10) == 0 { 0 } else { any_length_32(r) });
    let w = random.many(N, |r| if r.below(10) == 0 { 0 } else { any_length_64(r) });
    let first = |zeros: u32, width: u32| if zeros == width { 0 } else { zeros + 1 };
    let counts = x.iter().zip(&w).map(|(x, w)| {
        let set = first(x.trailing_zeros(), 32);
        x.count_ones() | x.leading_zeros() << 8 | set << 16 | w.count_ones() << 24
    });
    let mixes = x
        .iter()
        .zip(&w)
        .map(|(x, w)| x.reverse_bits() ^ (w.leading_zeros() << 7) ^ first(w.trailing_zeros(), 64));
    let want: Vec<u32> = counts.chain(mixes).collect();
    let reversed: Vec<u64> = w.iter().map(|w| w.reverse_bits()).collect();
    Trial::new(SOURCE, "count_bits")
        .threads(N)
        .input(&x)
        .input(&w)
        .output(&want)
        .output(&reversed)
        .value(N as i32)
        .run(context)
}

fn shifts(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(15);
    let low = random.many(N, |r| r.u32());
    let high = random.many(N, |r| r.u32());
    let by = random.many(N, |r| if r.below(4) == 0 { r.u32() } else { r.below(40) });
    let both = |i: usize| (high[i] as u64) << 32 | low[i] as u64;
    let funnels: Vec<[u32; 4]> = (0..N)
        .map(|i| {
            let left = |by: u32| ((both(i) as u128) << by >> 32) as u32;
            let right = |by: u32| (both(i) >> by) as u32;
            [left(by[i] & 31), right(by[i] & 31), left(by[i].min(32)), right(by[i].min(32))]
        })
        .collect();
    let wide: Vec<i64> = (0..N)
        .map(|i| {
            let left = both(i) << (by[i].wrapping_mul(5) & 63);
            (both(i) as i64 >> (by[i] & 63)) ^ left as i64
        })
        .collect();
    Trial::new(SOURCE, "shifts")
        .threads(N)
        .input(&low)
        .input(&high)
        .input(&by)
        .output(&funnels)
        .output(&wide)
        .value(N as i32)
        .run(context)
}

fn permute_bytes(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(16);
    let a = random.many(N, |r| r.u32());
    let b = random.many(N, |r| r.u32());
    let selector = random.many(N, |r| r.u32());
    let permute = |i: usize, signs: bool| {
        let bytes = [a[i].to_le_bytes(), b[i].to_le_bytes()].concat();
        u32::from_le_bytes([0, 4, 8, 12].map(|at| {
            let byte = bytes[(selector[i] >> at & 7) as usize];
            let spread = signs && selector[i] >> at & 8 != 0;
            if spread { (byte as i8 >> 7) as u8 } else { byte }
        }))
    };
    let want: Vec<[u32; 2]> = (0..N).map(|i| [permute(i, false), permute(i, true)]).collect();
    Trial::new(SOURCE, "permute_bytes")
        .threads(N)
        .input(&a)
        .input(&b)
        .input(&selector)
        .output(&want)
        .value(N as i32)
        .run(context)
}

fn dot_products(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(17);
    let [a, b, c] = [0; 3].map(|_| random.many(N, |r| r.i32()));
    let want: Vec<[i32; 4]> = (0..N)
        .map(|i| {
            let (x, y) = (a[i].to_le_bytes(), b[i].to_le_bytes());
            let signed = (0..4).map(|k| x[k] as i8 as i32 * y[k] as i8 as i32).sum::<i32>();
            let unsigned = (0..4).map(|k| x[k] as i32 * y[k] as i32).sum::<i32>();
            let low = (a[i] as i16 as i32) * (y[0] as i8 as i32) + (a[i] >> 16) * (y[1] as i8 as i32);
            let words = [a[i] as u32 & 0xffff, a[i] as u32 >> 16];
            let high = words[0].wrapping_mul(y[2] as u32).wrapping_add(words[1].wrapping_mul(y[3] as u32));
            [signed, unsigned, low, high as i32].map(|sum| sum.wrapping_add(c[i]))
        })
        .collect();
    Trial::new(SOURCE, "dot_products")
        .threads(N)
        .input(&a)
        .input(&b)
        .input(&c)
        .output(&want)
        .value(N as i32)
        .run(context)
}

fn bit_fields(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(18);
    let a = random.many(N, any_length_32);
    let a: Vec<u32> = a.iter().enumerate().map(|(i, x)| if i % 3 == 0 { !x } else { *x }).collect();
    let position = random.many(N, |r| r.below(40));
    let length = random.many(N, |r| r.below(40));
    let want: Vec<[u32; 4]> = (0..N).map(|i| fields(a[i], position[i], length[i])).collect();
    Trial::new(SOURCE, "bit_fields")
        .threads(N)
        .input(&a)
        .input(&position)
        .input(&length)
        .output(&want)
        .value(N as i32)
        .run(context)
}

/// bfe.u32, bfe.s32, bfi and bfind, bit by bit as the manual has them.
fn fields(a: u32, position: u32, length: u32) -> [u32; 4] {
    let bit = |at: u32| a >> at & 1;
    let sign = if length == 0 { 0 } else { bit((position + length - 1).min(31)) };
    let (mut extracted, mut extended, mut inserted) = (0, 0, !a);
    for i in 0..32 {
        let inside = i < length && position + i < 32;
        extracted |= if inside { bit(position + i) << i } else { 0 };
        extended |= if inside { bit(position + i) } else { sign } << i;
        if inside {
            inserted = inserted & !(1 << (position + i)) | bit(i) << (position + i);
        }
    }
    let plain = if (a as i32) < 0 { !a } else { a };
    [extracted, extended, inserted, plain.checked_ilog2().unwrap_or(u32::MAX)]
}

fn packed_bytes(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(19);
    let a = random.many(N, |r| r.u32());
    let b = random.many(N, |r| r.u32());
    let each = |i: usize, f: fn(u8, u8) -> u8| {
        let (x, y) = (a[i].to_le_bytes(), b[i].to_le_bytes());
        u32::from_le_bytes([0, 1, 2, 3].map(|k| f(x[k], y[k])))
    };
    let want: Vec<[u32; 4]> = (0..N)
        .map(|i| {
            [
                each(i, u8::saturating_add),
                each(i, u8::abs_diff),
                each(i, |a, b| if a > b { 0xff } else { 0 }),
                each(i, |a, b| (a as u32 + b as u32).div_ceil(2) as u8),
            ]
        })
        .collect();
    Trial::new(SOURCE, "packed_bytes")
        .threads(N)
        .input(&a)
        .input(&b)
        .output(&want)
        .value(N as i32)
        .run(context)
}
