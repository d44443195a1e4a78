//! Events: readiness, time between them, and waiting across streams.

use crate::answer::Code;
use crate::cases::support::{Gate, Log, ORDER};
use crate::context::Context;
use crate::driver::*;
use crate::module::Module;
use crate::stream::{DISABLE_TIMING, Event, NON_BLOCKING, Stream};
use crate::suite::Case;
use crate::{compare, source};
use anyhow::{Result, ensure};
use std::ptr;
use std::time::Duration;

pub const CASES: &[Case] = &[
    Case::new("event/query_and_synchronize", query),
    Case::new("event/never_recorded_is_complete", never_recorded),
    Case::new("event/elapsed_time", elapsed),
    Case::new("event/elapsed_time_refusals", elapsed_refusals),
    Case::new("event/wait_across_streams", wait_across),
    Case::new("event/wait_takes_the_record_of_that_moment", wait_moment),
    Case::new("event/destroy_before_it_happens", destroy_early),
    Case::new("event/clock64_and_globaltimer_advance", clocks),
];

fn query(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let gate = Gate::new(context, &module)?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    let event = Event::new(context, 0)?;
    gate.shut(stream.handle())?;
    event.record(stream.handle())?;
    context.cuEventQuery(event.handle()).is(Code::NOT_READY)?;
    gate.open();
    event.synchronize()?;
    context.cuEventQuery(event.handle()).ok()
}

fn never_recorded(context: &Context<'_>) -> Result<()> {
    let stream = Stream::new(context, NON_BLOCKING)?;
    let event = Event::new(context, DISABLE_TIMING)?;
    context.cuEventQuery(event.handle()).ok()?;
    event.synchronize()?;
    context.cuStreamWaitEvent(stream.handle(), event.handle(), 0).ok()?;
    stream.synchronize()
}

fn elapsed(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let log = Log::new(context, &module, 16)?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    let (start, end) = (Event::new(context, 0)?, Event::new(context, 0)?);
    start.record(stream.handle())?;
    log.slow_append(stream.handle(), 1, Duration::from_millis(20))?;
    end.record(stream.handle())?;
    end.synchronize()?;
    let milliseconds = start.until(&end)?;
    println!("note: a kernel of 20 ms took {milliseconds} ms");
    ensure!((19.5..2000.0).contains(&milliseconds), "a kernel of 20 ms took {milliseconds} ms");
    let back = end.until(&start)?;
    ensure!(back < 0.0, "backwards it took {back} ms");
    Ok(())
}

fn elapsed_refusals(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let gate = Gate::new(context, &module)?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    let (start, end) = (Event::new(context, 0)?, Event::new(context, 0)?);
    let untimed = Event::new(context, DISABLE_TIMING)?;
    let mut milliseconds = 0.0;
    // Neither has been recorded.
    context.cuEventElapsedTime(&mut milliseconds, start.handle(), end.handle()).is(Code::INVALID_HANDLE)?;
    start.record(stream.handle())?;
    untimed.record(stream.handle())?;
    stream.synchronize()?;
    context
        .cuEventElapsedTime(&mut milliseconds, start.handle(), untimed.handle())
        .is(Code::INVALID_HANDLE)?;
    gate.shut(stream.handle())?;
    end.record(stream.handle())?;
    context.cuEventElapsedTime(&mut milliseconds, start.handle(), end.handle()).is(Code::NOT_READY)?;
    gate.open();
    stream.synchronize()?;
    context.cuEventElapsedTime(&mut milliseconds, start.handle(), end.handle()).ok()?;
    context.cuEventElapsedTime(ptr::null_mut(), start.handle(), end.handle()).is(Code::INVALID_HANDLE)?;
    let mut event = ptr::null_mut();
    // Interprocess events cannot be timed.
    context.cuEventCreate(&mut event, CU_EVENT_INTERPROCESS.0).is(Code::INVALID_VALUE)?;
    context.cuEventCreate(&mut event, 0x80).is(Code::INVALID_VALUE)
}

fn wait_across(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let (gate, log) = (Gate::new(context, &module)?, Log::new(context, &module, 16)?);
    let (a, b, c) = (
        Stream::new(context, NON_BLOCKING)?,
        Stream::new(context, NON_BLOCKING)?,
        Stream::new(context, NON_BLOCKING)?,
    );
    let (first, second) = (Event::new(context, DISABLE_TIMING)?, Event::new(context, DISABLE_TIMING)?);
    gate.shut(a.handle())?;
    log.append(a.handle(), 1)?;
    first.record(a.handle())?;
    context.cuStreamWaitEvent(b.handle(), first.handle(), 0).ok()?;
    log.append(b.handle(), 2)?;
    second.record(b.handle())?;
    context.cuStreamWaitEvent(c.handle(), second.handle(), 0).ok()?;
    log.append(c.handle(), 3)?;
    context.cuStreamQuery(c.handle()).is(Code::NOT_READY)?;
    compare::equal(&log.read(context)?, &[])?;
    gate.open();
    c.synchronize()?;
    compare::equal(&log.read(context)?, &[1, 2, 3])
}

fn wait_moment(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let (gate, log) = (Gate::new(context, &module)?, Log::new(context, &module, 16)?);
    let (a, b) = (Stream::new(context, NON_BLOCKING)?, Stream::new(context, NON_BLOCKING)?);
    let event = Event::new(context, DISABLE_TIMING)?;
    event.record(a.handle())?;
    context.cuStreamWaitEvent(b.handle(), event.handle(), 0).ok()?;
    // Recording it again, behind a gate, must not hold back a wait that was already submitted.
    gate.shut(a.handle())?;
    event.record(a.handle())?;
    log.append(b.handle(), 1)?;
    b.synchronize()?;
    compare::equal(&log.read(context)?, &[1])?;
    context.cuEventQuery(event.handle()).is(Code::NOT_READY)?;
    gate.open();
    context.synchronize()
}

fn destroy_early(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let (gate, log) = (Gate::new(context, &module)?, Log::new(context, &module, 16)?);
    let (a, b) = (Stream::new(context, NON_BLOCKING)?, Stream::new(context, NON_BLOCKING)?);
    let event = Event::new(context, DISABLE_TIMING)?;
    gate.shut(a.handle())?;
    log.append(a.handle(), 1)?;
    event.record(a.handle())?;
    context.cuStreamWaitEvent(b.handle(), event.handle(), 0).ok()?;
    drop(event);
    log.append(b.handle(), 2)?;
    gate.open();
    context.synchronize()?;
    compare::equal(&log.read(context)?, &[1, 2])
}

fn clocks(context: &Context<'_>) -> Result<()> {
    source!("spin").each_variant(context, |module| {
        let ticks = context.zeros::<i64>(4)?;
        module.function("spin_clock")?.run(4, 64, crate::args![2_000_000i64, &ticks])?;
        let got = ticks.read()?;
        ensure!(got.iter().all(|&t| t >= 2_000_000), "clock64 spun for {got:?} of 2000000 ticks");
        for kernel in ["spin_timer", "sleep_timer"] {
            let times = context.zeros::<u64>(4)?;
            let before = std::time::Instant::now();
            module.function(kernel)?.run(4, 64, crate::args![3_000_000u64, &times])?;
            let passed = before.elapsed();
            let got = times.read()?;
            ensure!(got.iter().all(|&t| t >= 3_000_000), "{kernel} waited {got:?} of 3000000 ns");
            ensure!(passed >= Duration::from_micros(2900), "{kernel} of 3 ms took {passed:?} on the host");
        }
        Ok(())
    })
}
