//! Memory: what is allocated, and by which means.

#![allow(non_snake_case)]

use std::ffi::c_uint;

use cuda_abi::{CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR, CUstream};
use telemetry::{AllocationKind, Counter};

use crate::entry::{Raw, Seen};
use crate::memory::shape;
use crate::tenancy::warm_up;

impl Seen {
    fn allocated(&self, kind: AllocationKind, bytes: usize) {
        if kind != AllocationKind::StreamOrdered {
            warm_up::note();
        }
        let (count, sum) = Counter::allocations(kind);
        self.count(count);
        self.add(sum, bytes as u64);
    }
}

/// Functions that take a number of bytes after so many other arguments.
macro_rules! allocations {
    ($($kind:ident: $($name:ident($($before:ident),*; $bytes:ty; $($after:ident),*)),+;)*) => {
        $($(pub fn $name<$($before,)* $($after),*>(
            seen: &Seen,
            $(_: $before,)*
            bytes: Raw<$bytes>,
            $(_: $after),*
        ) {
            seen.allocated(AllocationKind::$kind, bytes.value() as usize);
        })+)*
    };
}
allocations! {
    Device: cuMemAlloc(A; c_uint;), cuMemAlloc_v2(A; usize;);
    Managed: cuMemAllocManaged(A; usize; B);
    Host:
        cuMemAllocHost(A; c_uint;), cuMemAllocHost_v2(A; usize;), cuMemHostAlloc(A; usize; B),
        cuMemHostRegister(A; usize; B), cuMemHostRegister_v2(A; usize; B);
    Virtual: cuMemCreate(A; usize; B, C);
}

pub fn cuMemAllocAsync<A>(seen: &Seen, _: A, bytes: Raw<usize>, stream: Raw<CUstream>) {
    if !seen.captured(stream.value()) {
        seen.allocated(AllocationKind::StreamOrdered, bytes.value());
    }
}

pub fn cuMemAllocFromPoolAsync<A, B>(seen: &Seen, _: A, bytes: Raw<usize>, _: B, stream: Raw<CUstream>) {
    if !seen.captured(stream.value()) {
        seen.allocated(AllocationKind::StreamOrdered, bytes.value());
    }
}

/// What the driver chose for a row, times the rows.
pub fn cuMemAllocPitch_v2<A, B, C>(seen: &Seen, _: A, pitch: Raw<*mut usize>, _: B, rows: Raw<usize>, _: C) {
    let pitch = pitch.written().unwrap_or(0);
    seen.allocated(AllocationKind::Device, pitch.saturating_mul(rows.value()));
}

pub fn cuMemAllocPitch<A, B, C>(seen: &Seen, _: A, pitch: Raw<*mut c_uint>, _: B, rows: Raw<c_uint>, _: C) {
    let pitch = pitch.written().unwrap_or(0) as usize;
    seen.allocated(AllocationKind::Device, pitch.saturating_mul(rows.value() as usize));
}

pub fn cuArrayCreate_v2<A>(seen: &Seen, _: A, shape: Raw<*const CUDA_ARRAY_DESCRIPTOR>) {
    let Some(shape) = shape.read() else { return };
    seen.allocated(AllocationKind::Device, shape::array(&shape, 1) as usize);
}

pub fn cuArray3DCreate_v2<A>(seen: &Seen, _: A, shape: Raw<*const CUDA_ARRAY3D_DESCRIPTOR>) {
    let Some(shape) = shape.read() else { return };
    seen.allocated(AllocationKind::Device, shape::array(&shape, 1) as usize);
}

/// Memory that comes or goes by other means than an allocation.
macro_rules! count_memory {
    ($($counter:ident: $($name:ident($($argument:ident),*)),+;)*) => {
        $($(pub fn $name<$($argument),*>(seen: &Seen, $(_: $argument),*) {
            warm_up::note();
            seen.count(Counter::$counter);
        })+)*
    };
}
count_memory! {
    Frees:
        cuMemFree(A), cuMemFree_v2(A), cuMemFreeHost(A), cuMemHostUnregister(A), cuMemRelease(A), cuArrayDestroy(A);
    PoolsCreated: cuMemPoolCreate(A, B);
    AddressesReserved: cuMemAddressReserve(A, B, C, D, E);
    MemoryMapped: cuMemMap(A, B, C, D, E);
}

pub fn cuMemFreeAsync<A>(seen: &Seen, _: A, stream: Raw<CUstream>) {
    if !seen.captured(stream.value()) {
        seen.count(Counter::Frees);
    }
}
