//! Whole kernels with results that a CPU can check, each from all four PTX texts.

use crate::context::Context;
use crate::driver::CU_LIMIT_STACK_SIZE;
use crate::module::Module;
use crate::numbers::Random;
use crate::suite::Case;
use crate::{args, compare, source};
use anyhow::{Result, ensure};
use half::{bf16, f16};

pub const CASES: &[Case] = &[
    Case::new("kernel/vector_add", vector_add),
    Case::new("kernel/reduction_by_shuffles", reduction),
    Case::new("kernel/extremes_by_warp_reduction", extremes),
    Case::new("kernel/matmul_tiled", matmul),
    Case::new("kernel/histogram", histogram),
    Case::new("kernel/scan_look_back_by_block", scan_by_block),
    Case::new("kernel/scan_look_back_by_ticket", scan_by_ticket),
    Case::new("kernel/stencil_with_halo", stencil),
    Case::new("kernel/early_return_before_barrier", early_return),
    Case::new("kernel/warps_leave_before_barrier", warps_leave),
    Case::new("kernel/grid_3d_coordinates", coordinates),
    Case::new("kernel/grid_large_visits_each_block_once", visits),
    Case::new("kernel/dynamic_shared", dynamic_shared),
    Case::new("kernel/dynamic_shared_opt_in", dynamic_shared_opt_in),
    Case::new("kernel/static_and_dynamic_shared", both_kinds),
    Case::new("kernel/recursion", recursion),
    Case::new("kernel/function_pointers", function_pointers),
    Case::new("kernel/virtual_functions", virtual_functions),
    Case::new("kernel/jump_table", jump_table),
    Case::new("kernel/half", half_ops),
    Case::new("kernel/half2", half2_ops),
    Case::new("kernel/bfloat16", bfloat_ops),
];

fn vector_add(context: &Context<'_>) -> Result<()> {
    const COUNT: usize = 10_000;
    let mut random = Random::new(1);
    let a = random.many(COUNT, |r| r.f32(-1.0, 1.0));
    let b = random.many(COUNT, |r| r.f32(-1.0, 1.0));
    let want: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    source!("vector_add").each_variant(context, |module| {
        let (a, b, c) = (context.buffer(&a)?, context.buffer(&b)?, context.zeros::<f32>(COUNT)?);
        module.function("vector_add")?.run(blocks(COUNT, 256), 256, args![&a, &b, &c, COUNT as i32])?;
        compare::equal(&c.read()?, &want)
    })
}

fn reduction(context: &Context<'_>) -> Result<()> {
    const COUNT: usize = 100_003;
    let input = Random::new(2).many(COUNT, Random::u32);
    let want: u64 = input.iter().map(|&x| u64::from(x)).sum();
    source!("reduction").each_variant(context, |module| {
        let input = context.buffer(&input)?;
        // Whole warps, one warp, and a block whose last warp sums into a half-filled array.
        for threads in [256, 32, 96, 1024] {
            let total = context.zeros::<u64>(1)?;
            module.function("reduce")?.run(20, threads, args![&input, &total, COUNT as i32])?;
            compare::equal(&total.read()?, &[want])?;
        }
        Ok(())
    })
}

fn extremes(context: &Context<'_>) -> Result<()> {
    const COUNT: usize = 5_000;
    let input = Random::new(3).many(COUNT, Random::i32);
    let want = [*input.iter().min().expect("not empty"), *input.iter().max().expect("not empty")];
    source!("reduction").each_variant(context, |module| {
        let input = context.buffer(&input)?;
        let (low, high) = (context.buffer(&[i32::MAX])?, context.buffer(&[i32::MIN])?);
        module.function("extremes")?.run(
            blocks(COUNT, 128),
            128,
            args![&input, &low, &high, COUNT as i32],
        )?;
        compare::equal(&[low.read()?[0], high.read()?[0]], &want)
    })
}

