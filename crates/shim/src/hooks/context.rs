//! The life of contexts, and the ways into the driver.

#![allow(non_snake_case)]

use cuda_abi::CUdevice;
use telemetry::Counter;

use crate::entry::{Raw, Seen};
use crate::tenancy;

super::count_calls! {
    ContextsCreated: cuGreenCtxCreate(A, B, C, D);
    ContextsDestroyed: cuCtxDestroy(A), cuCtxDestroy_v2(A), cuGreenCtxDestroy(A);
    PrimaryContextsReleased: cuDevicePrimaryCtxRelease(A), cuDevicePrimaryCtxRelease_v2(A);
    ExportTables: cuGetExportTable(A, B);
}

/// Functions whose last argument is the device on which there is a context now.
macro_rules! contexts {
    ($($counter:ident: $($name:ident($($before:ident),*)),+;)*) => {
        $($(pub fn $name<$($before),*>(seen: &Seen, $(_: $before,)* device: Raw<CUdevice>) {
            seen.count(Counter::$counter);
            tenancy::arrived(device.value());
        })+)*
    };
}
contexts! {
    ContextsCreated:
        cuCtxCreate(A, B), cuCtxCreate_v2(A, B), cuCtxCreate_v3(A, B, C, D), cuCtxCreate_v4(A, B, C);
    PrimaryContextsRetained: cuDevicePrimaryCtxRetain(A);
}

pub fn cuCtxSynchronize(seen: &Seen) {
    seen.count(Counter::ContextSynchronisations);
    tenancy::waited_for_all();
}

pub fn cuCtxSynchronize_v2<A>(seen: &Seen, _: A) {
    cuCtxSynchronize(seen);
}

/// Nothing to count: that the call is watched is what begins the ledger, so that a program which only looks for a
/// device is known to have been attached.
pub fn cuInit<A>(_: &Seen, _: A) {}
