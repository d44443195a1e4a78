//! Graphs recorded from streams, and recordings that must be refused.

use crate::answer::Code;
use crate::cases::graphs::instantiate;
use crate::cases::support::ORDER;
use crate::context::Context;
use crate::driver::*;
use crate::memory::{Buffer, Pinned};
use crate::module::Module;
use crate::stream::{DISABLE_TIMING, Event, NON_BLOCKING, Stream};
use crate::suite::Case;
use crate::{args, compare};
use anyhow::{Result, ensure};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// A recording in the global mode forbids every thread what might disturb it, so most want the process to themselves.
pub const CASES: &[Case] = &[
    Case::new("capture/replays_what_was_recorded", replay).quiet(),
    Case::new("capture/nothing_runs_while_recording", nothing_runs),
    Case::new("capture/fork_and_join_by_events", fork_join).quiet(),
    Case::new("capture/status_and_mode", status).quiet(),
    Case::new("capture/allocation_is_recorded", allocation).quiet(),
    Case::new("capture/synchronising_is_refused", synchronising).quiet(),
    Case::new("capture/unjoined_is_refused", unjoined).quiet(),
    Case::new("capture/events_of_a_recording_cannot_be_asked", captured_event).quiet(),
    Case::new("capture/legacy_stream_is_refused", legacy).quiet(),
    Case::new("capture/implicit_dependency_is_refused", implicit),
    Case::new("capture/merging_two_recordings_is_refused", merge).quiet(),
    Case::new("capture/outside_event_is_refused", isolation).quiet(),
    Case::new("capture/ending_elsewhere_is_refused", ending).quiet(),
    Case::new("capture/unsafe_call_is_refused", unsafe_call).quiet(),
    Case::new("capture/relaxed_mode_permits_unsafe_calls", relaxed),
];

const COUNT: usize = 64;

fn begin(context: &Context<'_>, stream: &Stream<'_>, mode: CUstreamCaptureMode) -> Result<()> {
    context.cuStreamBeginCapture_v2(stream.handle(), mode).ok()
}

/// Ends a recording that must have failed and gives the stream back to ordinary use.
fn end_spoiled(context: &Context<'_>, stream: &Stream<'_>, want: Code) -> Result<()> {
    let mut graph = ptr::null_mut();
    context.cuStreamEndCapture(stream.handle(), &mut graph).is(want)?;
    ensure!(graph.is_null(), "a failed recording gave a graph");
    stream.synchronize()
}

static CALLS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn count_call(_: *mut c_void) {
    CALLS.fetch_add(1, Ordering::SeqCst);
}