fn matmul(context: &Context<'_>) -> Result<()> {
    let (m, n, k) = (70usize, 45usize, 53usize);
    let mut random = Random::new(4);
    let a = random.many(m * k, |r| r.f32(-1.0, 1.0));
    let b = random.many(k * n, |r| r.f32(-1.0, 1.0));
    // The kernel's sum is a chain of fused multiply-adds in the order of k, so the reference can be exact.
    let mut want = vec![0f32; m * n];
    for row in 0..m {
        for column in 0..n {
            want[row * n + column] =
                (0..k).fold(0.0, |sum, i| a[row * k + i].mul_add(b[i * n + column], sum));
        }
    }
    source!("matmul").each_variant(context, |module| {
        let (a, b, c) = (context.buffer(&a)?, context.buffer(&b)?, context.zeros::<f32>(m * n)?);
        let grid = (blocks(n, 16), blocks(m, 16));
        module.function("matmul")?.run(grid, (16, 16), args![&a, &b, &c, m as i32, n as i32, k as i32])?;
        compare::equal(&c.read()?, &want)
    })
}

fn histogram(context: &Context<'_>) -> Result<()> {
    const COUNT: usize = 50_000;
    // Skewed, so that many lanes of a warp hit the same bin.
    let input = Random::new(5).many(COUNT, |r| (r.below(256) * r.below(256) / 256) as u8);
    let mut want = [0u32; 256];
    input.iter().for_each(|&byte| want[usize::from(byte)] += 1);
    source!("histogram").each_variant(context, |module| {
        let (input, bins) = (context.buffer(&input)?, context.zeros::<u32>(256)?);
        module.function("histogram")?.run(12, 192, args![&input, &bins, COUNT as i32])?;
        compare::equal(&bins.read()?, &want)
    })
}

fn scan_by_block(context: &Context<'_>) -> Result<()> {
    scan(context, |module, tiles, arguments| module.function("scan_by_block")?.run(tiles, 128, arguments))
}

fn scan_by_ticket(context: &Context<'_>) -> Result<()> {
    scan(context, |module, tiles, arguments| {
        let ticket = context.zeros::<u32>(1)?;
        module.function("scan_by_ticket")?.run(tiles, 128, arguments.with(&&ticket))
    })
}

