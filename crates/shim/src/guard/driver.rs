//! Calls of the driver on our own account.
//!
//! They are made in the middle of somebody else's program: in a context that may not be the thread's own, beside captures
//! that others are making, and never so that the program could tell.

use std::cell::OnceCell;
use std::ptr;

use cuda_abi::{
    CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_MEM_OP_WAIT_VALUE_32, CU_STREAM_MEM_OP_WRITE_VALUE_32,
    CU_STREAM_WAIT_VALUE_EQ, CUDA_SUCCESS, CUcontext, CUdevice, CUresult, CUstream, CUstreamBatchMemOpParams,
};

use crate::next;

pub fn ok(result: CUresult) -> Option<()> {
    (result == CUDA_SUCCESS).then_some(())
}

/// A stream by the number that is kept of it.
pub fn stream(handle: usize) -> CUstream {
    ptr::with_exposed_provenance_mut(handle)
}

/// The context of the calling thread; zero if it has none.
#[inline]
pub fn current_context() -> usize {
    let mut context: CUcontext = ptr::null_mut();
    // SAFETY: a place for the answer.
    let result = unsafe { next::call::cuCtxGetCurrent(&mut context) };
    if result == CUDA_SUCCESS { context.expose_provenance() } else { 0 }
}

/// The context of the calling thread while one call is made, for which the driver is asked once at most.
pub struct Here(OnceCell<usize>);

impl Here {
    #[inline]
    pub fn new() -> Here {
        Here(OnceCell::new())
    }

    /// Zero if there is none.
    #[inline]
    pub fn context(&self) -> usize {
        *self.0.get_or_init(current_context)
    }
}

/// The device of the calling thread's context.
pub fn current_device() -> Option<CUdevice> {
    let mut device = 0;
    // SAFETY: a place for the answer.
    ok(unsafe { next::call::cuCtxGetDevice(&mut device) })?;
    Some(device)
}

/// Does something in a context that exists.
pub fn within<T>(context: usize, work: impl FnOnce() -> Option<T>) -> Option<T> {
    // SAFETY: a context that is in use by whoever calls this; it is forgotten before it is destroyed.
    ok(unsafe { next::call::cuCtxPushCurrent_v2(ptr::with_exposed_provenance_mut(context)) })?;
    let result = work();
    let mut popped: CUcontext = ptr::null_mut();
    // SAFETY: a place for the answer; what was pushed is popped.
    let _ = unsafe { next::call::cuCtxPopCurrent_v2(&mut popped) };
    result
}

/// Does something that a thread may not do while it or another captures a stream, unless it says that it knows.
pub fn relaxed<T>(work: impl FnOnce() -> T) -> T {
    let mut mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: a place for the mode, which is of this thread only.
    let _ = unsafe { next::call::cuThreadExchangeStreamCaptureMode(&mut mode) };
    let result = work();
    // SAFETY: the mode that was there before.
    let _ = unsafe { next::call::cuThreadExchangeStreamCaptureMode(&mut mode) };
    result
}

/// Memory operations that a stream does itself, one after the other.
pub struct Operations {
    list: [CUstreamBatchMemOpParams; Operations::MOST],
    count: usize,
}

impl Operations {
    const MOST: usize = 4;

    pub fn new() -> Operations {
        Operations { list: [CUstreamBatchMemOpParams::default(); Operations::MOST], count: 0 }
    }

    pub fn write(mut self, address: u64, value: u32) -> Operations {
        let mut operation = CUstreamBatchMemOpParams::default();
        operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        operation.writeValue.address = address;
        operation.writeValue.__bindgen_anon_1.value = value;
        self.list[self.count] = operation;
        self.count += 1;
        self
    }

    pub fn wait_for_zero(mut self, address: u64) -> Operations {
        let mut operation = CUstreamBatchMemOpParams::default();
        operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
        operation.waitValue.address = address;
        operation.waitValue.__bindgen_anon_1.value = 0;
        operation.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ.0;
        self.list[self.count] = operation;
        self.count += 1;
        self
    }

    pub fn give_to(mut self, stream: CUstream) -> CUresult {
        // SAFETY: so many operations, on words of ours, in a stream that exists.
        unsafe { next::call::cuStreamBatchMemOp_v2(stream, self.count as u32, self.list.as_mut_ptr(), 0) }
    }
}
