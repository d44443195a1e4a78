//! `language.cu`.

use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::source;
use crate::suite::Case;
use anyhow::Result;

const SOURCE: Source = source!("language");

pub const CASES: &[Case] = &[
    Case::new("breadth/virtual_calls", virtual_calls),
    Case::new("breadth/composed_pointers", composed_pointers),
    Case::new("breadth/recursion_depths", recursion_depths),
    Case::new("breadth/mutual_recursion", mutual_recursion),
    Case::new("breadth/interpreter", interpreter),
    Case::new("breadth/irreducible", irreducible),
    Case::new("breadth/struct_by_value", struct_by_value),
    Case::new("breadth/templates", templates),
    Case::new("breadth/local_arrays", local_arrays),
    Case::new("breadth/initialised_globals", initialised_globals),
    Case::new("breadth/asserted", asserted),
    Case::new("breadth/clocks", clocks),
    Case::new("breadth/coordinates", coordinates),
];

fn virtual_calls(context: &Context<'_>) -> Result<()> {
    const N: usize = 300;
    let x = Random::new(151).many(N, |r| r.below(10_000) as i32);
    let want: Vec<i32> = x
        .iter()
        .enumerate()
        .map(|(i, &x)| match x % 3 {
            0 => 2_000_000 + x * 3 + 1,
            1 => 4_000_000 + x - i as i32,
            _ => x,
        })
        .collect();
    Trial::new(SOURCE, "virtual_calls").threads(N).input(&x).output(&want).value(N as i32).run(context)
}

fn composed_pointers(context: &Context<'_>) -> Result<()> {
    const N: usize = 200;
    let program = Random::new(152).many(N, |r| r.below(729));
    let steps: [fn(f32) -> f32; 3] = [|x| x + x, |x| x * x, |x| x * 0.5];
    let run = |i: usize, mut program: u32| {
        let mut x = i as f32 * 0.25;
        while program > 0 {
            let digit = program % 9;
            x = steps[digit as usize % 3](steps[digit as usize / 3](x));
            program /= 9;
        }
        x
    };
    let want: Vec<f32> = program.iter().enumerate().map(|(i, p)| run(i, *p)).collect();
    Trial::new(SOURCE, "composed_pointers")
        .threads(N)
        .input(&program)
        .output(&want)
        .value(N as i32)
        .run(context)
}

fn hanoi(discs: u32, from: u32, to: u32, trace: &mut u32) -> i32 {
    if discs == 0 {
        return 0;
    }
    let over = 3 - from - to;
    let moves = hanoi(discs - 1, from, over, trace);
    *trace = trace.wrapping_mul(31).wrapping_add(from * 3 + to);
    moves + 1 + hanoi(discs - 1, over, to, trace)
}

fn recursion_depths(context: &Context<'_>) -> Result<()> {
    let (moves, traces): (Vec<i32>, Vec<u32>) = (0..64)
        .map(|i| {
            let mut trace = 0;
            (hanoi(i % 9, 0, 2, &mut trace), trace)
        })
        .unzip();
    Trial::new(SOURCE, "recursion_depths").shape(1, 64).output(&moves).output(&traces).run(context)
}

fn mutual_recursion(context: &Context<'_>) -> Result<()> {
    let want: Vec<u32> = (0..32).map(|i| if i % 2 == 0 { 2 } else { 1 }).collect();
    Trial::new(SOURCE, "mutual_recursion").shape(1, 32).output(&want).run(context)
}

/// Forty steps of the machine, from each thread's own place in the code.
fn interpret(code: &[u8], start: usize, first: i32) -> [u32; 2] {
    let (mut a, mut b, mut pc) = (first as u32, start as u32, start % code.len());
    for _ in 0..40 {
        match code[pc] & 15 {
            0 => a = a.wrapping_add(b),
            1 => b = a.wrapping_sub(b),
            2 => a = a.wrapping_mul(5).wrapping_add(1),
            3 => b ^= (a as i32 >> 3) as u32,
            4 => a = (a as i32).max(b as i32) as u32,
            5 => b = a.min(b),
            6 => a = a.count_ones(),
            7 => b <<= 1,
            8 => (a, b) = (b, a),
            9 => pc += if a & 1 == 1 { 2 } else { 0 },
            10 => a = a.wrapping_neg(),
            11 => b = !b,
            12 => a = (b as i32 / 3) as u32,
            13 => pc += (a & 3) as usize,
            14 => b = b.wrapping_add(pc as u32),
            _ => a ^= 0x5a5a,
        }
        pc = (pc + 1) % code.len();
    }
    [a, b]
}

fn interpreter(context: &Context<'_>) -> Result<()> {
    const N: usize = 256;
    let mut random = Random::new(153);
    let code = random.many(97, |r| r.u32() as u8);
    let x = random.many(N, |r| r.i32());
    let want: Vec<[u32; 2]> = x.iter().enumerate().map(|(i, x)| interpret(&code, i, *x)).collect();
    Trial::new(SOURCE, "interpreter")
        .threads(N)
        .input(&code)
        .value(code.len() as i32)
        .input(&x)
        .output(&want)
        .value(N as i32)
        .run(context)
}

