//! Work handed to the GPU one by one.

#![allow(non_snake_case, clippy::too_many_arguments)]

use std::ffi::{c_int, c_uint};
use std::sync::atomic::Ordering;

use cuda_abi::{
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE, CUDA_LAUNCH_PARAMS, CUDA_SUCCESS,
    CUfunction, CUlaunchConfig, CUstream, CUstreamCaptureStatus,
};
use telemetry::{Counter, Event, LaunchKind, NO_KERNEL, StreamKind, What};

use crate::entry::{self, Raw, Seen};
use crate::watch::Watch;
use crate::{next, tenancy};

impl Watch {
    /// Whether what is handed to a stream goes into a graph and does not run. The default stream cannot be captured, and
    /// to ask about it while another is would be an error.
    #[inline]
    pub fn captured(&self, stream: CUstream, per_thread: bool) -> bool {
        self.frames.captures.load(Ordering::Relaxed) != 0
            && entry::stream_kind(stream.addr(), per_thread) != StreamKind::Default
            && is_capturing(stream, per_thread)
    }
}

#[cold]
fn is_capturing(stream: CUstream, per_thread: bool) -> bool {
    let mut status = CUstreamCaptureStatus(0);
    let result = if per_thread {
        // SAFETY: a stream that the driver uses, and a place for the answer.
        unsafe { next::call::cuStreamIsCapturing_ptsz(stream, &mut status) }
    } else {
        // SAFETY: a stream that the driver uses, and a place for the answer.
        unsafe { next::call::cuStreamIsCapturing(stream, &mut status) }
    };
    result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE
}

impl Seen {
    /// Whether what was handed to a stream went into a graph and has not run.
    #[inline]
    pub fn captured(&self, stream: CUstream) -> bool {
        self.watch.captured(stream, self.per_thread())
    }

    /// Tells the tenancy of work that will run.
    #[inline]
    pub fn handed_over(&self, stream: CUstream) {
        tenancy::handed_over(stream, self.per_thread());
    }

    #[inline]
    fn kernel(&self, kind: LaunchKind, stream: CUstream, function: usize, blocks: u64) {
        if self.captured(stream) {
            return self.count(Counter::KernelsCaptured);
        }
        self.handed_over(stream);
        tenancy::launched(1);
        self.count(Counter::launches(kind, self.stream(stream.addr())));
        let Some(frame) = self.watch.frames.function(function) else {
            self.tell(stream, |stream| What::Launch { kernel: NO_KERNEL, stream, blocks });
            return self.count(Counter::KernelsUnknown);
        };
        let kernel = frame.learned(self.watch).and_then(|learned| learned.kernel);
        let index = kernel.map_or(NO_KERNEL, |kernel| kernel.index());
        self.tell(stream, |stream| What::Launch { kernel: index, stream, blocks });
        match kernel {
            Some(kernel) => kernel.launched(blocks),
            None => self.count(Counter::KernelsUnlisted),
        }
    }

    /// Writes down what was handed to a stream, which is known there by a number.
    #[inline]
    pub fn tell(&self, stream: CUstream, what: impl FnOnce(u16) -> What) {
        let Some(log) = self.watch.events else { return };
        let what = what(tenancy::key::Key::new(stream.addr(), self.per_thread()).short());
        log.write(&Event { time: board::now(), post: tenancy::number_here(), what });
    }
}

#[inline(always)]
fn blocks(x: c_uint, y: c_uint, z: c_uint) -> u64 {
    u64::from(x).wrapping_mul(u64::from(y)).wrapping_mul(u64::from(z))
}

pub fn cuLaunchKernel<A, B, C, D, E, F>(
    seen: &Seen,
    function: Raw<CUfunction>,
    x: Raw<c_uint>,
    y: Raw<c_uint>,
    z: Raw<c_uint>,
    _: A,
    _: B,
    _: C,
    _: D,
    stream: Raw<CUstream>,
    _: E,
    _: F,
) {
    let blocks = blocks(x.value(), y.value(), z.value());
    seen.kernel(LaunchKind::Plain, stream.value(), function.handle(), blocks);
}