fn replay(context: &Context<'_>) -> Result<()> {
    ORDER.each_variant(context, |module| {
        let affine = module.function("affine")?;
        let (values, copy) = (context.zeros::<u32>(COUNT)?, context.zeros::<u32>(COUNT)?);
        let pinned = Pinned::<u32>::new(context, COUNT)?;
        let stream = Stream::new(context, NON_BLOCKING)?;
        context.synchronize()?;
        let on = stream.handle();
        let calls = CALLS.load(Ordering::SeqCst);
        begin(context, &stream, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
        context.cuMemsetD32Async(values.address(), 7, COUNT, on).ok()?;
        affine.launch(1, COUNT as u32, 0, on, args![&values, 2u32, COUNT as i32])?;
        context.cuMemcpyDtoDAsync_v2(copy.address(), values.address(), 4 * COUNT, on).ok()?;
        context.cuLaunchHostFunc(on, Some(count_call), ptr::null_mut()).ok()?;
        affine.launch(1, COUNT as u32, 0, on, args![&copy, 3u32, COUNT as i32])?;
        context.cuMemcpyDtoHAsync_v2(pinned.host().cast(), copy.address(), 4 * COUNT, on).ok()?;
        let mut graph = ptr::null_mut();
        context.cuStreamEndCapture(on, &mut graph).ok()?;
        ensure!(CALLS.load(Ordering::SeqCst) == calls, "a host function ran while recording");
        let mut count = 0;
        context.cuGraphGetNodes(graph, ptr::null_mut(), &mut count).ok()?;
        ensure!(count == 6, "{count} nodes of 6 operations");
        let exec = instantiate(context, graph)?;
        for _ in 0..2 {
            context.cuGraphLaunch(exec, on).ok()?;
        }
        stream.synchronize()?;
        ensure!(CALLS.load(Ordering::SeqCst) == calls + 2, "the host function did not run twice");
        let got: Vec<u32> = (0..COUNT).map(|i| pinned.get(i)).collect();
        let want: Vec<u32> = (0..COUNT as u32).map(|i| (14 + i) * 3 + i).collect();
        compare::equal(&got, &want)?;
        context.cuGraphExecDestroy(exec).ok()?;
        context.cuGraphDestroy(graph).ok()
    })
}

fn nothing_runs(context: &Context<'_>) -> Result<()> {
    let stream = Stream::new(context, NON_BLOCKING)?;
    let buffer = context.buffer(&[1u32; COUNT])?;
    begin(context, &stream, CU_STREAM_CAPTURE_MODE_RELAXED)?;
    context.cuMemsetD32Async(buffer.address(), 9, COUNT, stream.handle()).ok()?;
    compare::equal(&buffer.read()?, &[1; COUNT])?;
    let mut graph = ptr::null_mut();
    context.cuStreamEndCapture(stream.handle(), &mut graph).ok()?;
    compare::equal(&buffer.read()?, &[1; COUNT])?;
    context.cuGraphDestroy(graph).ok()
}

fn fork_join(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let affine = module.function("affine")?;
    let buffers: Vec<Buffer<'_, u32>> = (0..3).map(|_| context.zeros(COUNT)).collect::<Result<_>>()?;
    let main = Stream::new(context, NON_BLOCKING)?;
    let side = Stream::new(context, NON_BLOCKING)?;
    let (forked, joined) = (Event::new(context, DISABLE_TIMING)?, Event::new(context, DISABLE_TIMING)?);
    context.synchronize()?;
    begin(context, &main, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
    affine.launch(1, COUNT as u32, 0, main.handle(), args![&buffers[0], 1u32, COUNT as i32])?;
    forked.record(main.handle())?;
    context.cuStreamWaitEvent(side.handle(), forked.handle(), 0).ok()?;
    context
        .cuMemcpyDtoDAsync_v2(buffers[1].address(), buffers[0].address(), 4 * COUNT, side.handle())
        .ok()?;
    context
        .cuMemcpyDtoDAsync_v2(buffers[2].address(), buffers[0].address(), 4 * COUNT, main.handle())
        .ok()?;
    affine.launch(1, COUNT as u32, 0, side.handle(), args![&buffers[1], 2u32, COUNT as i32])?;
    joined.record(side.handle())?;
    context.cuStreamWaitEvent(main.handle(), joined.handle(), 0).ok()?;
    affine.launch(1, COUNT as u32, 0, main.handle(), args![&buffers[1], 3u32, COUNT as i32])?;
    let mut graph = ptr::null_mut();
    context.cuStreamEndCapture(main.handle(), &mut graph).ok()?;
    let exec = instantiate(context, graph)?;
    for round in 1..=3u32 {
        context.cuGraphLaunch(exec, main.handle()).ok()?;
        main.synchronize()?;
        let first: Vec<u32> = (0..COUNT as u32).map(|i| i * round).collect();
        let side: Vec<u32> = (0..COUNT as u32).map(|i| (i * round * 2 + i) * 3 + i).collect();
        compare::equal(&buffers[2].read()?, &first)?;
        compare::equal(&buffers[1].read()?, &side)?;
    }
    // The side stream is free again.
    context.cuStreamQuery(side.handle()).ok()?;
    context.cuGraphExecDestroy(exec).ok()?;
    context.cuGraphDestroy(graph).ok()
}

fn status(context: &Context<'_>) -> Result<()> {
    let stream = Stream::new(context, NON_BLOCKING)?;
    let mut status = CUstreamCaptureStatus_enum(9);
    context.cuStreamIsCapturing(stream.handle(), &mut status).ok()?;
    ensure!(status == CU_STREAM_CAPTURE_STATUS_NONE);
    begin(context, &stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
    context.cuStreamIsCapturing(stream.handle(), &mut status).ok()?;
    ensure!(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    let (mut id, mut graph) = (0, ptr::null_mut());
    let null = ptr::null_mut();
    context
        .cuStreamGetCaptureInfo_v2(stream.handle(), &mut status, &mut id, &mut graph, null, ptr::null_mut())
        .ok()?;
    ensure!(id != 0 && !graph.is_null(), "recording {id} into {graph:?}");
    // Beginning twice is refused and leaves the recording whole.
    let again = context.cuStreamBeginCapture_v2(stream.handle(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    again.is(Code::ILLEGAL_STATE)?;
    let mut mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    context.cuThreadExchangeStreamCaptureMode(&mut mode).ok()?;
    ensure!(mode == CU_STREAM_CAPTURE_MODE_GLOBAL, "the thread's mode was {mode:?}");
    context.cuThreadExchangeStreamCaptureMode(&mut mode).ok()?;
    let mut ended = ptr::null_mut();
    context.cuStreamEndCapture(stream.handle(), &mut ended).ok()?;
    ensure!(!ended.is_null(), "an empty recording is a graph");
    context.cuGraphDestroy(ended).ok()?;
    let bad = context.cuStreamBeginCapture_v2(stream.handle(), CUstreamCaptureMode_enum(7));
    bad.is(Code::INVALID_VALUE)
}

fn allocation(context: &Context<'_>) -> Result<()> {
    let stream = Stream::new(context, NON_BLOCKING)?;
    let result = context.zeros::<u32>(COUNT)?;
    context.synchronize()?;
    begin(context, &stream, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
    let mut address = 0;
    context.cuMemAllocAsync(&mut address, 4 * COUNT, stream.handle()).ok()?;
    context.cuMemsetD32Async(address, 0x55, COUNT, stream.handle()).ok()?;
    context.cuMemcpyDtoDAsync_v2(result.address(), address, 4 * COUNT, stream.handle()).ok()?;
    context.cuMemFreeAsync(address, stream.handle()).ok()?;
    let mut graph = ptr::null_mut();
    context.cuStreamEndCapture(stream.handle(), &mut graph).ok()?;
    let exec = instantiate(context, graph)?;
    for _ in 0..3 {
        context.cuGraphLaunch(exec, stream.handle()).ok()?;
    }
    stream.synchronize()?;
    compare::equal(&result.read()?, &[0x55; COUNT])?;
    context.cuGraphExecDestroy(exec).ok()?;
    context.cuGraphDestroy(graph).ok()
}

fn synchronising(context: &Context<'_>) -> Result<()> {
    let stream = Stream::new(context, NON_BLOCKING)?;
    begin(context, &stream, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
    context.cuStreamSynchronize(stream.handle()).is(Code::STREAM_CAPTURE_UNSUPPORTED)?;
    let mut status = CUstreamCaptureStatus_enum(9);
    context.cuStreamIsCapturing(stream.handle(), &mut status).ok()?;
    ensure!(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED, "status {status:?}");
    let event = Event::new(context, DISABLE_TIMING)?;
    context.cuEventRecord(event.handle(), stream.handle()).is(Code::STREAM_CAPTURE_INVALIDATED)?;
    end_spoiled(context, &stream, Code::STREAM_CAPTURE_INVALIDATED)?;
    begin(context, &stream, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
    context.cuStreamQuery(stream.handle()).is(Code::STREAM_CAPTURE_UNSUPPORTED)?;
    end_spoiled(context, &stream, Code::STREAM_CAPTURE_INVALIDATED)
}

fn unjoined(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let affine = module.function("affine")?;
    let values = context.zeros::<u32>(COUNT)?;
    let (main, side) = (Stream::new(context, NON_BLOCKING)?, Stream::new(context, NON_BLOCKING)?);
    let forked = Event::new(context, DISABLE_TIMING)?;
    context.synchronize()?;
    begin(context, &main, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
    forked.record(main.handle())?;
    context.cuStreamWaitEvent(side.handle(), forked.handle(), 0).ok()?;
    affine.launch(1, COUNT as u32, 0, side.handle(), args![&values, 2u32, COUNT as i32])?;
    end_spoiled(context, &main, Code::STREAM_CAPTURE_UNJOINED)?;
    side.synchronize()?;
    compare::equal(&values.read()?, &[0; COUNT])
}

fn captured_event(context: &Context<'_>) -> Result<()> {
    let stream = Stream::new(context, NON_BLOCKING)?;
    let event = Event::new(context, DISABLE_TIMING)?;
    // In the relaxed mode, because the others refuse such questions about any event.
    begin(context, &stream, CU_STREAM_CAPTURE_MODE_RELAXED)?;
    event.record(stream.handle())?;
    context.cuEventQuery(event.handle()).is(Code::CAPTURED_EVENT)?;
    end_spoiled(context, &stream, Code::STREAM_CAPTURE_INVALIDATED)?;
    begin(context, &stream, CU_STREAM_CAPTURE_MODE_RELAXED)?;
    event.record(stream.handle())?;
    context.cuEventSynchronize(event.handle()).is(Code::CAPTURED_EVENT)?;
    end_spoiled(context, &stream, Code::STREAM_CAPTURE_INVALIDATED)?;
    let outside = Event::new(context, DISABLE_TIMING)?;
    begin(context, &stream, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
    context.cuEventQuery(outside.handle()).is(Code::STREAM_CAPTURE_UNSUPPORTED)?;
    end_spoiled(context, &stream, Code::STREAM_CAPTURE_INVALIDATED)
}

fn legacy(context: &Context<'_>) -> Result<()> {
    let mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    context.cuStreamBeginCapture_v2(ptr::null_mut(), mode).is(Code::STREAM_CAPTURE_UNSUPPORTED)?;
    context.cuStreamBeginCapture_v2(CU_STREAM_LEGACY, mode).is(Code::STREAM_CAPTURE_UNSUPPORTED)?;
    // The thread's own default stream can be recorded.
    context.cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, mode).ok()?;
    let mut graph = ptr::null_mut();
    context.cuStreamEndCapture(CU_STREAM_PER_THREAD, &mut graph).ok()?;
    context.cuGraphDestroy(graph).ok()
}

fn implicit(context: &Context<'_>) -> Result<()> {
    let stream = Stream::new(context, 0)?;
    let buffer = context.zeros::<u32>(COUNT)?;
    context.synchronize()?;
    begin(context, &stream, CU_STREAM_CAPTURE_MODE_RELAXED)?;
    // The legacy default stream would have to wait for work that is only being recorded.
    let answer = context.cuMemsetD32Async(buffer.address(), 1, COUNT, ptr::null_mut());
    answer.is(Code::STREAM_CAPTURE_IMPLICIT)?;
    end_spoiled(context, &stream, Code::STREAM_CAPTURE_INVALIDATED)
}

fn merge(context: &Context<'_>) -> Result<()> {
    let (one, two) = (Stream::new(context, NON_BLOCKING)?, Stream::new(context, NON_BLOCKING)?);
    let event = Event::new(context, DISABLE_TIMING)?;
    begin(context, &one, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
    begin(context, &two, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
    event.record(one.handle())?;
    let answer = context.cuStreamWaitEvent(two.handle(), event.handle(), 0);
    answer.is(Code::STREAM_CAPTURE_MERGE)?;
    let mut graph = ptr::null_mut();
    for stream in [&one, &two] {
        let ended = context.cuStreamEndCapture(stream.handle(), &mut graph);
        ended.is(Code::STREAM_CAPTURE_INVALIDATED)?;
    }
    context.synchronize()
}

fn isolation(context: &Context<'_>) -> Result<()> {
    let (stream, outside) = (Stream::new(context, NON_BLOCKING)?, Stream::new(context, NON_BLOCKING)?);
    let event = Event::new(context, DISABLE_TIMING)?;
    event.record(outside.handle())?;
    begin(context, &stream, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
    let answer = context.cuStreamWaitEvent(stream.handle(), event.handle(), 0);
    answer.is(Code::STREAM_CAPTURE_ISOLATION)?;
    end_spoiled(context, &stream, Code::STREAM_CAPTURE_INVALIDATED)
}

fn ending(context: &Context<'_>) -> Result<()> {
    let mut graph = ptr::null_mut();
    let stream = Stream::new(context, NON_BLOCKING)?;
    context.cuStreamEndCapture(stream.handle(), &mut graph).is(Code::ILLEGAL_STATE)?;
    begin(context, &stream, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
    let elsewhere = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            context.enter()?;
            let mut graph = ptr::null_mut();
            context.cuStreamEndCapture(stream.handle(), &mut graph).is(Code::STREAM_CAPTURE_WRONG_THREAD)
        });
        other.join().expect("the other thread does not panic")
    });
    elsewhere?;
    // The wrong thread is refused, and the recording is over all the same.
    context.cuStreamEndCapture(stream.handle(), &mut graph).is(Code::ILLEGAL_STATE)?;
    // A stream that joined by an event is not the one to end it.
    let side = Stream::new(context, NON_BLOCKING)?;
    let event = Event::new(context, DISABLE_TIMING)?;
    begin(context, &stream, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
    event.record(stream.handle())?;
    context.cuStreamWaitEvent(side.handle(), event.handle(), 0).ok()?;
    context.cuStreamEndCapture(side.handle(), &mut graph).is(Code::STREAM_CAPTURE_UNMATCHED)?;
    context.cuStreamEndCapture(stream.handle(), &mut graph).is(Code::STREAM_CAPTURE_INVALIDATED)
}

fn unsafe_call(context: &Context<'_>) -> Result<()> {
    let stream = Stream::new(context, NON_BLOCKING)?;
    begin(context, &stream, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
    let mut address = 0;
    context.cuMemAlloc_v2(&mut address, 64).is(Code::STREAM_CAPTURE_UNSUPPORTED)?;
    end_spoiled(context, &stream, Code::STREAM_CAPTURE_INVALIDATED)?;
    begin(context, &stream, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
    context.cuCtxSynchronize().is(Code::STREAM_CAPTURE_UNSUPPORTED)?;
    end_spoiled(context, &stream, Code::STREAM_CAPTURE_INVALIDATED)
}

fn relaxed(context: &Context<'_>) -> Result<()> {
    let stream = Stream::new(context, NON_BLOCKING)?;
    begin(context, &stream, CU_STREAM_CAPTURE_MODE_RELAXED)?;
    let mut address = 0;
    context.cuMemAlloc_v2(&mut address, 64).ok()?;
    context.cuMemFree_v2(address).ok()?;
    let mut graph = ptr::null_mut();
    context.cuStreamEndCapture(stream.handle(), &mut graph).ok()?;
    context.cuGraphDestroy(graph).ok()
}
