//! Copies: which way, and how much.

#![allow(non_snake_case, clippy::too_many_arguments)]

use std::ffi::c_uint;
use std::ptr;

use cuda_abi::{
    CU_MEMCPY_OPERAND_TYPE_POINTER, CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_UNIFIED, CUDA_MEMCPY2D,
    CUDA_MEMCPY2D_v1, CUDA_MEMCPY3D, CUDA_MEMCPY3D_BATCH_OP, CUDA_MEMCPY3D_PEER, CUDA_MEMCPY3D_v1,
    CUmemorytype, CUstream,
};
use telemetry::{CopyKind, Counter};

use crate::entry::{Raw, Seen};
use crate::tenancy;

impl Seen {
    /// A copy in a stream, or one that the call itself waited for.
    fn copied_in(&self, stream: Option<CUstream>, kind: CopyKind, bytes: usize) {
        match stream {
            Some(stream) if self.captured(stream) => return,
            Some(stream) => self.handed_over(stream),
            None => self.copied_at_once(kind),
        }
        self.copied(kind, bytes);
    }

    /// It came behind what the default stream was given before, and that is done; but a copy to the device may still be on
    /// its way.
    fn copied_at_once(&self, kind: CopyKind) {
        self.handed_over(ptr::null_mut());
        if kind == CopyKind::HostToDevice {
            tenancy::all_but_done(ptr::null_mut(), self.per_thread());
        } else {
            tenancy::waited(ptr::null_mut(), self.per_thread());
        }
    }

    fn copied(&self, kind: CopyKind, bytes: usize) {
        let (count, sum) = Counter::copies(kind);
        self.count(count);
        self.add(sum, bytes as u64);
    }
}

/// Functions that take a number of bytes after so many other arguments, and then perhaps a stream.
macro_rules! copies {
    ($($kind:ident: $($name:ident($($before:ident),*; $bytes:ty $(; $stream:ty)?)),+;)*) => {
        $($(pub fn $name<$($before),*>(
            seen: &Seen,
            $(_: $before,)*
            bytes: Raw<$bytes>,
            $(stream: Raw<$stream>,)?
        ) {
            seen.copied_in(stream_of!($(stream: $stream)?), CopyKind::$kind, bytes.value() as usize);
        })+)*
    };
}
copies! {
    HostToDevice:
        cuMemcpyHtoD(A, B; c_uint), cuMemcpyHtoD_v2(A, B; usize),
        cuMemcpyHtoDAsync(A, B; c_uint; CUstream), cuMemcpyHtoDAsync_v2(A, B; usize; CUstream),
        cuMemcpyHtoA_v2(A, B, C; usize), cuMemcpyHtoAAsync_v2(A, B, C; usize; CUstream);
    DeviceToHost:
        cuMemcpyDtoH(A, B; c_uint), cuMemcpyDtoH_v2(A, B; usize),
        cuMemcpyDtoHAsync(A, B; c_uint; CUstream), cuMemcpyDtoHAsync_v2(A, B; usize; CUstream),
        cuMemcpyAtoH_v2(A, B, C; usize), cuMemcpyAtoHAsync_v2(A, B, C; usize; CUstream);
    DeviceToDevice:
        cuMemcpyDtoD(A, B; c_uint), cuMemcpyDtoD_v2(A, B; usize),
        cuMemcpyDtoDAsync(A, B; c_uint; CUstream), cuMemcpyDtoDAsync_v2(A, B; usize; CUstream),
        cuMemcpyDtoA_v2(A, B, C; usize), cuMemcpyAtoD_v2(A, B, C; usize), cuMemcpyAtoA_v2(A, B, C, D; usize),
        cuMemcpyPeer(A, B, C, D; usize), cuMemcpyPeerAsync(A, B, C, D; usize; CUstream);
    Other: cuMemcpy(A, B; usize), cuMemcpyAsync(A, B; usize; CUstream);
}

pub fn cuMemcpyWithAttributesAsync<A, B, C>(
    seen: &Seen,
    _: A,
    _: B,
    bytes: Raw<usize>,
    _: C,
    stream: Raw<CUstream>,
) {
    seen.copied_in(Some(stream.value()), CopyKind::Other, bytes.value());
}

pub fn cuMemcpyBatchAsync<A, B, C, D, E, F>(
    seen: &Seen,
    _: A,
    _: B,
    sizes: Raw<*mut usize>,
    count: Raw<usize>,
    _: C,
    _: D,
    _: E,
    _: F,
    stream: Raw<CUstream>,
) {
    batch(seen, sizes, count, stream);
}

pub fn cuMemcpyBatchAsync_v2<A, B, C, D, E>(
    seen: &Seen,
    _: A,
    _: B,
    sizes: Raw<*mut usize>,
    count: Raw<usize>,
    _: C,
    _: D,
    _: E,
    stream: Raw<CUstream>,
) {
    batch(seen, sizes, count, stream);
}

fn batch(seen: &Seen, sizes: Raw<*mut usize>, count: Raw<usize>, stream: Raw<CUstream>) {
    if !seen.captured(stream.value()) {
        seen.handed_over(stream.value());
        let count = u32::try_from(count.value()).unwrap_or(u32::MAX);
        sizes.each(count).for_each(|bytes| seen.copied(CopyKind::Other, bytes));
    }
}

