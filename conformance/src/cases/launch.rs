//! Launches: geometry, parameters in both forms, attributes, occupancy.

use crate::answer::{Answer, Code};
use crate::cases::support::attribute;
use crate::context::Context;
use crate::driver::*;
use crate::module::{Dim3, Module};
use crate::numbers::Random;
use crate::stream::{NON_BLOCKING, Stream};
use crate::suite::Case;
use crate::{args, compare, source};
use anyhow::{Result, ensure};
use std::ffi::c_void;
use std::ptr;

pub const CASES: &[Case] = &[
    Case::new("launch/geometry_limits", geometry),
    Case::new("launch/launch_bounds_are_kept", bounds),
    Case::new("launch/shared_memory_limits", shared_limits),
    Case::new("launch/parameters_of_every_size", mixed_parameters),
    Case::new("launch/large_parameters", large_parameters),
    Case::new("launch/packed_parameters", packed_parameters),
    Case::new("launch/parameters_are_copied_at_the_call", parameters_copied),
    Case::new("launch/extended_with_attributes", extended),
    Case::new("launch/many_launches", many),
    Case::new("launch/occupancy", occupancy),
    Case::new("launch/cooperative_grid_barrier", cooperative),
    Case::new("launch/cooperative_too_large", cooperative_too_large),
];

/// A launch whose answer is to be judged.
fn attempt(context: &Context<'_>, function: CUfunction, grid: Dim3, block: Dim3, shared: u32) -> Answer {
    let place = 0u64;
    let mut parameters = [(&raw const place).cast_mut().cast::<c_void>(); 8];
    let list = parameters.as_mut_ptr();
    let (none, nothing) = (ptr::null_mut(), ptr::null_mut());
    context.cuLaunchKernel(
        function, grid.0, grid.1, grid.2, block.0, block.1, block.2, shared, none, list, nothing,
    )
}

fn geometry(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, source!("params").usual())?;
    let function = module.function("no_parameters")?.handle();
    let one = Dim3(1, 1, 1);
    for good in [Dim3(1024, 1, 1), Dim3(1, 1024, 1), Dim3(16, 1, 64), Dim3(32, 32, 1), one] {
        attempt(context, function, one, good, 0).ok()?;
    }
    for good in [Dim3(100_000, 1, 1), Dim3(1, 65_535, 1), Dim3(1, 1, 65_535)] {
        attempt(context, function, good, one, 0).ok()?;
    }
    context.synchronize()?;
    let bad_blocks = [
        Dim3(0, 1, 1),
        Dim3(1, 0, 1),
        Dim3(1, 1, 0),
        Dim3(1025, 1, 1),
        Dim3(1, 1, 65),
        Dim3(33, 32, 1),
        Dim3(u32::MAX, 1, 1),
        Dim3(65_536, 65_536, 1),
    ];
    for bad in bad_blocks {
        attempt(context, function, one, bad, 0).is(Code::INVALID_VALUE)?;
    }
    for bad in [Dim3(0, 1, 1), Dim3(1, 65_536, 1), Dim3(1, 1, 65_536), Dim3(1 << 31, 1, 1)] {
        attempt(context, function, bad, one, 0).is(Code::INVALID_VALUE)?;
    }
    // None of that sticks.
    attempt(context, function, one, one, 0).ok()?;
    context.synchronize()
}

fn bounds(context: &Context<'_>) -> Result<()> {
    source!("params").each_variant(context, |module| {
        let output = context.zeros::<u32>(256)?;
        let bounded = module.function("bounded")?;
        bounded.run(1, 128, args![&output])?;
        ensure!(output.read()?[127] == 127);
        let answer = attempt(context, bounded.handle(), Dim3(1, 1, 1), Dim3(129, 1, 1), 0);
        answer.is(Code::INVALID_VALUE)
    })
}

