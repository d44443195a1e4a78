//! Streams and events. What goes into a graph that is being captured has not been done and is not counted.

#![allow(non_snake_case)]

use std::ffi::c_uint;

use cuda_abi::CUstream;
use telemetry::Counter;

use crate::entry::{Raw, Seen};

super::count_calls! {
    StreamsCreated: cuStreamCreate(A, B), cuStreamCreateWithPriority(A, B, C), cuGreenCtxStreamCreate(A, B, C, D);
    StreamsDestroyed: cuStreamDestroy(A), cuStreamDestroy_v2(A);
    StreamSynchronisations: cuStreamSynchronize(A);
    Queries: cuStreamQuery(A), cuEventQuery(A);
    EventsCreated: cuEventCreate(A, B);
    EventsDestroyed: cuEventDestroy(A), cuEventDestroy_v2(A);
    EventsRecorded: cuCtxRecordEvent(A, B), cuGreenCtxRecordEvent(A, B);
    EventSynchronisations: cuEventSynchronize(A);
    EventsAwaited: cuCtxWaitEvent(A, B), cuGreenCtxWaitEvent(A, B);
}

/// What a stream was given to do, unless it is being captured.
fn given(seen: &Seen, counter: Counter, stream: Raw<CUstream>, times: u32) {
    if !seen.captured(stream.value()) {
        seen.add(counter, u64::from(times));
    }
}

pub fn cuEventRecord<A>(seen: &Seen, _: A, stream: Raw<CUstream>) {
    given(seen, Counter::EventsRecorded, stream, 1);
}

pub fn cuEventRecordWithFlags<A, B>(seen: &Seen, _: A, stream: Raw<CUstream>, _: B) {
    given(seen, Counter::EventsRecorded, stream, 1);
}

pub fn cuStreamWaitEvent<A, B>(seen: &Seen, stream: Raw<CUstream>, _: A, _: B) {
    given(seen, Counter::EventsAwaited, stream, 1);
}

macro_rules! memory_operations {
    ($($name:ident),*) => {
        $(pub fn $name<A, B, C>(seen: &Seen, stream: Raw<CUstream>, _: A, _: B, _: C) {
            given(seen, Counter::MemoryOperations, stream, 1);
        })*
    };
}
memory_operations! {
    cuStreamWaitValue32, cuStreamWaitValue32_v2, cuStreamWaitValue64, cuStreamWaitValue64_v2,
    cuStreamWriteValue32, cuStreamWriteValue32_v2, cuStreamWriteValue64, cuStreamWriteValue64_v2
}

pub fn cuStreamBatchMemOp<A, B>(seen: &Seen, stream: Raw<CUstream>, count: Raw<c_uint>, _: A, _: B) {
    given(seen, Counter::MemoryOperations, stream, count.value());
}

pub fn cuStreamBatchMemOp_v2<A, B>(seen: &Seen, stream: Raw<CUstream>, count: Raw<c_uint>, _: A, _: B) {
    given(seen, Counter::MemoryOperations, stream, count.value());
}
