//! Streams, events, waiting, and contexts.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use conformance::answer::Code;
use conformance::driver::*;
use conformance::stream::{DISABLE_TIMING, NON_BLOCKING};
use telemetry::Counter::*;

use crate::Section;
use crate::program::Program;

pub const SECTIONS: &[Section] = &[
    Section::new("streams/and_events", streams),
    Section::new("streams/queries_of_work_under_way", queries),
    Section::new("streams/memory_operations", memory_operations),
    Section::new("streams/contexts", contexts),
];

fn streams(program: &Program<'_>) -> Result<()> {
    program.in_context(|cuda| {
        let mut streams = [ptr::null_mut(); 3];
        cuda.cuStreamCreate(&mut streams[0], 0).ok()?;
        cuda.cuStreamCreate(&mut streams[1], NON_BLOCKING).ok()?;
        cuda.cuStreamCreateWithPriority(&mut streams[2], NON_BLOCKING, 0).ok()?;
        program.did(StreamsCreated, 3);
        cuda.cuStreamCreate(ptr::null_mut(), 0).is(Code::INVALID_VALUE)?;
        let mut events = [ptr::null_mut(); 2];
        for event in &mut events {
            cuda.cuEventCreate(event, DISABLE_TIMING).ok()?;
            program.did(EventsCreated, 1);
        }
        cuda.cuEventRecord(events[0], streams[0]).ok()?;
        cuda.cuEventRecord_ptsz(events[1], ptr::null_mut()).ok()?;
        cuda.cuEventRecordWithFlags(events[1], streams[1], 0).ok()?;
        cuda.cuCtxRecordEvent(cuda.handle(), events[0]).ok()?;
        program.did(EventsRecorded, 4);
        cuda.cuEventRecord(ptr::null_mut(), streams[0]).is(Code::INVALID_HANDLE)?;
        cuda.cuStreamWaitEvent(streams[2], events[0], 0).ok()?;
        cuda.cuStreamWaitEvent(ptr::null_mut(), events[1], 0).ok()?;
        cuda.cuCtxWaitEvent(cuda.handle(), events[1]).ok()?;
        program.did(EventsAwaited, 3);
        for event in events {
            cuda.cuEventSynchronize(event).ok()?;
            program.did(EventSynchronisations, 1);
        }
        for stream in streams {
            cuda.cuStreamSynchronize(stream).ok()?;
            cuda.cuStreamSynchronize_ptsz(stream).ok()?;
            program.did(StreamSynchronisations, 2);
        }
        cuda.cuStreamSynchronize_ptsz(ptr::null_mut()).ok()?;
        program.did(StreamSynchronisations, 1);
        cuda.cuCtxSynchronize().ok()?;
        cuda.cuCtxSynchronize_v2(cuda.handle()).ok()?;
        program.did(ContextSynchronisations, 2);
        for event in events {
            cuda.cuEventDestroy_v2(event).ok()?;
            program.did(EventsDestroyed, 1);
        }
        for stream in streams {
            cuda.cuStreamDestroy_v2(stream).ok()?;
            program.did(StreamsDestroyed, 1);
        }
        Ok(())
    })
}

