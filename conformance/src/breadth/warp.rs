//! `warp.cu`.

use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::source;
use crate::suite::Case;
use anyhow::Result;

const SOURCE: Source = source!("warp");

pub const CASES: &[Case] = &[
    Case::new("breadth/shuffles", shuffles),
    Case::new("breadth/shuffle_wide", shuffle_wide),
    Case::new("breadth/warp_scan", warp_scan),
    Case::new("breadth/warp_reductions", warp_reductions),
    Case::new("breadth/votes", votes),
    Case::new("breadth/match_groups", match_groups),
    Case::new("breadth/divergent_shuffles", divergent_shuffles),
    Case::new("breadth/compact", compact),
    Case::new("breadth/tiles", tiles),
    Case::new("breadth/aggregated_count", aggregated_count),
];

/// The lanes of each warp to a result per lane.
fn per_warp<T: Copy, U>(values: &[T], of: impl Fn(&[T], usize) -> U) -> Vec<U> {
    values
        .chunks(32)
        .flat_map(|warp| (0..warp.len()).map(|lane| of(warp, lane)).collect::<Vec<_>>())
        .collect()
}

/// A bit for every lane that satisfies `test`.
fn ballot<T>(warp: &[T], test: impl Fn(&T) -> bool) -> u32 {
    warp.iter().enumerate().fold(0, |mask, (lane, x)| mask | (test(x) as u32) << lane)
}

fn shuffles(context: &Context<'_>) -> Result<()> {
    let x = Random::new(71).many(64, |r| r.i32());
    let want = [
        per_warp(&x, |w, lane| w[(lane * 7 + 3) % 32]),
        per_warp(&x, |w, lane| if lane < 3 { w[lane] } else { w[lane - 3] }),
        per_warp(&x, |w, lane| if lane % 16 + 5 < 16 { w[lane + 5] } else { w[lane] }),
        // A lane may reach into segments below its own, not above.
        per_warp(&x, |w, lane| if lane ^ 11 <= (lane | 7) { w[lane ^ 11] } else { w[lane] }),
    ]
    .concat();
    Trial::new(SOURCE, "shuffles").shape(1, 64).input(&x).output(&want).run(context)
}

fn shuffle_wide(context: &Context<'_>) -> Result<()> {
    let x = Random::new(72).many(256, |r| r.f64(-1e6, 1e6));
    let want =
        [16, 8, 4, 2, 1].iter().fold(x.clone(), |x, step| per_warp(&x, |w, lane| w[lane] + w[lane ^ step]));
    Trial::new(SOURCE, "shuffle_wide").shape(4, 64).input(&x).exactly(&want).run(context)
}

fn warp_scan(context: &Context<'_>) -> Result<()> {
    const N: usize = 1000;
    let x = Random::new(73).many(N, |r| r.u32());
    let want = per_warp(&x, |w, lane| w[..=lane].iter().fold(0, |a: u32, b| a.wrapping_add(*b)));
    Trial::new(SOURCE, "warp_scan").threads(N).input(&x).output(&want).value(N as i32).run(context)
}

fn warp_reductions(context: &Context<'_>) -> Result<()> {
    let x = Random::new(74).many(128, |r| r.u32());
    let want: Vec<u32> = x
        .chunks(32)
        .flat_map(|w| {
            let fold = |start: u32, f: fn(u32, u32) -> u32| w.iter().fold(start, |a, b| f(a, *b));
            [
                fold(0, u32::wrapping_add),
                fold(u32::MAX, u32::min),
                fold(i32::MIN as u32, |a, b| (a as i32).max(b as i32) as u32),
                fold(u32::MAX, |a, b| a & (b | 0xff)),
                fold(0, |a, b| a | b & 0xf0f),
                fold(0, |a, b| a ^ b),
            ]
        })
        .collect();
    Trial::new(SOURCE, "warp_reductions").shape(1, 128).input(&x).output(&want).run(context)
}

fn votes(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(75);
    // The last warp has values on both sides of 1000 and the one before it all below 90.
    let x: Vec<i32> = (0..128)
        .map(|i| match i / 32 {
            0 | 1 => random.below(100) as i32,
            2 => random.below(90) as i32,
            _ => random.below(2000) as i32 - 150,
        })
        .collect();
    let want = per_warp(&x, |w, _| {
        let flags = (w.iter().all(|x| *x > -100) as u32)
            | (w.iter().any(|x| *x > 95) as u32) << 1
            | (w.iter().all(|x| x / 1000 == w[0] / 1000) as u32) << 2;
        [ballot(w, |x| *x > 50), flags]
    });
    Trial::new(SOURCE, "votes").shape(1, 128).input(&x).value(50i32).output(&want).run(context)
}

fn match_groups(context: &Context<'_>) -> Result<()> {
    let x = Random::new(76).many(96, |r| r.below(7) as i32);
    let want = per_warp(&x, |w, lane| ballot(w, |x| *x == w[lane]));
    Trial::new(SOURCE, "match_groups").shape(1, 96).input(&x).output(&want).run(context)
}

fn divergent_shuffles(context: &Context<'_>) -> Result<()> {
    let x = Random::new(77).many(64, |r| r.below(10_000) as i32);
    let y = per_warp(&x, |w, lane| {
        if lane < 12 {
            return w[(lane + 1) % 12];
        }
        let rest = ballot(w, |x| x & 1 == 1) & 0xffff_f000;
        let below = (rest & ((1 << lane) - 1)).count_ones() as i32;
        below + 1000 * w[(lane + 1).min(31)]
    });
    let want = per_warp(&y, |w, lane| w[lane] + w[lane ^ 1]);
    Trial::new(SOURCE, "divergent_shuffles").shape(1, 64).input(&x).output(&want).run(context)
}

fn compact(context: &Context<'_>) -> Result<()> {
    const BLOCK: usize = 256;
    let x = Random::new(78).many(8 * BLOCK, |r| r.i32() >> 8);
    let mut want = Vec::new();
    let mut counts = Vec::new();
    for block in x.chunks(BLOCK) {
        let mut kept: Vec<i32> = block.iter().copied().filter(|x| *x > 0).collect();
        counts.push(kept.len() as u32);
        kept.resize(BLOCK, 0);
        want.extend(kept);
    }
    Trial::new(SOURCE, "compact").shape(8, BLOCK as u32).input(&x).output(&want).output(&counts).run(context)
}

fn tiles(context: &Context<'_>) -> Result<()> {
    let x = Random::new(79).many(64, |r| r.below(100) as i32);
    let want: Vec<i32> = (0..64)
        .map(|i| {
            let tile = &x[i / 8 * 8..][..8];
            let sum = tile.iter().sum::<i32>() * 10 + (i % 8) as i32;
            let signed = if tile.iter().any(|x| *x > 90) { -sum } else { sum };
            let warp = i / 32 * 32;
            let together: Vec<usize> = (warp..warp + 32).filter(|thread| thread % 3 == 0).collect();
            match together.iter().position(|thread| *thread == i) {
                Some(rank) => signed + 1000 * together.len() as i32 + 100_000 * rank as i32,
                None => signed,
            }
        })
        .collect();
    Trial::new(SOURCE, "tiles").shape(1, 64).input(&x).output(&want).run(context)
}

fn aggregated_count(context: &Context<'_>) -> Result<()> {
    const N: usize = 5000;
    let x = Random::new(80).many(N, |r| r.below(1000) as i32);
    let want = x.iter().filter(|x| *x % 3 == 0).count() as u32;
    Trial::new(SOURCE, "aggregated_count").threads(N).input(&x).output(&[want]).value(N as i32).run(context)
}
