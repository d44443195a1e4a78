//! Streams and events. What goes into a graph that is being captured has not been done and is not counted.

#![allow(non_snake_case)]

use std::ffi::c_uint;

use cuda_abi::{CUevent, CUstream};
use telemetry::Counter;

use crate::entry::{Raw, Seen};
use crate::tenancy;

super::count_calls! {
    StreamsCreated: cuStreamCreate(A, B), cuStreamCreateWithPriority(A, B, C), cuGreenCtxStreamCreate(A, B, C, D);
    StreamsDestroyed: cuStreamDestroy(A), cuStreamDestroy_v2(A);
    EventsCreated: cuEventCreate(A, B);
    EventsDestroyed: cuEventDestroy(A), cuEventDestroy_v2(A);
    EventsRecorded: cuCtxRecordEvent(A, B), cuGreenCtxRecordEvent(A, B);
    EventsAwaited: cuCtxWaitEvent(A, B), cuGreenCtxWaitEvent(A, B);
}

pub fn cuStreamSynchronize(seen: &Seen, stream: Raw<CUstream>) {
    seen.count(Counter::StreamSynchronisations);
    tenancy::waited(stream.value(), seen.per_thread());
}

pub fn cuStreamQuery(seen: &Seen, stream: Raw<CUstream>) {
    seen.count(Counter::Queries);
    if seen.ready() {
        tenancy::waited(stream.value(), seen.per_thread());
    }
}

pub fn cuEventSynchronize(seen: &Seen, event: Raw<CUevent>) {
    seen.count(Counter::EventSynchronisations);
    tenancy::happened(event.handle());
}

pub fn cuEventQuery(seen: &Seen, event: Raw<CUevent>) {
    seen.count(Counter::Queries);
    if seen.ready() {
        tenancy::happened(event.handle());
    }
}

/// What a stream was given to do, unless it is being captured.
fn given(seen: &Seen, counter: Counter, stream: Raw<CUstream>, times: u32) {
    if !seen.captured(stream.value()) {
        seen.add(counter, u64::from(times));
    }
}

pub fn cuEventRecord(seen: &Seen, event: Raw<CUevent>, stream: Raw<CUstream>) {
    if !seen.captured(stream.value()) {
        seen.count(Counter::EventsRecorded);
        tenancy::recorded(event.handle(), stream.value(), seen.per_thread());
    }
}

pub fn cuEventRecordWithFlags<A>(seen: &Seen, event: Raw<CUevent>, stream: Raw<CUstream>, _: A) {
    cuEventRecord(seen, event, stream);
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
