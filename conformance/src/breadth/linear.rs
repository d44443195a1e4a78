//! `linear.cu`.

use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::source;
use crate::suite::Case;
use anyhow::Result;
use std::f64::consts::PI;

const SOURCE: Source = source!("linear");

pub const CASES: &[Case] = &[
    Case::new("breadth/matrix_product", matrix_product),
    Case::new("breadth/matrix_vector", matrix_vector),
    Case::new("breadth/fourier", fourier),
    Case::new("breadth/convolve", convolve),
    Case::new("breadth/solve_systems", solve_systems),
    Case::new("breadth/edit_distance", edit_distance),
];

fn matrix_product(context: &Context<'_>) -> Result<()> {
    const M: usize = 50;
    const N: usize = 45;
    const K: usize = 70;
    let mut random = Random::new(141);
    let a = random.many(M * K, |r| r.f32(-1.0, 1.0));
    let b = random.many(K * N, |r| r.f32(-1.0, 1.0));
    let want: Vec<f32> = (0..M * N)
        .map(|i| (0..K).fold(0.0, |sum, k| a[i / N * K + k].mul_add(b[k * N + i % N], sum)))
        .collect();
    Trial::new(SOURCE, "matrix_product")
        .shape((3, 4), (16, 16))
        .input(&a)
        .input(&b)
        .output(&want)
        .value(M as i32)
        .value(N as i32)
        .value(K as i32)
        .run(context)
}

fn matrix_vector(context: &Context<'_>) -> Result<()> {
    const ROWS: usize = 150;
    const COLUMNS: usize = 90;
    let mut random = Random::new(142);
    let a = random.many(ROWS * COLUMNS, |r| r.f64(-1.0, 1.0));
    let x = random.many(COLUMNS, |r| r.f64(-1.0, 1.0));
    let want: Vec<f64> =
        a.chunks(COLUMNS).map(|row| row.iter().zip(&x).fold(0.0, |sum, (a, x)| a.mul_add(*x, sum))).collect();
    Trial::new(SOURCE, "matrix_vector")
        .shape(3, 64)
        .shared(COLUMNS * size_of::<f64>())
        .input(&a)
        .input(&x)
        .output(&want)
        .value(ROWS as i32)
        .value(COLUMNS as i32)
        .run(context)
}

fn fourier(context: &Context<'_>) -> Result<()> {
    const N: usize = 256;
    let x = Random::new(143).many(3 * N, |r| [r.f32(-1.0, 1.0), r.f32(-1.0, 1.0)]);
    let mut want: Vec<f32> = Vec::new();
    for block in x.chunks(N) {
        for k in 0..N {
            let sum = block.iter().enumerate().fold([0.0f64; 2], |sum, (n, x)| {
                let (s, c) = (-2.0 * PI * (k * n % N) as f64 / N as f64).sin_cos();
                let (re, im) = (x[0] as f64, x[1] as f64);
                [sum[0] + re * c - im * s, sum[1] + re * s + im * c]
            });
            want.extend(sum.map(|x| x as f32));
        }
    }
    Trial::new(SOURCE, "fourier").shape(3, 128).input(&x).close(&want, 1e-5, 2e-5).run(context)
}

fn convolve(context: &Context<'_>) -> Result<()> {
    const N: usize = 2000;
    const FILTER: [f32; 9] = [0.05, 0.1, 0.15, 0.2, 0.0, -0.2, -0.15, -0.1, -0.05];
    let x = Random::new(144).many(N, |r| r.f32(-10.0, 10.0));
    let want: Vec<f32> = (0..N)
        .map(|i| {
            let inside = (0..9).filter(|k| (4..N + 4).contains(&(i + k)));
            inside.fold(0.0, |sum, k| FILTER[k].mul_add(x[i + k - 4], sum))
        })
        .collect();
    Trial::new(SOURCE, "convolve").threads(N).input(&x).output(&want).value(N as i32).run(context)
}

fn solve_systems(context: &Context<'_>) -> Result<()> {
    const N: usize = 200;
    // Chosen solutions, and matrices whose diagonal is large enough to keep them well conditioned.
    let mut random = Random::new(145);
    let solutions = random.many(N, |r| [0; 4].map(|_: i32| r.f64(-2.0, 2.0)));
    let matrices: Vec<f64> = solutions
        .iter()
        .flat_map(|x| {
            let row = |r: usize, random: &mut Random| {
                let mut row: [f64; 5] = std::array::from_fn(|_| random.f64(-1.0, 1.0));
                row[(r + 1) % 4] += 5.0;
                row[4] = (0..4).map(|k| row[k] * x[k]).sum();
                row
            };
            (0..4).flat_map(|r| row(r, &mut random)).collect::<Vec<_>>()
        })
        .collect();
    let want = solutions.concat();
    Trial::new(SOURCE, "solve_systems")
        .threads(N)
        .input(&matrices)
        .close(&want, 1e-12, 1e-12)
        .value(N as i32)
        .run(context)
}

fn edit_distance(context: &Context<'_>) -> Result<()> {
    const N: usize = 200;
    const LENGTH: usize = 20;
    let mut random = Random::new(146);
    let [a, b] = [0; 2].map(|_| random.many(N * LENGTH, |r| b"acgt"[r.below(4) as usize]));
    let distance = |a: &[u8], b: &[u8]| {
        let mut table = vec![vec![0usize; LENGTH + 1]; LENGTH + 1];
        for i in 0..=LENGTH {
            for j in 0..=LENGTH {
                table[i][j] = match (i, j) {
                    (0, _) => j,
                    (_, 0) => i,
                    _ => {
                        let changed = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]) as usize;
                        changed.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1)
                    }
                };
            }
        }
        table[LENGTH][LENGTH] as i32
    };
    let want: Vec<i32> = a.chunks(LENGTH).zip(b.chunks(LENGTH)).map(|(a, b)| distance(a, b)).collect();
    Trial::new(SOURCE, "edit_distance")
        .threads(N)
        .input(&a)
        .input(&b)
        .value(LENGTH as i32)
        .output(&want)
        .value(N as i32)
        .run(context)
}
