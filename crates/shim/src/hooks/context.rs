//! The life of contexts, and the ways into the driver.

#![allow(non_snake_case)]

use telemetry::Counter;

use crate::entry::Seen;

super::count_calls! {
    ContextsCreated:
        cuCtxCreate(A, B, C), cuCtxCreate_v2(A, B, C), cuCtxCreate_v3(A, B, C, D, E), cuCtxCreate_v4(A, B, C, D),
        cuGreenCtxCreate(A, B, C, D);
    ContextsDestroyed: cuCtxDestroy(A), cuCtxDestroy_v2(A), cuGreenCtxDestroy(A);
    PrimaryContextsRetained: cuDevicePrimaryCtxRetain(A, B);
    PrimaryContextsReleased: cuDevicePrimaryCtxRelease(A), cuDevicePrimaryCtxRelease_v2(A);
    ContextSynchronisations: cuCtxSynchronize(), cuCtxSynchronize_v2(A);
    ExportTables: cuGetExportTable(A, B);
}

/// Nothing to count: that the call is watched is what begins the ledger, so that a program which only looks for a
/// device is known to have been attached.
pub fn cuInit<A>(_: &Seen, _: A) {}
