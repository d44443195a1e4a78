//! `memory_access.cu`.

use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::source;
use crate::suite::Case;
use anyhow::Result;

const SOURCE: Source = source!("memory_access");

pub const CASES: &[Case] = &[
    Case::new("breadth/cache_hints", cache_hints),
    Case::new("breadth/generic_pointers", generic_pointers),
    Case::new("breadth/async_copies", async_copies),
    Case::new("breadth/packed_records", packed_records),
    Case::new("breadth/move_particles", move_particles),
    Case::new("breadth/block_copies", block_copies),
];

fn cache_hints(context: &Context<'_>) -> Result<()> {
    const N: usize = 1000;
    let mut random = Random::new(161);
    let a = random.many(N, |r| r.i32() >> 4);
    let b = random.many(N, |r| [r.f32(-1.0, 1.0), r.f32(-1.0, 1.0)]);
    let want: Vec<i32> = (0..N).map(|i| a[i] + a[N - 1 - i] + a[i] + a[i / 2]).collect();
    let reversed: Vec<[f32; 2]> = b.iter().rev().copied().collect();
    Trial::new(SOURCE, "cache_hints")
        .threads(N)
        .input(&a)
        .input(&b)
        .output(&want)
        .output(&reversed)
        .value(N as i32)
        .run(context)
}

fn generic_pointers(context: &Context<'_>) -> Result<()> {
    let x = Random::new(162).many(64, |r| r.below(1_000_000) as i32);
    let want: Vec<i32> = (0..64i32)
        .map(|i| match i % 4 {
            0 => x[i as usize] * 8 + 1,
            1 => (1000 + 63 - i) * 8 + 2,
            2 => (i / 4 % 4 + 1) * 100 * 8 + 4,
            _ => 5 * 8 + 1,
        })
        .collect();
    Trial::new(SOURCE, "generic_pointers").shape(1, 64).input(&x).output(&want).run(context)
}

fn async_copies(context: &Context<'_>) -> Result<()> {
    const TILES: usize = 7;
    let x = Random::new(163).many(64 * TILES, |r| [0; 4].map(|_: i32| r.f32(-1.0, 1.0)));
    let want: Vec<[f32; 4]> = (0..64)
        .map(|i| {
            let tiles = x.chunks(64).map(|tile| tile[63 - i]);
            tiles.fold([0.0; 4], |sum, v| std::array::from_fn(|k| sum[k] + v[k]))
        })
        .collect();
    Trial::new(SOURCE, "async_copies").shape(1, 64).input(&x).output(&want).value(TILES as i32).run(context)
}

fn packed_records(context: &Context<'_>) -> Result<()> {
    const N: usize = 500;
    let records = Random::new(164).many(N, |r| [0; 7].map(|_: i32| r.u32() as u8));
    let want: Vec<u32> = records
        .iter()
        .map(|r| {
            let size = u32::from_le_bytes([r[1], r[2], r[3], r[4]]);
            let check = u16::from_le_bytes([r[5], r[6]]);
            r[0] as u32 ^ size ^ (check as u32) << 16
        })
        .collect();
    Trial::new(SOURCE, "packed_records").threads(N).input(&records).output(&want).value(N as i32).run(context)
}

/// Three doubles, a float and two shorts, as the 32 bytes of the kernel's structure.
fn particle(position: [f64; 3], mass: f32, charge: [i16; 2]) -> [u8; 32] {
    let mut bytes: Vec<u8> = position.iter().flat_map(|x| x.to_le_bytes()).collect();
    bytes.extend(mass.to_le_bytes());
    bytes.extend(charge.iter().flat_map(|x| x.to_le_bytes()));
    bytes.try_into().expect("24 + 4 + 4 bytes")
}

fn move_particles(context: &Context<'_>) -> Result<()> {
    const N: usize = 300;
    let particles = Random::new(165).many(N, |r| {
        let position = [0; 3].map(|_: i32| r.f64(-10.0, 10.0));
        (position, r.f32(0.0, 5.0), [r.below(1000) as i16, r.below(1000) as i16])
    });
    let before: Vec<[u8; 32]> = particles.iter().map(|(p, m, c)| particle(*p, *m, *c)).collect();
    let want: Vec<[u8; 32]> = (0..N)
        .map(|i| {
            let (mut position, mass, mut charge) = particles[N - 1 - i];
            position[i % 3] += mass as f64;
            charge[i & 1] = -charge[i & 1];
            particle(position, mass, charge)
        })
        .collect();
    Trial::new(SOURCE, "move_particles").threads(N).input(&before).output(&want).value(N as i32).run(context)
}

fn block_copies(context: &Context<'_>) -> Result<()> {
    const THREADS: usize = 64;
    const ROW: usize = 29;
    let x = Random::new(166).many(THREADS * ROW, |r| r.u32() as u8);
    let want: Vec<u8> = x
        .chunks(ROW)
        .enumerate()
        .flat_map(|(i, row)| {
            let mut line = [i as u8; 40];
            line[i % 8..i % 8 + ROW].copy_from_slice(row);
            line
        })
        .collect();
    Trial::new(SOURCE, "block_copies")
        .shape(2, THREADS as u32 / 2)
        .input(&x)
        .output(&want)
        .value(ROW as i32)
        .run(context)
}
