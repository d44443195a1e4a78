//! Values written and awaited by streams themselves, without a kernel.

use crate::answer::Code;
use crate::cases::support::{Log, ORDER, eventually};
use crate::context::Context;
use crate::driver::*;
use crate::memory::Pinned;
use crate::module::Module;
use crate::stream::{NON_BLOCKING, Stream};
use crate::suite::Case;
use crate::{args, compare};
use anyhow::{Result, ensure};
use std::time::Duration;

pub const CASES: &[Case] = &[
    Case::new("memop/write_value", write_value),
    Case::new("memop/wait_value_conditions", conditions),
    Case::new("memop/wait_is_released_by_the_host", by_host),
    Case::new("memop/wait_is_released_by_a_kernel", by_kernel),
    Case::new("memop/streams_hand_over_to_each_other", ping_pong),
    Case::new("memop/batch", batch),
    Case::new("memop/refusals", refusals),
];

const GEQ: u32 = CU_STREAM_WAIT_VALUE_GEQ.0;
const EQ: u32 = CU_STREAM_WAIT_VALUE_EQ.0;
const AND: u32 = CU_STREAM_WAIT_VALUE_AND.0;
const NOR: u32 = CU_STREAM_WAIT_VALUE_NOR.0;

fn write_value(context: &Context<'_>) -> Result<()> {
    let buffer = context.zeros::<u32>(6)?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    context.synchronize()?;
    let (at, on) = (buffer.address(), stream.handle());
    context.cuStreamWriteValue32_v2(on, at, 0x1234_5678, 0).ok()?;
    context.cuStreamWriteValue64_v2(on, at + 8, 0x1111_2222_3333_4444, 0).ok()?;
    context.cuStreamWriteValue32_v2(on, at + 16, 7, 0).ok()?;
    stream.synchronize()?;
    compare::equal(&buffer.read()?, &[0x1234_5678, 0, 0x3333_4444, 0x1111_2222, 7, 0])
}

fn conditions(context: &Context<'_>) -> Result<()> {
    let cell = Pinned::<u32>::new(context, 2)?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    // (condition, value awaited, what does not fulfil it, what does)
    let table: &[(u32, u32, u32, u32)] = &[
        (GEQ, 10, 9, 10),
        (GEQ, 10, 9, 500),
        // The comparison is by signed difference, so counters may wrap.
        (GEQ, 5, 0xffff_fff0, 5),
        (GEQ, 0xffff_fff0, 0xffff_ffef, 3),
        (EQ, 10, 11, 10),
        (AND, 0b1100, 0b0011, 0b0100),
        (NOR, 0xffff_fff0, 0x0000_000f, 0x0000_0007),
    ];
    for &(condition, value, no, yes) in table {
        cell.set(0, no);
        context.cuStreamWaitValue32_v2(stream.handle(), cell.address(), value, condition).ok()?;
        std::thread::sleep(Duration::from_millis(3));
        let early = context.cuStreamQuery(stream.handle());
        cell.set(0, yes);
        early.is(Code::NOT_READY)?;
        stream.synchronize()?;
    }
    let wide = Pinned::<u64>::new(context, 1)?;
    wide.set(0, 1 << 40);
    context.cuStreamWaitValue64_v2(stream.handle(), wide.address(), (1 << 40) + 1, GEQ).ok()?;
    std::thread::sleep(Duration::from_millis(3));
    let early = context.cuStreamQuery(stream.handle());
    wide.set(0, (1 << 40) + 1);
    early.is(Code::NOT_READY)?;
    stream.synchronize()
}

fn by_host(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let log = Log::new(context, &module, 16)?;
    let cell = Pinned::<u32>::new(context, 1)?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    log.append(stream.handle(), 1)?;
    context.cuStreamWaitValue32_v2(stream.handle(), cell.address(), 1, EQ).ok()?;
    log.append(stream.handle(), 2)?;
    let before = eventually("what lies before the wait", || Ok(!log.read(context)?.is_empty()));
    std::thread::sleep(Duration::from_millis(10));
    let early = log.read(context);
    cell.set(0, 1);
    before?;
    compare::equal(&early?, &[1])?;
    stream.synchronize()?;
    compare::equal(&log.read(context)?, &[1, 2])
}

