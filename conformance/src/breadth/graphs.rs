//! `graphs.cu`.

use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::suite::Case;
use crate::{args, compare, source};
use anyhow::Result;
use std::collections::VecDeque;

const SOURCE: Source = source!("graphs");

pub const CASES: &[Case] = &[
    Case::new("breadth/floyd_warshall", floyd_warshall),
    Case::new("breadth/breadth_first", breadth_first),
    Case::new("breadth/union_find", union_find),
    Case::new("breadth/sparse_product", sparse_product),
];

fn floyd_warshall(context: &Context<'_>) -> Result<()> {
    const N: usize = 24;
    const FAR: i32 = 1_000_000;
    let mut random = Random::new(121);
    let mut distance = random.many(N * N, |r| if r.below(4) == 0 { r.below(100) as i32 + 1 } else { FAR });
    (0..N).for_each(|i| distance[i * N + i] = 0);
    let mut want = distance.clone();
    for k in 0..N {
        for i in 0..N * N {
            want[i] = want[i].min(want[i / N * N + k] + want[k * N + i % N]);
        }
    }
    Trial::new(SOURCE, "floyd_warshall")
        .shape(1, (N as u32, N as u32))
        .changed(&distance, &want)
        .value(N as i32)
        .run(context)
}

/// Compressed rows: where each begins, and their columns.
fn rows_of(random: &mut Random, rows: usize, columns: u32, most: u32) -> (Vec<i32>, Vec<i32>) {
    let mut starts = vec![0];
    let mut edges = Vec::new();
    for _ in 0..rows {
        edges.extend((0..random.below(most)).map(|_| random.below(columns) as i32));
        starts.push(edges.len() as i32);
    }
    (starts, edges)
}

fn breadth_first(context: &Context<'_>) -> Result<()> {
    const N: usize = 600;
    let (starts, edges) = rows_of(&mut Random::new(122), N, N as u32, 5);
    let mut want = vec![-1i32; N];
    want[0] = 0;
    let mut queue = VecDeque::from([0usize]);
    while let Some(node) = queue.pop_front() {
        for &next in &edges[starts[node] as usize..starts[node + 1] as usize] {
            if want[next as usize] == -1 {
                want[next as usize] = want[node] + 1;
                queue.push_back(next as usize);
            }
        }
    }
    Trial::new(SOURCE, "breadth_first")
        .shape(1, 128)
        .input(&starts)
        .input(&edges)
        .output(&want)
        .value(N as i32)
        .run(context)
}

fn union_find(context: &Context<'_>) -> Result<()> {
    const N: usize = 1000;
    const M: usize = 800;
    let edges = Random::new(123).many(M, |r| [r.below(N as u32), r.below(N as u32)]);
    // The least node of each component, by passing labels along edges until none changes.
    let mut want: Vec<u32> = (0..N as u32).collect();
    loop {
        let before = want.clone();
        for [a, b] in &edges {
            let least = want[*a as usize].min(want[*b as usize]);
            (want[*a as usize], want[*b as usize]) = (least, least);
        }
        if want == before {
            break;
        }
    }
    SOURCE.each_variant(context, |module| {
        let parent = context.buffer(&(0..N as u32).collect::<Vec<_>>())?;
        let (edges, label) = (context.buffer(&edges)?, context.zeros::<u32>(N)?);
        module.function("unite")?.run(7, 128, args![&parent, &edges, M as i32])?;
        module.function("label_components")?.run(8, 128, args![&parent, &label, N as i32])?;
        compare::equal(&label.read()?, &want)
    })
}

fn sparse_product(context: &Context<'_>) -> Result<()> {
    const ROWS: usize = 200;
    const COLUMNS: usize = 300;
    let mut random = Random::new(124);
    let (starts, columns) = rows_of(&mut random, ROWS, COLUMNS as u32, 90);
    let values = random.many(columns.len(), |r| r.f64(-1.0, 1.0));
    let x = random.many(COLUMNS, |r| r.f64(-1.0, 1.0));
    let want: Vec<f64> = starts
        .windows(2)
        .map(|row| (row[0] as usize..row[1] as usize).map(|k| values[k] * x[columns[k] as usize]).sum())
        .collect();
    Trial::new(SOURCE, "sparse_product")
        .threads(32 * ROWS)
        .input(&starts)
        .input(&columns)
        .input(&values)
        .input(&x)
        .close(&want, 1e-12, 1e-12)
        .value(ROWS as i32)
        .run(context)
}
