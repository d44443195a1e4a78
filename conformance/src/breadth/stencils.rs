//! `stencils.cu`.

use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::source;
use crate::suite::Case;
use anyhow::Result;

const SOURCE: Source = source!("stencils");

pub const CASES: &[Case] = &[
    Case::new("breadth/blur_2d", blur_2d),
    Case::new("breadth/heat_3d", heat_3d),
    Case::new("breadth/game_of_life", game_of_life),
    Case::new("breadth/mandelbrot", mandelbrot),
    Case::new("breadth/collatz", collatz),
    Case::new("breadth/n_body", n_body),
];

/// Every (x, y) of a picture, row by row.
fn pixels(width: usize, height: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..height).flat_map(move |y| (0..width).map(move |x| (x, y)))
}

fn blur_2d(context: &Context<'_>) -> Result<()> {
    const WIDTH: usize = 50;
    const HEIGHT: usize = 35;
    let image = Random::new(91).many(WIDTH * HEIGHT, |r| r.f32(0.0, 255.0));
    let at = |x: usize, y: usize, dx: usize, dy: usize| {
        let clamped = |v: usize, d: usize, size: usize| (v + d).saturating_sub(1).min(size - 1);
        image[clamped(y, dy, HEIGHT) * WIDTH + clamped(x, dx, WIDTH)]
    };
    let want: Vec<f32> = pixels(WIDTH, HEIGHT)
        .map(|(x, y)| pixels(3, 3).fold(0.0, |sum, (dx, dy)| sum + at(x, y, dx, dy)) / 9.0)
        .collect();
    Trial::new(SOURCE, "blur_2d")
        .shape((4, 3), (16, 16))
        .input(&image)
        .exactly(&want)
        .value(WIDTH as i32)
        .value(HEIGHT as i32)
        .run(context)
}

fn heat_3d(context: &Context<'_>) -> Result<()> {
    const SIZE: usize = 18;
    const PLANE: usize = SIZE * SIZE;
    let x = Random::new(92).many(SIZE * PLANE, |r| r.f32(0.0, 100.0));
    let inner = |i: usize| {
        let edge = |v: usize| v == 0 || v == SIZE - 1;
        !edge(i % SIZE) && !edge(i / SIZE % SIZE) && !edge(i / PLANE)
    };
    let want: Vec<f32> = (0..x.len())
        .map(|i| {
            if !inner(i) {
                return x[i];
            }
            let around = x[i - 1] + x[i + 1] + x[i - SIZE] + x[i + SIZE] + x[i - PLANE] + x[i + PLANE];
            x[i] + 0.1 * (around - 6.0 * x[i])
        })
        .collect();
    Trial::new(SOURCE, "heat_3d")
        .shape((3, 3, 5), (8, 8, 4))
        .input(&x)
        .exactly(&want)
        .value(SIZE as i32)
        .run(context)
}

fn game_of_life(context: &Context<'_>) -> Result<()> {
    const WIDTH: usize = 60;
    const HEIGHT: usize = 45;
    let cells = Random::new(93).many(WIDTH * HEIGHT, |r| (r.below(3) == 0) as u8);
    let want: Vec<u8> = pixels(WIDTH, HEIGHT)
        .map(|(x, y)| {
            let around: u8 = pixels(3, 3)
                .filter(|offset| *offset != (1, 1))
                .map(|(dx, dy)| cells[(y + dy + HEIGHT - 1) % HEIGHT * WIDTH + (x + dx + WIDTH - 1) % WIDTH])
                .sum();
            (around == 3 || (around == 2 && cells[y * WIDTH + x] == 1)) as u8
        })
        .collect();
    Trial::new(SOURCE, "game_of_life")
        .shape((4, 6), (16, 8))
        .input(&cells)
        .output(&want)
        .value(WIDTH as i32)
        .value(HEIGHT as i32)
        .run(context)
}

fn mandelbrot(context: &Context<'_>) -> Result<()> {
    const WIDTH: usize = 64;
    const HEIGHT: usize = 48;
    const LIMIT: i32 = 120;
    let steps = |(px, py): (usize, usize)| {
        let cx = -2.0f32 + 3.0 * px as f32 / WIDTH as f32;
        let cy = -1.0f32 + 2.0 * py as f32 / HEIGHT as f32;
        let (mut x, mut y, mut steps) = (0.0f32, 0.0f32, 0);
        while x * x + y * y <= 4.0 && steps < LIMIT {
            (x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);
            steps += 1;
        }
        steps
    };
    let want: Vec<i32> = pixels(WIDTH, HEIGHT).map(steps).collect();
    Trial::new(SOURCE, "mandelbrot")
        .shape((4, 3), (16, 16))
        .output(&want)
        .value(WIDTH as i32)
        .value(HEIGHT as i32)
        .value(LIMIT)
        .run(context)
}

fn collatz(context: &Context<'_>) -> Result<()> {
    const N: usize = 600;
    let x = Random::new(94).many(N, |r| r.below(1_000_000) + 1);
    let walk = |start: u32| {
        let (mut x, mut top, mut steps) = (start as u64, start as u64, 0);
        while x != 1 {
            x = if x % 2 == 1 { 3 * x + 1 } else { x / 2 };
            top = top.max(x);
            steps += 1;
        }
        (steps, top)
    };
    let (steps, highest): (Vec<u32>, Vec<u64>) = x.iter().map(|x| walk(*x)).unzip();
    Trial::new(SOURCE, "collatz")
        .threads(N)
        .input(&x)
        .output(&steps)
        .output(&highest)
        .value(N as i32)
        .run(context)
}

fn n_body(context: &Context<'_>) -> Result<()> {
    const N: usize = 256;
    const DT: f32 = 0.01;
    let bodies =
        Random::new(95).many(N, |r| [r.f32(-1.0, 1.0), r.f32(-1.0, 1.0), r.f32(-1.0, 1.0), r.f32(0.1, 1.0)]);
    let want: Vec<f32> = bodies
        .iter()
        .flat_map(|me| {
            let mut pull = [0.0f64; 3];
            for other in &bodies {
                let d = [0, 1, 2].map(|k| (other[k] - me[k]) as f64);
                let r2 = d.iter().map(|d| d * d).sum::<f64>() + 0.01;
                let factor = other[3] as f64 * r2.powf(-1.5);
                (0..3).for_each(|k| pull[k] += d[k] * factor);
            }
            let moved = [0, 1, 2].map(|k| (me[k] as f64 + pull[k] * DT as f64) as f32);
            [moved[0], moved[1], moved[2], me[3]]
        })
        .collect();
    Trial::new(SOURCE, "n_body")
        .shape(4, 64)
        .input(&bodies)
        .close(&want, 1e-4, 1e-4)
        .value(N as i32)
        .value(DT)
        .run(context)
}
