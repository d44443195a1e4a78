//! `block.cu`.

use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::source;
use crate::suite::Case;
use anyhow::Result;

const SOURCE: Source = source!("block");

pub const CASES: &[Case] = &[
    Case::new("breadth/block_sum", block_sum),
    Case::new("breadth/block_scan", block_scan),
    Case::new("breadth/shared_histogram", shared_histogram),
    Case::new("breadth/transpose", transpose),
    Case::new("breadth/counting_barriers", counting_barriers),
    Case::new("breadth/producer_consumer", producer_consumer),
    Case::new("breadth/leave_early", leave_early),
];

fn block_sum(context: &Context<'_>) -> Result<()> {
    const N: usize = 5000;
    const GRID: usize = 5;
    const BLOCK: usize = 256;
    let x = Random::new(81).many(N, |r| r.f32(-1.0, 1.0));
    // In the order of the kernel, so that even the roundings agree.
    let want: Vec<f32> = (0..GRID)
        .map(|block| {
            let mut partial: Vec<f32> = (0..BLOCK)
                .map(|thread| {
                    x.iter().skip(block * BLOCK + thread).step_by(GRID * BLOCK).fold(0.0, |a, b| a + b)
                })
                .collect();
            let mut half = BLOCK / 2;
            while half > 0 {
                (0..half).for_each(|i| partial[i] += partial[i + half]);
                half /= 2;
            }
            partial[0]
        })
        .collect();
    Trial::new(SOURCE, "block_sum")
        .shape(GRID as u32, BLOCK as u32)
        .input(&x)
        .exactly(&want)
        .value(N as i32)
        .run(context)
}

fn block_scan(context: &Context<'_>) -> Result<()> {
    const BLOCK: usize = 512;
    let x = Random::new(82).many(3 * BLOCK, |r| r.below(1000) as i32 - 500);
    let want: Vec<i32> = x
        .chunks(BLOCK)
        .flat_map(|block| {
            block.iter().scan(0, |sum, x| {
                *sum += x;
                Some(*sum)
            })
        })
        .collect();
    Trial::new(SOURCE, "block_scan")
        .shape(3, BLOCK as u32)
        .shared(2 * BLOCK * size_of::<i32>())
        .input(&x)
        .output(&want)
        .run(context)
}

fn shared_histogram(context: &Context<'_>) -> Result<()> {
    const N: usize = 10_000;
    let x = Random::new(83).many(N, |r| (r.below(16) * r.below(16)) as u8);
    let mut want = [0u32; 256];
    x.iter().for_each(|x| want[*x as usize] += 1);
    Trial::new(SOURCE, "shared_histogram").shape(6, 128).input(&x).output(&want).value(N as i32).run(context)
}

fn transpose(context: &Context<'_>) -> Result<()> {
    const WIDTH: usize = 50;
    const HEIGHT: usize = 37;
    let x = Random::new(84).many(WIDTH * HEIGHT, |r| r.f64(-1.0, 1.0));
    let want: Vec<f64> = (0..WIDTH)
        .flat_map(|column| (0..HEIGHT).map(move |row| (row, column)))
        .map(|(r, c)| x[r * WIDTH + c])
        .collect();
    Trial::new(SOURCE, "transpose")
        .shape((4, 3), (16, 16))
        .input(&x)
        .output(&want)
        .value(WIDTH as i32)
        .value(HEIGHT as i32)
        .run(context)
}

fn counting_barriers(context: &Context<'_>) -> Result<()> {
    const BLOCK: usize = 96;
    let mut x = Random::new(85).many(4 * BLOCK, |r| r.below(60) as i32 - 30);
    x[BLOCK + 5] = 77;
    x[2 * BLOCK + 95] = -5000;
    let want: Vec<i32> = x
        .chunks(BLOCK)
        .flat_map(|block| {
            let positive = block.iter().filter(|x| **x > 0).count() as i32;
            let all = block.iter().all(|x| *x > -1000) as i32;
            let any = block.contains(&77) as i32;
            [positive * 4 + all * 2 + any; BLOCK]
        })
        .collect();
    Trial::new(SOURCE, "counting_barriers").shape(4, BLOCK as u32).input(&x).output(&want).run(context)
}

fn producer_consumer(context: &Context<'_>) -> Result<()> {
    const ROUNDS: usize = 6;
    let x = Random::new(86).many(64 * ROUNDS, |r| r.below(100) as i32);
    let want: Vec<i32> =
        (0..64).map(|i| (0..ROUNDS).fold(0, |sum, round| sum * 5 + x[round * 64 + 63 - i] * 3)).collect();
    Trial::new(SOURCE, "producer_consumer")
        .shape(1, 128)
        .input(&x)
        .output(&want)
        .value(ROUNDS as i32)
        .run(context)
}

fn leave_early(context: &Context<'_>) -> Result<()> {
    const N: usize = 75;
    let x = Random::new(87).many(N, |r| r.below(1000) as i32);
    let want = (0..4).fold(x.clone(), |x, _| (0..N).map(|i| x[i] + x[(i + 1) % N]).collect());
    Trial::new(SOURCE, "leave_early").shape(1, 128).input(&x).output(&want).value(N as i32).run(context)
}