fn scan(
    context: &Context<'_>,
    run: impl Fn(&Module<'_>, u32, crate::module::Arguments) -> Result<()>,
) -> Result<()> {
    const COUNT: usize = 40_000;
    let input = Random::new(6).many(COUNT, |r| r.below(1000));
    let want: Vec<u32> = input
        .iter()
        .scan(0u32, |sum, &x| {
            *sum = sum.wrapping_add(x);
            Some(*sum)
        })
        .collect();
    source!("scan").each_variant(context, |module| {
        let tiles = blocks(COUNT, 128);
        let (input, output) = (context.buffer(&input)?, context.zeros::<u32>(COUNT)?);
        let state = context.zeros::<u64>(tiles as usize)?;
        run(module, tiles, args![&input, &output, &state, COUNT as i32])?;
        compare::equal(&output.read()?, &want)
    })
}

fn stencil(context: &Context<'_>) -> Result<()> {
    let (width, height) = (75usize, 41usize);
    // Multiples of 1/256 make every sum exact, whatever the order and however fused.
    let input = Random::new(7).many(width * height, |r| r.below(256) as f32 / 256.0);
    let at = |x: isize, y: isize| {
        let inside = x >= 0 && y >= 0 && (x as usize) < width && (y as usize) < height;
        if inside { input[y as usize * width + x as usize] } else { 0.0 }
    };
    let want: Vec<f32> = (0..width * height)
        .map(|i| {
            let (x, y) = ((i % width) as isize, (i / width) as isize);
            0.5 * at(x, y) + 0.125 * (at(x, y - 1) + at(x, y + 1) + at(x - 1, y) + at(x + 1, y))
        })
        .collect();
    source!("stencil").each_variant(context, |module| {
        let (input, output) = (context.buffer(&input)?, context.zeros::<f32>(width * height)?);
        let grid = (blocks(width, 32), blocks(height, 8));
        module.function("stencil")?.run(
            grid,
            (32, 8),
            args![&input, &output, width as i32, height as i32],
        )?;
        compare::equal(&output.read()?, &want)
    })
}

fn early_return(context: &Context<'_>) -> Result<()> {
    source!("early_return").each_variant(context, |module| {
        for alive in [1usize, 31, 33, 100, 128] {
            let output = context.zeros::<i32>(4 * alive)?;
            let bytes = 4 * alive as u32;
            module.function("early_return")?.run_shared(4, 128, bytes, args![&output, alive as i32])?;
            let want: Vec<i32> =
                (0..4 * alive).map(|i| ((alive - 1 - i % alive) * 3 + i / alive) as i32).collect();
            compare::equal(&output.read()?, &want)?;
        }
        Ok(())
    })
}

fn warps_leave(context: &Context<'_>) -> Result<()> {
    source!("early_return").each_variant(context, |module| {
        let output = context.zeros::<u32>(6)?;
        module.function("warps_leave")?.run(6, 192, args![&output, 10i32])?;
        // Three of six warps stay; each adds rounds times (block + 1).
        compare::equal(&output.read()?, &[30, 60, 90, 120, 150, 180])
    })
}

fn coordinates(context: &Context<'_>) -> Result<()> {
    let (grid, block) = ((3u32, 4u32, 5u32), (5u32, 3u32, 4u32));
    let threads = block.0 * block.1 * block.2;
    let total = grid.0 * grid.1 * grid.2 * threads;
    let want: Vec<u32> = (0..total)
        .flat_map(|i| {
            let (b, t) = (i / threads, i % threads);
            [
                t % block.0,
                t / block.0 % block.1,
                t / block.0 / block.1,
                b % grid.0,
                b / grid.0 % grid.1,
                b / grid.0 / grid.1,
                t % 32,
                30_405,
            ]
        })
        .collect();
    source!("grid3d").each_variant(context, |module| {
        let output = context.zeros::<u32>(total as usize * 8)?;
        module.function("coordinates")?.run(grid, block, args![&output])?;
        compare::equal(&output.read()?, &want)
    })
}

fn visits(context: &Context<'_>) -> Result<()> {
    source!("grid3d").each_variant(context, |module| {
        for grid in [(20_000u32, 1u32, 1u32), (7, 300, 5), (2, 3, 2000)] {
            let count = (grid.0 * grid.1 * grid.2) as usize;
            let output = context.zeros::<u32>(count)?;
            module.function("visit")?.run(grid, 32, args![&output])?;
            compare::equal(&output.read()?, &vec![1; count])?;
        }
        Ok(())
    })
}

fn dynamic_shared(context: &Context<'_>) -> Result<()> {
    reverse_in_shared(context, 48 * 1024)
}

fn dynamic_shared_opt_in(context: &Context<'_>) -> Result<()> {
    // 160 KiB is more than any device gives without being asked and less than every data-centre card has.
    reverse_in_shared(context, 160 * 1024)
}

fn reverse_in_shared(context: &Context<'_>, bytes: u32) -> Result<()> {
    let words = bytes as usize / 4;
    let input = Random::new(8).many(2 * words, Random::u32);
    let want: Vec<u32> = input.chunks(words).flat_map(|chunk| chunk.iter().rev().copied()).collect();
    source!("dynamic_shared").each_variant(context, |module| {
        let (input, output) = (context.buffer(&input)?, context.zeros::<u32>(2 * words)?);
        module.function("reverse")?.run_shared(2, 256, bytes, args![&input, &output, words as i32])?;
        compare::equal(&output.read()?, &want)
    })
}

fn both_kinds(context: &Context<'_>) -> Result<()> {
    const WORDS: u32 = 500;
    let mut want: Vec<u32> = (0..64).map(|i| 1000 + i + WORDS - 1).collect();
    want.extend([WORDS * 4, 1]);
    source!("dynamic_shared").each_variant(context, |module| {
        let output = context.zeros::<u32>(66)?;
        module.function("both_kinds")?.run_shared(1, 128, WORDS * 4, args![&output, WORDS as i32])?;
        compare::equal(&output.read()?, &want)
    })
}

fn recursion(context: &Context<'_>) -> Result<()> {
    let mut want = vec![0u32, 1];
    (2..16).for_each(|i| want.push(want[i - 1] + want[i - 2]));
    // Ackermann(2, n) = 2n + 3.
    want.extend((0..16).map(|n| 2 * n + 3));
    // The default of 1 KiB is soon used up; a program that recurses has to ask for more.
    context.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 64 * 1024).ok()?;
    source!("calls").each_variant(context, |module| {
        let output = context.zeros::<u32>(32)?;
        module.function("recursion")?.run(1, 32, args![&output])?;
        compare::equal(&output.read()?, &want)
    })
}