/// Rectangles: the sides are known by their memory types.
trait Box2 {
    fn sides(&self) -> (CUmemorytype, CUmemorytype);
    fn bytes(&self) -> usize;
}

macro_rules! rectangles {
    ($($type:ty: $($extent:ident)*;)*) => {
        $(impl Box2 for $type {
            fn sides(&self) -> (CUmemorytype, CUmemorytype) {
                (self.srcMemoryType, self.dstMemoryType)
            }

            fn bytes(&self) -> usize {
                1usize$(.saturating_mul(self.$extent as usize))*
            }
        })*
    };
}
rectangles! {
    CUDA_MEMCPY2D: WidthInBytes Height;
    CUDA_MEMCPY2D_v1: WidthInBytes Height;
    CUDA_MEMCPY3D: WidthInBytes Height Depth;
    CUDA_MEMCPY3D_v1: WidthInBytes Height Depth;
    CUDA_MEMCPY3D_PEER: WidthInBytes Height Depth;
}

fn rectangle(seen: &Seen, copy: Option<impl Box2>, stream: Option<CUstream>) {
    let Some(copy) = copy else { return };
    let (from, to) = copy.sides();
    let kind = match (from, to) {
        (CU_MEMORYTYPE_UNIFIED, _) | (_, CU_MEMORYTYPE_UNIFIED) => CopyKind::Other,
        (CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST) => CopyKind::Other,
        (CU_MEMORYTYPE_HOST, _) => CopyKind::HostToDevice,
        (_, CU_MEMORYTYPE_HOST) => CopyKind::DeviceToHost,
        _ => CopyKind::DeviceToDevice,
    };
    seen.copied_in(stream, kind, copy.bytes());
}

macro_rules! copies_of_rectangles {
    ($($name:ident($type:ty $(; $stream:ty)?);)*) => {
        $(pub fn $name(seen: &Seen, copy: Raw<*const $type>, $(stream: Raw<$stream>,)?) {
            rectangle(seen, copy.read(), stream_of!($(stream: $stream)?));
        })*
    };
}
copies_of_rectangles! {
    cuMemcpy2D(CUDA_MEMCPY2D_v1);
    cuMemcpy2D_v2(CUDA_MEMCPY2D);
    cuMemcpy2DUnaligned(CUDA_MEMCPY2D_v1);
    cuMemcpy2DUnaligned_v2(CUDA_MEMCPY2D);
    cuMemcpy2DAsync(CUDA_MEMCPY2D_v1; CUstream);
    cuMemcpy2DAsync_v2(CUDA_MEMCPY2D; CUstream);
    cuMemcpy3D(CUDA_MEMCPY3D_v1);
    cuMemcpy3D_v2(CUDA_MEMCPY3D);
    cuMemcpy3DAsync(CUDA_MEMCPY3D_v1; CUstream);
    cuMemcpy3DAsync_v2(CUDA_MEMCPY3D; CUstream);
    cuMemcpy3DPeer(CUDA_MEMCPY3D_PEER);
    cuMemcpy3DPeerAsync(CUDA_MEMCPY3D_PEER; CUstream);
}

/// Which way each of these goes, the addresses alone say. Where an array takes part, an extent is in its elements, of
/// which the driver knows the size: such a copy is counted without its bytes.
fn cuboids(seen: &Seen, copies: Raw<*mut CUDA_MEMCPY3D_BATCH_OP>, count: usize, stream: Raw<CUstream>) {
    if seen.captured(stream.value()) {
        return;
    }
    seen.handed_over(stream.value());
    for copy in copies.each(u32::try_from(count).unwrap_or(u32::MAX)) {
        let plain = [copy.src.type_, copy.dst.type_] == [CU_MEMCPY_OPERAND_TYPE_POINTER; 2];
        let sides = [copy.extent.width, copy.extent.height, copy.extent.depth];
        let bytes = sides.into_iter().fold(usize::from(plain), usize::saturating_mul);
        seen.copied(CopyKind::Other, bytes);
    }
}

pub fn cuMemcpy3DBatchAsync<A, B>(
    seen: &Seen,
    count: Raw<usize>,
    copies: Raw<*mut CUDA_MEMCPY3D_BATCH_OP>,
    _: A,
    _: B,
    stream: Raw<CUstream>,
) {
    cuboids(seen, copies, count.value(), stream);
}

pub fn cuMemcpy3DBatchAsync_v2<A>(
    seen: &Seen,
    count: Raw<usize>,
    copies: Raw<*mut CUDA_MEMCPY3D_BATCH_OP>,
    _: A,
    stream: Raw<CUstream>,
) {
    cuboids(seen, copies, count.value(), stream);
}

pub fn cuMemcpy3DWithAttributesAsync<A>(
    seen: &Seen,
    copy: Raw<*mut CUDA_MEMCPY3D_BATCH_OP>,
    _: A,
    stream: Raw<CUstream>,
) {
    cuboids(seen, copy, 1, stream);
}
