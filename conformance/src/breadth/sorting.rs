//! `sorting.cu`.

use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::source;
use crate::suite::Case;
use anyhow::Result;

const SOURCE: Source = source!("sorting");

pub const CASES: &[Case] = &[
    Case::new("breadth/bitonic_sort", bitonic_sort),
    Case::new("breadth/radix_sort", radix_sort),
    Case::new("breadth/sort_rows", sort_rows),
    Case::new("breadth/lower_bound", lower_bound),
];

fn bitonic_sort(context: &Context<'_>) -> Result<()> {
    const BLOCK: usize = 512;
    let mut random = Random::new(101);
    // The sort is not stable, so no two keys are equal.
    let keys: Vec<i32> = random.many(2 * BLOCK, |r| r.i32() >> 10 << 10);
    let keys: Vec<i32> = keys.iter().enumerate().map(|(i, key)| key | i as i32).collect();
    let values = random.many(2 * BLOCK, |r| r.i32());
    let mut pairs: Vec<(i32, i32)> = keys.iter().copied().zip(values.iter().copied()).collect();
    pairs.chunks_mut(BLOCK).for_each(|block| block.sort_unstable());
    let (sorted, moved): (Vec<i32>, Vec<i32>) = pairs.into_iter().unzip();
    Trial::new(SOURCE, "bitonic_sort")
        .shape(2, BLOCK as u32)
        .changed(&keys, &sorted)
        .changed(&values, &moved)
        .run(context)
}

fn radix_sort(context: &Context<'_>) -> Result<()> {
    const N: usize = 1024;
    let keys = Random::new(102).many(N, |r| r.u32());
    let mut want = keys.clone();
    want.sort_unstable();
    Trial::new(SOURCE, "radix_sort")
        .shape(1, 256)
        .changed(&keys, &want)
        .input(&[0u32; N])
        .value(N as i32)
        .run(context)
}

fn sort_rows(context: &Context<'_>) -> Result<()> {
    let rows = Random::new(103).many(128, |r| [0; 24].map(|_: i32| (r.below(300) as i16) - 150));
    let mut want = rows.clone();
    want.iter_mut().for_each(|row| row.sort_unstable());
    Trial::new(SOURCE, "sort_rows").shape(2, 64).input(&rows).output(&want).run(context)
}

fn lower_bound(context: &Context<'_>) -> Result<()> {
    const N: usize = 1000;
    const M: usize = 1500;
    let mut random = Random::new(104);
    let mut hay = random.many(N, |r| r.below(3000) as i64 * 1_000_000_007 - 1_500_000_000_000);
    hay.sort_unstable();
    let needles = random.many(M, |r| match r.below(2) {
        0 => hay[r.below(N as u32) as usize],
        _ => r.u64() as i64 >> 20,
    });
    let want: Vec<i32> = needles.iter().map(|needle| hay.partition_point(|x| x < needle) as i32).collect();
    Trial::new(SOURCE, "lower_bound")
        .threads(M)
        .input(&hay)
        .value(N as i32)
        .input(&needles)
        .output(&want)
        .value(M as i32)
        .run(context)
}