fn function_pointers(context: &Context<'_>) -> Result<()> {
    const COUNT: usize = 1000;
    let mut random = Random::new(9);
    let a = random.many(COUNT, Random::i32);
    let b = random.many(COUNT, Random::i32);
    let which = random.many(COUNT, |r| r.u32() as u8);
    let want: Vec<i32> = (0..COUNT)
        .map(|i| match which[i] % 4 {
            0 => a[i].wrapping_add(b[i]),
            1 => a[i].wrapping_sub(b[i]),
            2 => a[i].wrapping_mul(b[i]),
            _ => a[i].max(b[i]),
        })
        .collect();
    source!("calls").each_variant(context, |module| {
        let (a, b, which) = (context.buffer(&a)?, context.buffer(&b)?, context.buffer(&which)?);
        let output = context.zeros::<i32>(COUNT)?;
        let function = module.function("function_pointers")?;
        function.run(blocks(COUNT, 128), 128, args![&a, &b, &which, &output, COUNT as i32])?;
        compare::equal(&output.read()?, &want)
    })
}

fn virtual_functions(context: &Context<'_>) -> Result<()> {
    let want: Vec<f32> = (0..64)
        .map(|t| {
            let x = t as f32;
            if (t * 7 + 3) % 5 % 2 == 0 { 3.0 * (x + 1.0) * (x + 1.0) } else { (x + 2.0) * 3.0 + 400.0 }
        })
        .collect();
    source!("calls").each_variant(context, |module| {
        let output = context.zeros::<f32>(64)?;
        module.function("virtual_functions")?.run(1, 64, args![&output])?;
        compare::equal(&output.read()?, &want)
    })
}

fn jump_table(context: &Context<'_>) -> Result<()> {
    const COUNT: usize = 600;
    let input: Vec<i32> = Random::new(10).many(COUNT, |r| r.below(1_000_000) as i32);
    let want: Vec<i32> = input
        .iter()
        .map(|&x| match x % 12 {
            0 => x * 3,
            1 => x + 17,
            2 => x ^ 0x55,
            3 => x / 3,
            4 => -x,
            5 => x << 4,
            6 => x >> 2,
            7 => x.count_ones() as i32,
            8 => x.leading_zeros() as i32,
            9 => x.wrapping_mul(x),
            10 => x.reverse_bits(),
            _ => 1 - x,
        })
        .collect();
    source!("calls").each_variant(context, |module| {
        let (input, output) = (context.buffer(&input)?, context.zeros::<i32>(COUNT)?);
        module.function("jump_table")?.run(blocks(COUNT, 64), 64, args![&input, &output, COUNT as i32])?;
        compare::equal(&output.read()?, &want)
    })
}

