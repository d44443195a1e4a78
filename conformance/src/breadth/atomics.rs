//! `atomics.cu`.

use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::suite::Case;
use crate::{args, compare, source};
use anyhow::Result;
use std::collections::HashMap;

const SOURCE: Source = source!("atomics");

pub const CASES: &[Case] = &[
    Case::new("breadth/atomic_kinds", atomic_kinds),
    Case::new("breadth/atomic_wide", atomic_wide),
    Case::new("breadth/unique_numbers", unique_numbers),
    Case::new("breadth/atomic_scopes", atomic_scopes),
    Case::new("breadth/atomic_product", atomic_product),
    Case::new("breadth/spin_lock", spin_lock),
    Case::new("breadth/contended_lock", contended_lock),
    Case::new("breadth/hash_table", hash_table),
    Case::new("breadth/last_block_sums", last_block_sums),
    Case::new("breadth/message", message),
];

fn atomic_kinds(context: &Context<'_>) -> Result<()> {
    const N: usize = 1234;
    let x = Random::new(131).many(N, |r| r.i32());
    let before = [5i32, 5, 0, 0, -1, 0, 0x1234];
    let ubefore = [7u32, 500, u32::MAX, 0];
    let mut want = before;
    let mut uwant = ubefore;
    for (i, &x) in x.iter().enumerate() {
        want[0] = want[0].wrapping_add(x);
        want[1] = want[1].wrapping_sub(x);
        want[2] = want[2].min(x);
        want[3] = want[3].max(x);
        want[4] &= x | 1 << (i % 7);
        want[5] |= x & 0x0f0f_0f0f;
        want[6] ^= x;
        uwant[0] = if uwant[0] >= 99 { 0 } else { uwant[0] + 1 };
        uwant[1] = if uwant[1] == 0 || uwant[1] > 1000 { 1000 } else { uwant[1] - 1 };
        uwant[2] = uwant[2].min(x as u32);
        uwant[3] = uwant[3].max(x as u32);
    }
    Trial::new(SOURCE, "atomic_kinds")
        .threads(N)
        .input(&x)
        .changed(&before, &want)
        .changed(&ubefore, &uwant)
        .value(N as i32)
        .run(context)
}

fn atomic_wide(context: &Context<'_>) -> Result<()> {
    const N: usize = 1000;
    let x = Random::new(132).many(N, |r| r.u64() as i64);
    let before = [3u64, 0, 0, u64::MAX, 0, u64::MAX];
    let (mut want, mut swant) = (before, [i64::MAX, i64::MIN]);
    for &s in &x {
        let x = s as u64;
        want[0] = want[0].wrapping_add(x);
        want[1] ^= x;
        want[2] |= x & 0x1111_1111_1111_1111;
        want[3] &= x | 0xff;
        want[4] = want[4].max(x);
        want[5] = want[5].min(x);
        swant = [swant[0].min(s), swant[1].max(s)];
    }
    let sum: i64 = x.iter().map(|x| x % 1000).sum();
    let small: i64 = x.iter().map(|x| x % 8).sum();
    Trial::new(SOURCE, "atomic_wide")
        .threads(N)
        .input(&x)
        .changed(&before, &want)
        .changed(&[i64::MAX, i64::MIN], &swant)
        .output(&[sum as f64])
        .output(&[small as f32])
        .value(N as i32)
        .run(context)
}

fn unique_numbers(context: &Context<'_>) -> Result<()> {
    const N: usize = 2000;
    let taken: Vec<u32> = (0..N + 48).map(|i| (i < N) as u32).collect();
    Trial::new(SOURCE, "unique_numbers")
        .threads(N)
        .output(&[N as u32])
        .output(&taken)
        .value(N as i32)
        .run(context)
}

fn atomic_scopes(context: &Context<'_>) -> Result<()> {
    let sum: u32 = (0..96).sum();
    let want = [4 * sum, sum, sum, sum, sum];
    Trial::new(SOURCE, "atomic_scopes").shape(4, 96).output(&want).run(context)
}

fn atomic_product(context: &Context<'_>) -> Result<()> {
    const N: usize = 500;
    let x = Random::new(133).many(N, |r| r.u32() | 1);
    let want = x.iter().fold(1, |a: u32, b| a.wrapping_mul(*b));
    Trial::new(SOURCE, "atomic_product")
        .threads(N)
        .input(&x)
        .changed(&[1u32], &[want])
        .value(N as i32)
        .run(context)
}

fn spin_lock(context: &Context<'_>) -> Result<()> {
    const BLOCKS: u32 = 8;
    const ROUNDS: u32 = 5;
    let want = [u64::from(ROUNDS * (0..BLOCKS).sum::<u32>()), u64::from(BLOCKS * ROUNDS)];
    Trial::new(SOURCE, "spin_lock")
        .shape(BLOCKS, 32)
        .output(&[0i32])
        .output(&want)
        .value(ROUNDS as i32)
        .run(context)
}

fn contended_lock(context: &Context<'_>) -> Result<()> {
    Trial::new(SOURCE, "contended_lock").shape(3, 64).output(&[0i32]).output(&[3 * 64i32]).run(context)
}

fn hash_table(context: &Context<'_>) -> Result<()> {
    const N: usize = 1500;
    const SLOTS: usize = 1024;
    let mut random = Random::new(134);
    let keys = random.many(N, |r| r.below(900) * 7919);
    let questions = random.many(N, |r| r.below(1800) * 7919);
    let mut counts: HashMap<u32, u32> = HashMap::new();
    keys.iter().for_each(|key| *counts.entry(*key).or_default() += 1);
    let want: Vec<u32> = questions.iter().map(|key| counts.get(key).copied().unwrap_or(0)).collect();
    SOURCE.each_variant(context, |module| {
        let (keys, questions) = (context.buffer(&keys)?, context.buffer(&questions)?);
        let table = context.buffer(&[u32::MAX; SLOTS])?;
        let (counts, out) = (context.zeros::<u32>(SLOTS)?, context.zeros::<u32>(N)?);
        let (slots, n) = (SLOTS as i32, N as i32);
        module.function("hash_insert")?.run(12, 128, args![&keys, &table, &counts, slots, n])?;
        module.function("hash_lookup")?.run(12, 128, args![&questions, &table, &counts, &out, slots, n])?;
        compare::equal(&out.read()?, &want)
    })
}

fn last_block_sums(context: &Context<'_>) -> Result<()> {
    const N: usize = 5000;
    let x = Random::new(135).many(N, |r| r.u32());
    let want = x.iter().fold(0, |a: u32, b| a.wrapping_add(*b));
    Trial::new(SOURCE, "last_block_sums")
        .shape(20, 32)
        .input(&x)
        .input(&[0u32; 20])
        .output(&[want])
        .value(N as i32)
        .run(context)
}

fn message(context: &Context<'_>) -> Result<()> {
    let data: Vec<i32> = (0..64).map(|i| i * i + 1).collect();
    let reversed: Vec<i32> = data.iter().rev().copied().collect();
    Trial::new(SOURCE, "message").shape(2, 64).output(&[1i32]).output(&data).output(&reversed).run(context)
}