pub fn cuLaunchKernelEx<A, B>(
    seen: &Seen,
    config: Raw<*const CUlaunchConfig>,
    function: Raw<CUfunction>,
    _: A,
    _: B,
) {
    let Some(config) = config.read() else { return };
    let kind = if is_cooperative(&config) { LaunchKind::Cooperative } else { LaunchKind::Extended };
    let blocks = blocks(config.gridDimX, config.gridDimY, config.gridDimZ);
    seen.kernel(kind, config.hStream, function.handle(), blocks);
}

fn is_cooperative(config: &CUlaunchConfig) -> bool {
    if config.attrs.is_null() {
        return false;
    }
    (0..config.numAttrs as usize).any(|index| {
        // SAFETY: the driver has read so many attributes there.
        let attribute = unsafe { &*config.attrs.wrapping_add(index) };
        // SAFETY: every value of the union begins with initialised bytes, and this one's is a number.
        attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && unsafe { attribute.value.cooperative } != 0
    })
}

pub fn cuLaunchCooperativeKernel<A, B, C, D, E>(
    seen: &Seen,
    function: Raw<CUfunction>,
    x: Raw<c_uint>,
    y: Raw<c_uint>,
    z: Raw<c_uint>,
    _: A,
    _: B,
    _: C,
    _: D,
    stream: Raw<CUstream>,
    _: E,
) {
    let blocks = blocks(x.value(), y.value(), z.value());
    seen.kernel(LaunchKind::Cooperative, stream.value(), function.handle(), blocks);
}

pub fn cuLaunchCooperativeKernelMultiDevice<A>(
    seen: &Seen,
    launches: Raw<*mut CUDA_LAUNCH_PARAMS>,
    count: Raw<c_uint>,
    _: A,
) {
    for launch in launches.each(count.value()) {
        let blocks = blocks(launch.gridDimX, launch.gridDimY, launch.gridDimZ);
        seen.kernel(LaunchKind::Cooperative, launch.hStream, launch.function.addr(), blocks);
    }
}

/// The launches of CUDA 1 to 3, which drivers still have.
pub fn cuLaunch(seen: &Seen, function: Raw<CUfunction>) {
    seen.kernel(LaunchKind::Plain, std::ptr::null_mut(), function.handle(), 1);
}

pub fn cuLaunchGrid(seen: &Seen, function: Raw<CUfunction>, width: Raw<c_int>, height: Raw<c_int>) {
    let blocks = blocks(width.value().unsigned_abs(), height.value().unsigned_abs(), 1);
    seen.kernel(LaunchKind::Plain, std::ptr::null_mut(), function.handle(), blocks);
}

pub fn cuLaunchGridAsync(
    seen: &Seen,
    function: Raw<CUfunction>,
    width: Raw<c_int>,
    height: Raw<c_int>,
    stream: Raw<CUstream>,
) {
    let blocks = blocks(width.value().unsigned_abs(), height.value().unsigned_abs(), 1);
    seen.kernel(LaunchKind::Plain, stream.value(), function.handle(), blocks);
}

fn host_function(seen: &Seen, stream: CUstream) {
    if !seen.captured(stream) {
        seen.count(Counter::launches(LaunchKind::HostFunction, seen.stream(stream.addr())));
    }
}

pub fn cuLaunchHostFunc<A, B>(seen: &Seen, stream: Raw<CUstream>, _: A, _: B) {
    host_function(seen, stream.value());
}

pub fn cuLaunchHostFunc_v2<A, B, C>(seen: &Seen, stream: Raw<CUstream>, _: A, _: B, _: C) {
    host_function(seen, stream.value());
}

pub fn cuStreamAddCallback<A, B, C>(seen: &Seen, stream: Raw<CUstream>, _: A, _: B, _: C) {
    host_function(seen, stream.value());
}