fn shared_limits(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, source!("params").usual())?;
    let function = module.function("no_parameters")?.handle();
    let opt_in = attribute(context, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    let one = Dim3(1, 1, 1);
    attempt(context, function, one, one, 48 * 1024).ok()?;
    attempt(context, function, one, one, 48 * 1024 + 1).is(Code::INVALID_VALUE)?;
    let which = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    context.cuFuncSetAttribute(function, which, opt_in).ok()?;
    attempt(context, function, one, one, opt_in as u32).ok()?;
    attempt(context, function, one, one, opt_in as u32 + 1).is(Code::INVALID_VALUE)?;
    context.cuFuncSetAttribute(function, which, opt_in + 1).is(Code::INVALID_VALUE)?;
    context.cuFuncSetAttribute(function, which, -5).is(Code::INVALID_VALUE)?;
    context.synchronize()
}

/// `struct Mixed` of `params.cu`, byte by byte.
fn mixed_struct() -> [u8; 40] {
    let mut bytes = [0u8; 40];
    bytes[0] = 7;
    bytes[8..16].copy_from_slice(&2.5f64.to_le_bytes());
    bytes[16..18].copy_from_slice(&(-300i16).to_le_bytes());
    for (i, value) in [0.5f32, 0.25, 0.125].iter().enumerate() {
        bytes[20 + 4 * i..24 + 4 * i].copy_from_slice(&value.to_le_bytes());
    }
    bytes[32..40].copy_from_slice(&(-1_000_000_000_000i64).to_le_bytes());
    bytes
}

const MIXED_SUM: f64 = 7.0 + 2.5 - 300.0 + 0.875 - 1_000_000_000_000.0;

fn mixed_parameters(context: &Context<'_>) -> Result<()> {
    source!("params").each_variant(context, |module| {
        let input = context.buffer(&[6.75f64])?;
        let output = context.zeros::<f64>(8)?;
        let arguments = args![
            -5i8,
            -1234i16,
            1_000_000i32,
            -(1i64 << 40),
            1.25f32,
            -2.5f64,
            mixed_struct(),
            &input,
            &output
        ];
        module.function("mixed")?.run(1, 1, arguments)?;
        let want = [-5.0, -1234.0, 1e6, -((1u64 << 40) as f64), 1.25, -2.5, MIXED_SUM, 6.75];
        compare::equal(&output.read()?, &want)
    })
}

fn large_parameters(context: &Context<'_>) -> Result<()> {
    let mut words = [0u32; 900];
    let mut random = Random::new(41);
    words.iter_mut().for_each(|word| *word = random.u32());
    let want: Vec<u32> = (0..256).map(|i| words[i * 7 % 900]).collect();
    source!("params").each_variant(context, |module| {
        let output = context.zeros::<u32>(256)?;
        module.function("large")?.run(1, 256, args![words, &output])?;
        compare::equal(&output.read()?, &want)
    })
}

fn packed_parameters(context: &Context<'_>) -> Result<()> {
    source!("vector_add").each_variant(context, |module| {
        let (a, b) = (context.buffer(&[1.0f32, 2.0, 3.0])?, context.buffer(&[10.0f32, 20.0, 30.0])?);
        let c = context.zeros::<f32>(3)?;
        let mut packed = Vec::new();
        for address in [a.address(), b.address(), c.address()] {
            packed.extend(address.to_le_bytes());
        }
        packed.extend(3i32.to_le_bytes());
        let mut size = packed.len();
        let mut extra: [*mut c_void; 5] = [
            CU_LAUNCH_PARAM_BUFFER_POINTER,
            packed.as_mut_ptr().cast(),
            CU_LAUNCH_PARAM_BUFFER_SIZE,
            (&raw mut size).cast(),
            CU_LAUNCH_PARAM_END,
        ];
        let function = module.function("vector_add")?.handle();
        let (none, list) = (ptr::null_mut(), ptr::null_mut());
        context.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, none, list, extra.as_mut_ptr()).ok()?;
        compare::equal(&c.read()?, &[11.0, 22.0, 33.0])?;
        // Both forms at once are refused.
        let mut pointers = [ptr::null_mut::<c_void>(); 4];
        let (both, none) = (pointers.as_mut_ptr(), ptr::null_mut());
        let answer = context.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, none, both, extra.as_mut_ptr());
        answer.is(Code::INVALID_VALUE)
    })
}

