//! The life of contexts, and the ways into the driver.

#![allow(non_snake_case)]

use cuda_abi::{CUcontext, CUdevice};
use telemetry::Counter;

use crate::entry::{Raw, Seen};
use crate::{memory, tenancy};

super::count_calls! {
    ContextsCreated: cuGreenCtxCreate(A, B, C, D);
    ContextsDestroyed: cuGreenCtxDestroy(A);
    ExportTables: cuGetExportTable(A, B);
}

pub fn cuCtxDestroy(seen: &Seen, context: Raw<CUcontext>) {
    seen.count(Counter::ContextsDestroyed);
    memory::context_ended(context.value());
}

pub use self::cuCtxDestroy as cuCtxDestroy_v2;

/// As good as destroyed: nobody attaches to contexts since CUDA 4.
pub fn cuCtxDetach(_: &Seen, context: Raw<CUcontext>) {
    memory::context_ended(context.value());
}

pub fn cuDevicePrimaryCtxRelease(seen: &Seen, device: Raw<CUdevice>) {
    seen.count(Counter::PrimaryContextsReleased);
    memory::primary_released(device.value());
}

pub use self::cuDevicePrimaryCtxRelease as cuDevicePrimaryCtxRelease_v2;

pub fn cuDevicePrimaryCtxReset(_: &Seen, device: Raw<CUdevice>) {
    memory::primary_ended(device.value());
}

pub use self::cuDevicePrimaryCtxReset as cuDevicePrimaryCtxReset_v2;

pub fn cuDevicePrimaryCtxRetain(seen: &Seen, context: Raw<*mut CUcontext>, device: Raw<CUdevice>) {
    seen.count(Counter::PrimaryContextsRetained);
    if let Some(context) = context.written() {
        memory::primary_retained(device.value(), context);
    }
    tenancy::arrived(device.value());
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