fn by_kernel(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let log = Log::new(context, &module, 16)?;
    let set = module.function("set_flag")?;
    let flag = context.zeros::<u32>(1)?;
    let (a, b) = (Stream::new(context, NON_BLOCKING)?, Stream::new(context, NON_BLOCKING)?);
    context.synchronize()?;
    context.cuStreamWaitValue32_v2(a.handle(), flag.address(), 77, EQ).ok()?;
    log.append(a.handle(), 2)?;
    log.append(b.handle(), 1)?;
    set.launch(1, 1, 0, b.handle(), args![&flag, 77u32])?;
    a.synchronize()?;
    compare::equal(&log.read(context)?, &[1, 2])
}

fn ping_pong(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let log = Log::new(context, &module, 64)?;
    let turn = context.zeros::<u32>(1)?;
    let streams = [Stream::new(context, NON_BLOCKING)?, Stream::new(context, NON_BLOCKING)?];
    context.synchronize()?;
    for round in 0..20u32 {
        let on = streams[round as usize % 2].handle();
        context.cuStreamWaitValue32_v2(on, turn.address(), round, GEQ).ok()?;
        log.append(on, round)?;
        context.cuStreamWriteValue32_v2(on, turn.address(), round + 1, 0).ok()?;
    }
    context.synchronize()?;
    let want: Vec<u32> = (0..20).collect();
    compare::equal(&log.read(context)?, &want)
}

fn batch(context: &Context<'_>) -> Result<()> {
    let buffer = context.zeros::<u32>(4)?;
    let cell = Pinned::<u32>::new(context, 1)?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    context.synchronize()?;
    let write = |address: u64, value: u32| {
        let mut operation = CUstreamBatchMemOpParams::default();
        operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        operation.writeValue.address = address;
        operation.writeValue.__bindgen_anon_1.value = value;
        operation
    };
    let mut wait = CUstreamBatchMemOpParams::default();
    wait.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    wait.waitValue.address = cell.address();
    wait.waitValue.__bindgen_anon_1.value = 3;
    wait.waitValue.flags = GEQ;
    let mut operations = [write(buffer.address(), 1), wait, write(buffer.address() + 4, 2)];
    context.cuStreamBatchMemOp_v2(stream.handle(), 3, operations.as_mut_ptr(), 0).ok()?;
    std::thread::sleep(Duration::from_millis(5));
    let early = context.cuStreamQuery(stream.handle());
    cell.set(0, 3);
    early.is(Code::NOT_READY)?;
    stream.synchronize()?;
    compare::equal(&buffer.read()?, &[1, 2, 0, 0])
}

fn refusals(context: &Context<'_>) -> Result<()> {
    let buffer = context.zeros::<u32>(4)?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    let (at, on) = (buffer.address(), stream.handle());
    // Addresses are to be aligned, conditions known, and pointers the device's.
    context.cuStreamWriteValue32_v2(on, at + 1, 1, 0).is(Code::INVALID_VALUE)?;
    context.cuStreamWriteValue64_v2(on, at + 4, 1, 0).is(Code::INVALID_VALUE)?;
    context.cuStreamWaitValue32_v2(on, at + 2, 1, GEQ).is(Code::INVALID_VALUE)?;
    context.cuStreamWriteValue32_v2(on, at, 1, 0x80).is(Code::INVALID_VALUE)?;
    context.cuStreamWaitValue32_v2(on, at, 1, 0x80).is(Code::INVALID_VALUE)?;
    // A flag of the header that this version of the call has no use for.
    let no_barrier = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER.0;
    context.cuStreamWriteValue32_v2(on, at, 1, no_barrier).is(Code::INVALID_VALUE)?;
    context.cuStreamWriteValue32_v2(on, 0, 1, 0).is(Code::INVALID_VALUE)?;
    let mut operation = CUstreamBatchMemOpParams::default();
    operation.operation = CUstreamBatchMemOpType_enum(99);
    context.cuStreamBatchMemOp_v2(on, 1, &mut operation, 0).is(Code::INVALID_VALUE)?;
    ensure!(buffer.read()? == [0; 4], "a refused operation wrote");
    stream.synchronize()
}
