//! Streams and events.

#![allow(non_snake_case)]

use telemetry::Counter;

use crate::entry::Seen;

super::count_calls! {
    StreamsCreated: cuStreamCreate(A, B), cuStreamCreateWithPriority(A, B, C), cuGreenCtxStreamCreate(A, B, C, D);
    StreamsDestroyed: cuStreamDestroy(A), cuStreamDestroy_v2(A);
    StreamSynchronisations: cuStreamSynchronize(A);
    Queries: cuStreamQuery(A), cuEventQuery(A);
    EventsCreated: cuEventCreate(A, B);
    EventsDestroyed: cuEventDestroy(A), cuEventDestroy_v2(A);
    EventsRecorded: cuEventRecord(A, B), cuEventRecordWithFlags(A, B, C);
    EventSynchronisations: cuEventSynchronize(A);
    EventsAwaited: cuStreamWaitEvent(A, B, C);
    MemoryOperations:
        cuStreamWaitValue32(A, B, C, D), cuStreamWaitValue32_v2(A, B, C, D),
        cuStreamWaitValue64(A, B, C, D), cuStreamWaitValue64_v2(A, B, C, D),
        cuStreamWriteValue32(A, B, C, D), cuStreamWriteValue32_v2(A, B, C, D),
        cuStreamWriteValue64(A, B, C, D), cuStreamWriteValue64_v2(A, B, C, D),
        cuStreamBatchMemOp(A, B, C, D), cuStreamBatchMemOp_v2(A, B, C, D);
}