fn parameters_copied(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, source!("order").usual())?;
    let affine = module.function("affine")?.handle();
    let values = context.zeros::<u32>(4)?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    context.synchronize()?;
    let (mut address, mut factor, mut count) = (values.address(), 0u32, 4i32);
    let mut pointers: [*mut c_void; 3] =
        [(&raw mut address).cast(), (&raw mut factor).cast(), (&raw mut count).cast()];
    let mut want = [0u32; 4];
    for round in 1..50u32 {
        // SAFETY: `factor` is a local; it is written through the pointer that the driver also reads.
        unsafe { pointers[1].cast::<u32>().write(round) };
        let (list, none) = (pointers.as_mut_ptr(), ptr::null_mut());
        context.cuLaunchKernel(affine, 1, 1, 1, 32, 1, 1, 0, stream.handle(), list, none).ok()?;
        for (i, x) in want.iter_mut().enumerate() {
            *x = x.wrapping_mul(round).wrapping_add(i as u32);
        }
    }
    stream.synchronize()?;
    compare::equal(&values.read()?, &want)
}

fn extended(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, source!("vector_add").usual())?;
    let function = module.function("vector_add")?.handle();
    let (a, b, c) = (context.buffer(&[1.0f32])?, context.buffer(&[2.0f32])?, context.zeros::<f32>(1)?);
    let stream = Stream::new(context, 0)?;
    let mut priority = CUlaunchAttribute { id: CU_LAUNCH_ATTRIBUTE_PRIORITY, ..Default::default() };
    priority.value.priority = -1;
    let overlap = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    let mut overlap = CUlaunchAttribute { id: overlap, ..Default::default() };
    overlap.value.programmaticStreamSerializationAllowed = 1;
    let mut attributes = [priority, overlap];
    let mut config = CUlaunchConfig {
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 32,
        blockDimY: 1,
        blockDimZ: 1,
        hStream: stream.handle(),
        attrs: attributes.as_mut_ptr(),
        numAttrs: 1,
        ..Default::default()
    };
    let mut arguments = args![&a, &b, &c, 1i32];
    let mut pointers = arguments.pointers();
    let list = pointers.as_mut_ptr();
    context.cuLaunchKernelEx(&config, function, list, ptr::null_mut()).ok()?;
    compare::equal(&c.read()?, &[3.0])?;
    // These may begin while the one before them ends: each alone comes to the same.
    config.numAttrs = 2;
    c.write(&[0.0])?;
    for _ in 0..3 {
        context.cuLaunchKernelEx(&config, function, list, ptr::null_mut()).ok()?;
    }
    compare::equal(&c.read()?, &[3.0])?;
    config.numAttrs = 0;
    config.attrs = ptr::null_mut();
    context.cuLaunchKernelEx(&config, function, list, ptr::null_mut()).ok()?;
    config.blockDimX = 2000;
    context.cuLaunchKernelEx(&config, function, list, ptr::null_mut()).is(Code::INVALID_VALUE)?;
    context.cuLaunchKernelEx(ptr::null(), function, list, ptr::null_mut()).is(Code::INVALID_VALUE)?;
    context.synchronize()
}

fn many(context: &Context<'_>) -> Result<()> {
    // More launches than any queue holds.
    let module = Module::load(context, source!("order").usual())?;
    let affine = module.function("affine")?;
    let values = context.zeros::<u32>(32)?;
    for _ in 0..5000 {
        affine.launch(1, 32, 0, ptr::null_mut(), args![&values, 1u32, 32i32])?;
    }
    let want: Vec<u32> = (0..32).map(|i| i * 5000).collect();
    compare::equal(&values.read()?, &want)
}