fn irreducible(context: &Context<'_>) -> Result<()> {
    const N: usize = 256;
    let x = Random::new(154).many(N, |r| r.u32());
    let walk = |mut x: u32| {
        let (mut count, mut second) = (0u32, x & 1 == 1);
        loop {
            if second {
                count += 2;
                x = (x >> 1) ^ if x & 4 != 0 { 0x8000_0057 } else { 0 };
            } else {
                count += 1;
                x = x.wrapping_mul(5).wrapping_add(3);
            }
            if count > 60 {
                return x ^ count;
            }
            second = if second { x & 2 != 0 } else { x & 8 == 0 };
        }
    };
    let want: Vec<u32> = x.iter().map(|x| walk(*x)).collect();
    Trial::new(SOURCE, "irreducible").threads(N).input(&x).output(&want).value(N as i32).run(context)
}

fn struct_by_value(context: &Context<'_>) -> Result<()> {
    // A 2x3 and a 3x2 matrix as {rows, columns, values}, then a character and an aligned double.
    let left: Vec<f32> = (0..6).map(|i| i as f32 - 2.0).collect();
    let right: Vec<f32> = (0..6).map(|i| (i * i) as f32).collect();
    let mut pair = [0u8; 80];
    for (at, (rows, columns, values)) in [(0, (2i32, 3i32, &left)), (32, (3, 2, &right))] {
        pair[at..at + 4].copy_from_slice(&rows.to_le_bytes());
        pair[at + 4..at + 8].copy_from_slice(&columns.to_le_bytes());
        for (i, value) in values.iter().enumerate() {
            pair[at + 8 + 4 * i..at + 12 + 4 * i].copy_from_slice(&value.to_le_bytes());
        }
    }
    pair[64] = b'z';
    pair[72..].copy_from_slice(&0.5f64.to_le_bytes());
    let want: Vec<f64> = (0..4)
        .map(|i| {
            let sum: f32 = (0..3).map(|k| left[i / 2 * 3 + k] * right[k * 2 + i % 2]).sum();
            sum as f64 * 0.5 + b'z' as f64
        })
        .collect();
    Trial::new(SOURCE, "struct_by_value").shape(1, 32).value(pair).output(&want).run(context)
}

fn templates(context: &Context<'_>) -> Result<()> {
    const N: usize = 200;
    let x = Random::new(155).many(N, |r| r.i32() >> 4);
    // Nine pushes into a ring: what is left, oldest first.
    let weighted = |kept: &[i64]| -> i64 { kept.iter().zip(1..).map(|(x, weight)| x * weight).sum() };
    let want: Vec<i64> = (0..N)
        .map(|i| {
            let wide: Vec<i64> = (4..9).map(|k| x[(i + k) % N] as i64).collect();
            let narrow: Vec<i64> = (6..9).map(|k| x[i * k % N] as i16 as i64).collect();
            weighted(&wide) * 7 + x[i] as i64 - weighted(&narrow) as i16 as i64
        })
        .collect();
    Trial::new(SOURCE, "templates").threads(N).input(&x).output(&want).value(N as i32).run(context)
}

fn local_arrays(context: &Context<'_>) -> Result<()> {
    const N: usize = 128;
    let x = Random::new(156).many(N, |r| r.u32());
    let shuffle = |x: u32| {
        let mut bytes: Vec<u8> = (1..=32).flat_map(|k| x.wrapping_mul(k).to_le_bytes()).collect();
        let word = |bytes: &[u8], k: usize| {
            u32::from_le_bytes([bytes[4 * k], bytes[4 * k + 1], bytes[4 * k + 2], bytes[4 * k + 3]])
        };
        for k in 0..64 {
            let at = word(&bytes, k % 32) as usize % 128;
            bytes[at] = bytes[127 - at].wrapping_add(k as u8);
        }
        (0..32).fold(0, |sum: u32, k| sum.wrapping_mul(31).wrapping_add(word(&bytes, k * 7 % 32)))
    };
    let want: Vec<u32> = x.iter().map(|x| shuffle(*x)).collect();
    Trial::new(SOURCE, "local_arrays").threads(N).input(&x).output(&want).value(N as i32).run(context)
}

fn initialised_globals(context: &Context<'_>) -> Result<()> {
    let weights = [[1.5f32, 2.5, -3.0], [0.125, 1e-20, 7.0]];
    let greeting = b"the tide turns\0";
    let mut want: Vec<f64> = (0..32)
        .map(|i| {
            let list = if i % 2 == 0 { 1030.0f32 } else { 30.0 };
            (list + weights[i % 2][i % 3] + greeting[i % greeting.len()] as f32) as f64
        })
        .collect();
    want[31] = 0xcdf0 as f64;
    Trial::new(SOURCE, "initialised_globals").shape(1, 32).output(&want).run(context)
}

fn asserted(context: &Context<'_>) -> Result<()> {
    const N: usize = 100;
    let x: Vec<i32> = (0..N as i32).collect();
    let want: Vec<i32> = (1..=N as i32).collect();
    Trial::new(SOURCE, "asserted").threads(N).input(&x).output(&want).value(N as i32).run(context)
}

fn clocks(context: &Context<'_>) -> Result<()> {
    Trial::new(SOURCE, "clocks").shape(1, 64).output(&[7i32; 64]).run(context)
}

fn coordinates(context: &Context<'_>) -> Result<()> {
    let (grid, block) = ((3, 2, 4), (5, 4, 3));
    let threads = block.0 * block.1 * block.2;
    let want: Vec<u32> = (0..grid.0 * grid.1 * grid.2)
        .flat_map(|b| {
            (0..threads).map(move |t| {
                let z = t / (block.0 * block.1);
                b << 20 | t << 8 | (t % 32) << 3 | 1 << 2 | z & 3
            })
        })
        .collect();
    Trial::new(SOURCE, "coordinates").shape(grid, block).output(&want).run(context)
}