static OPEN: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn gate(_: *mut c_void) {
    while !OPEN.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A question that is answered with "not ready" has been asked all the same.
fn queries(program: &Program<'_>) -> Result<()> {
    program.in_context(|cuda| {
        let (mut stream, mut event) = (ptr::null_mut(), ptr::null_mut());
        cuda.cuStreamCreate(&mut stream, NON_BLOCKING).ok()?;
        program.did(StreamsCreated, 1);
        cuda.cuEventCreate(&mut event, DISABLE_TIMING).ok()?;
        program.did(EventsCreated, 1);
        cuda.cuStreamQuery(stream).ok()?;
        cuda.cuEventQuery(event).ok()?;
        program.did(Queries, 2);
        cuda.cuLaunchHostFunc(stream, Some(gate), ptr::null_mut()).ok()?;
        program.did(HostFunctionOnCreated, 1);
        cuda.cuEventRecord(event, stream).ok()?;
        program.did(EventsRecorded, 1);
        for _ in 0..5 {
            cuda.cuStreamQuery(stream).is(Code::NOT_READY)?;
            cuda.cuEventQuery(event).is(Code::NOT_READY)?;
            program.did(Queries, 2);
        }
        OPEN.store(true, Ordering::Release);
        cuda.cuStreamSynchronize(stream).ok()?;
        program.did(StreamSynchronisations, 1);
        cuda.cuStreamQuery_ptsz(stream).ok()?;
        program.did(Queries, 1);
        cuda.cuEventQuery(ptr::null_mut()).is(Code::INVALID_HANDLE)?;
        cuda.cuEventDestroy_v2(event).ok()?;
        program.did(EventsDestroyed, 1);
        cuda.cuStreamDestroy_v2(stream).ok()?;
        program.did(StreamsDestroyed, 1);
        Ok(())
    })
}

/// A batch is as many operations as it holds.
fn memory_operations(program: &Program<'_>) -> Result<()> {
    program.in_context(|cuda| {
        let (mut cells, zero) = (0, ptr::null_mut());
        cuda.cuMemAlloc_v2(&mut cells, 64).ok()?;
        program.did(AllocationsDevice, 1);
        program.did(AllocatedDevice, 64);
        let at_least = CU_STREAM_WAIT_VALUE_GEQ.0;
        cuda.cuStreamWriteValue32_v2(zero, cells, 5, 0).ok()?;
        cuda.cuStreamWaitValue32_v2(zero, cells, 5, at_least).ok()?;
        cuda.cuStreamWriteValue64_v2(zero, cells + 8, 6, 0).ok()?;
        cuda.cuStreamWaitValue64_v2(zero, cells + 8, 6, at_least).ok()?;
        program.did(MemoryOperations, 4);
        let mut batch = [CUstreamBatchMemOpParams::default(); 3];
        for operation in &mut batch {
            operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
            operation.writeValue.address = cells;
        }
        cuda.cuStreamBatchMemOp_v2(zero, 3, batch.as_mut_ptr(), 0).ok()?;
        program.did(MemoryOperations, 3);
        cuda.cuStreamWriteValue32_v2(zero, cells + 1, 5, 0).is(Code::INVALID_VALUE)?;
        cuda.cuCtxSynchronize().ok()?;
        program.did(ContextSynchronisations, 1);
        cuda.cuMemFree_v2(cells).ok()?;
        program.did(Frees, 1);
        Ok(())
    })
}

fn contexts(program: &Program<'_>) -> Result<()> {
    program.in_context(|cuda| {
        let device = cuda.device();
        let mut made = [ptr::null_mut(); 3];
        cuda.cuCtxCreate_v2(&mut made[0], 0, device).ok()?;
        cuda.cuCtxCreate_v3(&mut made[1], ptr::null_mut(), 0, 0, device).ok()?;
        cuda.cuCtxCreate_v4(&mut made[2], ptr::null_mut(), 0, device).ok()?;
        program.did(ContextsCreated, 3);
        cuda.cuCtxCreate_v2(ptr::null_mut(), 0, device).is(Code::INVALID_VALUE)?;
        for context in made {
            cuda.cuCtxDestroy_v2(context).ok()?;
            program.did(ContextsDestroyed, 1);
        }
        let mut primary = ptr::null_mut();
        for _ in 0..3 {
            cuda.cuDevicePrimaryCtxRetain(&mut primary, device).ok()?;
            program.did(PrimaryContextsRetained, 1);
        }
        for _ in 0..3 {
            cuda.cuDevicePrimaryCtxRelease_v2(device).ok()?;
            program.did(PrimaryContextsReleased, 1);
        }
        let mut address = ptr::null_mut();
        let mut found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        for _ in 0..2 {
            cuda.cuGetProcAddress_v2(c"cuMemAlloc".as_ptr(), &mut address, 12000, 0, &mut found).ok()?;
            program.did(FunctionsAsked, 1);
        }
        Ok(())
    })
}