fn half_ops(context: &Context<'_>) -> Result<()> {
    const COUNT: usize = 2000;
    let mut random = Random::new(11);
    let mut make = |r: &mut Random| f16::from_f32(r.f32(-60.0, 60.0));
    let a = random.many(COUNT, &mut make);
    let b = random.many(COUNT, &mut make);
    // f64 holds every product and sum of two f16 exactly, so one rounding at the end is the right rounding.
    let each = |op: &dyn Fn(f64, f64) -> f64| -> Vec<f16> {
        a.iter().zip(&b).map(|(a, b)| f16::from_f64(op(a.to_f64(), b.to_f64()))).collect()
    };
    let mut want = each(&|a, b| a + b);
    want.extend(each(&|a, b| a * b));
    want.extend(each(&|a, b| a - b));
    want.extend(each(&|a, b| a * b + a));
    want.extend(a.iter().zip(&b).map(|(a, b)| f16::from_f32(a.to_f32().mul_add(0.5, b.to_f32()))));
    want.extend(each(&|a, b| if a < b { -a } else { b.abs() }));
    want.extend(each(&f64::max));
    source!("half").each_variant(context, |module| {
        let (a, b) = (context.buffer(&a)?, context.buffer(&b)?);
        let output = context.zeros::<f16>(7 * COUNT)?;
        module.function("half_ops")?.run(blocks(COUNT, 128), 128, args![&a, &b, &output, COUNT as i32])?;
        compare::equal(&output.read()?, &want)
    })
}

fn half2_ops(context: &Context<'_>) -> Result<()> {
    const COUNT: usize = 1000;
    let mut random = Random::new(12);
    let mut make = |r: &mut Random| f16::from_f32(r.f32(-8.0, 8.0));
    let a = random.many(2 * COUNT, &mut make);
    let b = random.many(2 * COUNT, &mut make);
    let want: Vec<f16> = a
        .iter()
        .zip(&b)
        .map(|(a, b)| {
            let sum = f16::from_f64(a.to_f64() + b.to_f64());
            f16::from_f64(a.to_f64() * b.to_f64() + sum.to_f64())
        })
        .collect();
    source!("half").each_variant(context, |module| {
        let (a, b, output) = (context.buffer(&a)?, context.buffer(&b)?, context.zeros::<f16>(2 * COUNT)?);
        module.function("half2_ops")?.run(blocks(COUNT, 128), 128, args![&a, &b, &output, COUNT as i32])?;
        compare::equal(&output.read()?, &want)
    })
}

fn bfloat_ops(context: &Context<'_>) -> Result<()> {
    const COUNT: usize = 2000;
    let mut random = Random::new(13);
    let mut make = |r: &mut Random| bf16::from_f32(r.f32(-100.0, 100.0));
    let a = random.many(COUNT, &mut make);
    let b = random.many(COUNT, &mut make);
    let each = |op: &dyn Fn(f64, f64) -> f64| -> Vec<bf16> {
        a.iter().zip(&b).map(|(a, b)| bf16::from_f64(op(a.to_f64(), b.to_f64()))).collect()
    };
    let mut want = each(&|a, b| a + b);
    want.extend(each(&|a, b| a * b));
    want.extend(each(&|a, b| a * b + b));
    want.extend(each(&|a, b| f64::from((b as f32).mul_add(-2.0, a as f32))));
    want.extend(each(&f64::min));
    ensure!(want.len() == 5 * COUNT);
    source!("half").each_variant(context, |module| {
        let (a, b) = (context.buffer(&a)?, context.buffer(&b)?);
        let output = context.zeros::<bf16>(5 * COUNT)?;
        module.function("bfloat_ops")?.run(blocks(COUNT, 128), 128, args![&a, &b, &output, COUNT as i32])?;
        compare::equal(&output.read()?, &want)
    })
}

/// Blocks of `size` needed for `count` elements.
fn blocks(count: usize, size: usize) -> u32 {
    u32::try_from(count.div_ceil(size)).expect("the suite's grids are small")
}