fn occupancy(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, source!("params").usual())?;
    let function = module.function("no_parameters")?.handle();
    let per_sm = |threads: i32, shared: usize| -> Result<i32> {
        let mut blocks = 0;
        context.cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, function, threads, shared).ok()?;
        Ok(blocks)
    };
    let most = attribute(context, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?;
    let blocks = attribute(context, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?;
    ensure!(per_sm(1024, 0)? == most / 1024);
    ensure!(per_sm(512, 0)? == most / 512);
    ensure!(per_sm(32, 0)? == blocks.min(most / 32), "{} blocks of a warp", per_sm(32, 0)?);
    // 48 KiB each: as many as the SM's shared memory holds, less what the system keeps of each.
    let shared = attribute(context, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?;
    let reserved = attribute(context, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)?;
    ensure!(per_sm(32, 48 * 1024)? == shared / (48 * 1024 + reserved), "{}", per_sm(32, 48 * 1024)?);
    let opt_in = attribute(context, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    let which = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    context.cuFuncSetAttribute(function, which, opt_in).ok()?;
    ensure!(per_sm(32, opt_in as usize)? == 1);
    let (mut grid, mut block) = (0, 0);
    context.cuOccupancyMaxPotentialBlockSize(&mut grid, &mut block, function, None, 0, 0).ok()?;
    let sms = attribute(context, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    ensure!(block > 0 && block <= 1024 && block % 32 == 0, "a block of {block}");
    ensure!(grid == sms * per_sm(block, 0)?, "a grid of {grid} for {sms} SMs");
    let mut count = 0;
    let bad = context.cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut count, function, 0, 0);
    bad.is(Code::INVALID_VALUE)
}

fn cooperative(context: &Context<'_>) -> Result<()> {
    let (blocks, threads, rounds) = (8u32, 64u32, 9u32);
    let count = (blocks * threads) as usize;
    let mut want: Vec<u32> = (0..count as u32).collect();
    for _ in 0..rounds {
        want = (0..count).map(|i| want[(i + 37) % count] + 1).collect();
    }
    source!("cooperative").each_variant(context, |module| {
        let (a, b) = (context.zeros::<u32>(count)?, context.zeros::<u32>(count)?);
        let errors = context.zeros::<u32>(1)?;
        let function = module.function("rotate")?.handle();
        let mut arguments = args![&a, &b, rounds as i32, &errors];
        let mut pointers = arguments.pointers();
        let list = pointers.as_mut_ptr();
        for _ in 0..3 {
            context
                .cuLaunchCooperativeKernel(function, blocks, 1, 1, threads, 1, 1, 0, ptr::null_mut(), list)
                .ok()?;
            context.synchronize()?;
            ensure!(errors.read()?[0] == 0, "the grid says that it is not a valid group");
            compare::equal(&b.read()?, &want)?;
        }
        // The same by an attribute of the extended launch.
        let mut attribute = CUlaunchAttribute { id: CU_LAUNCH_ATTRIBUTE_COOPERATIVE, ..Default::default() };
        attribute.value.cooperative = 1;
        let config = CUlaunchConfig {
            gridDimX: blocks,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: threads,
            blockDimY: 1,
            blockDimZ: 1,
            attrs: &mut attribute,
            numAttrs: 1,
            ..Default::default()
        };
        context.cuLaunchKernelEx(&config, function, list, ptr::null_mut()).ok()?;
        compare::equal(&b.read()?, &want)
    })
}

fn cooperative_too_large(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, source!("cooperative").usual())?;
    let function = module.function("rotate")?.handle();
    let mut per_sm = 0;
    context.cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut per_sm, function, 1024, 0).ok()?;
    let sms = attribute(context, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    let most = (per_sm * sms) as u32;
    let (a, b) =
        (context.zeros::<u32>((most * 1024) as usize)?, context.zeros::<u32>((most * 1024) as usize)?);
    let errors = context.zeros::<u32>(1)?;
    let mut arguments = args![&a, &b, 1i32, &errors];
    let mut pointers = arguments.pointers();
    let list = pointers.as_mut_ptr();
    let none = ptr::null_mut();
    context
        .cuLaunchCooperativeKernel(function, most + 1, 1, 1, 1024, 1, 1, 0, none, list)
        .is(Code::COOPERATIVE_LAUNCH_TOO_LARGE)?;
    // It is the limit exactly.
    context.cuLaunchCooperativeKernel(function, most, 1, 1, 1024, 1, 1, 0, none, list).ok()?;
    context.synchronize()
}
