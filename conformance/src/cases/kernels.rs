//! Whole kernels with results that a CPU can check.

use crate::context::Context;
use crate::numbers::Random;
use crate::suite::Case;
use crate::{args, compare, source};
use anyhow::Result;

pub const CASES: &[Case] = &[Case::new("kernel/vector_add", vector_add)];

fn vector_add(context: &Context<'_>) -> Result<()> {
    const COUNT: usize = 10_000;
    let mut random = Random::new(1);
    let a = random.many(COUNT, |r| r.f32(-1.0, 1.0));
    let b = random.many(COUNT, |r| r.f32(-1.0, 1.0));
    let want: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    source!("vector_add").each_variant(context, |module| {
        let (a, b, c) = (context.buffer(&a)?, context.buffer(&b)?, context.zeros::<f32>(COUNT)?);
        let blocks = COUNT.div_ceil(256) as u32;
        module.function("vector_add")?.run(blocks, 256, args![&a, &b, &c, COUNT as i32])?;
        compare::equal(&c.read()?, &want)
    })
}
