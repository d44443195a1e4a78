//! Hooks: what a call says about the program, one file per subject.
//!
//! A hook has the name of its function and is shown its arguments once the driver has answered with success (see
//! `entry`). `watched` lists them; a function that is not listed is only forwarded. The twins for per-thread default
//! streams have the hooks of their plain functions and differ in what stream 0 means.
//!
//! Hooks count, and tell `tenancy` what was handed over and what was waited for; `frames` gives them what they need to
//! know about a handle.

/// Hooks that count a call and look at none of its arguments.
macro_rules! count_calls {
    ($($counter:ident: $($name:ident($($argument:ident),*)),+;)*) => {
        $($(pub fn $name<$($argument),*>(seen: &Seen, $(_: $argument),*) {
            seen.count(Counter::$counter);
        })+)*
    };
}
use count_calls;

use crate::tenancy::Work;

/// The stream of a function that takes one.
macro_rules! stream_of {
    () => {
        None
    };
    ($stream:ident: $type:ty) => {
        Some::<$type>($stream.value())
    };
}

mod allocation;
mod context;
mod copy;
mod fill;
mod graph;
mod launch;
mod module;
mod stream;

/// Whether a function hands work to the GPU, by how its name begins. Host functions are work for the host; launches that
/// may be guarded pass the gate only if they are not (`guard::launch`).
pub const fn hands_over_work(name: &str) -> bool {
    const BEGINNINGS: [&str; 4] = ["cuLaunch", "cuGraphLaunch", "cuMemcpy", "cuMemset"];
    let mut index = 0;
    while index < BEGINNINGS.len() {
        if begins(name, BEGINNINGS[index]) {
            return !begins(name, "cuLaunchHostFunc") && !begins(name, "cuLaunchKernel");
        }
        index += 1;
    }
    false
}

/// What a function that hands over work hands over.
pub const fn work(name: &str) -> Work {
    if begins(name, "cuMemcpy") || begins(name, "cuMemset") { Work::Transfer } else { Work::Kernels }
}

/// Whether stream 0 means the thread's own: the twins for programs that were compiled so.
pub const fn is_per_thread(name: &str) -> bool {
    ends(name, "_ptsz") || ends(name, "_ptds")
}

const fn ends(name: &str, ending: &str) -> bool {
    let (name, ending) = (name.as_bytes(), ending.as_bytes());
    let mut index = 1;
    while index <= ending.len() {
        if index > name.len() || name[name.len() - index] != ending[ending.len() - index] {
            return false;
        }
        index += 1;
    }
    true
}

const fn begins(name: &str, beginning: &str) -> bool {
    let (name, beginning) = (name.as_bytes(), beginning.as_bytes());
    let mut index = 0;
    while index < beginning.len() {
        if index == name.len() || name[index] != beginning[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// Those that are hidden by a hook are of no use, and the compiler says so.
#[allow(non_upper_case_globals, dead_code)]
mod unwatched {
    use crate::entry::Unwatched;

    macro_rules! leave_each {
        ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
            $(pub const $name: Unwatched = Unwatched;)*
        };
    }
    cuda_abi::for_each_function!(leave_each);
}

/// A named import hides a glob.
mod watched {
    pub use super::unwatched::*;

    pub use super::allocation::{
        cuArray3DCreate_v2, cuArrayCreate_v2, cuArrayDestroy, cuMemAddressReserve, cuMemAlloc, cuMemAlloc_v2,
        cuMemAllocAsync, cuMemAllocFromPoolAsync, cuMemAllocHost, cuMemAllocHost_v2, cuMemAllocManaged,
        cuMemAllocPitch, cuMemAllocPitch_v2, cuMemCreate, cuMemFree, cuMemFree_v2, cuMemFreeAsync,
        cuMemFreeHost, cuMemHostAlloc, cuMemHostRegister, cuMemHostRegister_v2, cuMemHostUnregister,
        cuMemMap, cuMemPoolCreate, cuMemRelease,
    };
    pub use super::context::{
        cuCtxCreate, cuCtxCreate_v2, cuCtxCreate_v3, cuCtxCreate_v4, cuCtxDestroy, cuCtxDestroy_v2,
        cuCtxDetach, cuCtxSynchronize, cuCtxSynchronize_v2, cuDevicePrimaryCtxRelease,
        cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2,
        cuDevicePrimaryCtxRetain, cuGetExportTable, cuGreenCtxCreate, cuGreenCtxDestroy, cuInit,
    };
    pub use super::copy::{
        cuMemcpy, cuMemcpy2D, cuMemcpy2D_v2, cuMemcpy2DAsync, cuMemcpy2DAsync_v2, cuMemcpy2DUnaligned,
        cuMemcpy2DUnaligned_v2, cuMemcpy3D, cuMemcpy3D_v2, cuMemcpy3DAsync, cuMemcpy3DAsync_v2,
        cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_v2, cuMemcpy3DPeer, cuMemcpy3DPeerAsync,
        cuMemcpy3DWithAttributesAsync, cuMemcpyAsync, cuMemcpyAtoA_v2, cuMemcpyAtoD_v2, cuMemcpyAtoH_v2,
        cuMemcpyAtoHAsync_v2, cuMemcpyBatchAsync, cuMemcpyBatchAsync_v2, cuMemcpyDtoA_v2, cuMemcpyDtoD,
        cuMemcpyDtoD_v2, cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, cuMemcpyDtoH, cuMemcpyDtoH_v2,
        cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, cuMemcpyHtoA_v2, cuMemcpyHtoAAsync_v2, cuMemcpyHtoD,
        cuMemcpyHtoD_v2, cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, cuMemcpyPeer, cuMemcpyPeerAsync,
        cuMemcpyWithAttributesAsync,
    };
    pub use super::fill::{
        cuMemsetD2D8, cuMemsetD2D8_v2, cuMemsetD2D8Async, cuMemsetD2D16, cuMemsetD2D16_v2,
        cuMemsetD2D16Async, cuMemsetD2D32, cuMemsetD2D32_v2, cuMemsetD2D32Async, cuMemsetD8, cuMemsetD8_v2,
        cuMemsetD8Async, cuMemsetD16, cuMemsetD16_v2, cuMemsetD16Async, cuMemsetD32, cuMemsetD32_v2,
        cuMemsetD32Async,
    };
    pub use super::graph::{
        cuGraphExecChildGraphNodeSetParams, cuGraphExecDestroy, cuGraphExecKernelNodeSetParams,
        cuGraphExecKernelNodeSetParams_v2, cuGraphExecNodeSetParams, cuGraphExecUpdate, cuGraphExecUpdate_v2,
        cuGraphInstantiate, cuGraphInstantiate_v2, cuGraphInstantiateWithFlags, cuGraphInstantiateWithParams,
        cuGraphLaunch, cuGraphNodeSetEnabled, cuStreamBeginCapture, cuStreamBeginCapture_v2,
        cuStreamBeginCaptureToCig, cuStreamBeginCaptureToGraph, cuStreamBeginRecaptureToGraph,
        cuStreamEndCapture, cuStreamEndCaptureToCig,
    };
    pub use super::launch::{
        cuLaunch, cuLaunchCooperativeKernel, cuLaunchCooperativeKernelMultiDevice, cuLaunchGrid,
        cuLaunchGridAsync, cuLaunchHostFunc, cuLaunchHostFunc_v2, cuLaunchKernel, cuLaunchKernelEx,
        cuStreamAddCallback,
    };
    pub use super::module::{
        cuFuncGetModule, cuFuncSetAttribute, cuFuncSetCacheConfig, cuKernelGetFunction, cuKernelSetAttribute,
        cuKernelSetCacheConfig, cuLibraryEnumerateKernels, cuLibraryGetKernel, cuLibraryGetModule,
        cuLibraryLoadData, cuLibraryLoadFromFile, cuLibraryUnload, cuLinkComplete,
        cuModuleEnumerateFunctions, cuModuleGetFunction, cuModuleLoad, cuModuleLoadData, cuModuleLoadDataEx,
        cuModuleLoadFatBinary, cuModuleUnload,
    };
    pub use super::stream::{
        cuCtxRecordEvent, cuCtxWaitEvent, cuEventCreate, cuEventDestroy, cuEventDestroy_v2, cuEventQuery,
        cuEventRecord, cuEventRecordWithFlags, cuEventSynchronize, cuGreenCtxRecordEvent,
        cuGreenCtxStreamCreate, cuGreenCtxWaitEvent, cuStreamBatchMemOp, cuStreamBatchMemOp_v2,
        cuStreamCreate, cuStreamCreateWithPriority, cuStreamDestroy, cuStreamDestroy_v2, cuStreamQuery,
        cuStreamSynchronize, cuStreamWaitEvent, cuStreamWaitValue32, cuStreamWaitValue32_v2,
        cuStreamWaitValue64, cuStreamWaitValue64_v2, cuStreamWriteValue32, cuStreamWriteValue32_v2,
        cuStreamWriteValue64, cuStreamWriteValue64_v2,
    };
}

/// The hook of every function, by its name.
pub mod seen {
    pub use super::watched::*;

    macro_rules! follow_each {
        ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $plain:ident;)*) => {
            $(pub use super::watched::$plain as $name;)*
        };
    }
    cuda_abi::for_each_per_thread_function!(follow_each);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_say_what_stream_0_means() {
        assert!(is_per_thread("cuLaunchKernel_ptsz") && is_per_thread("cuMemcpy_ptds"));
        assert!(!is_per_thread("cuLaunchKernel") && !is_per_thread("ptsz"));
    }

    #[test]
    fn launches_graphs_copies_and_fills_are_work() {
        let handed_over =
            ["cuLaunchGrid", "cuGraphLaunch", "cuMemcpyHtoDAsync_v2", "cuMemsetD32", "cuLaunch"];
        assert!(handed_over.into_iter().all(hands_over_work));
        let others =
            ["cuLaunchHostFunc", "cuMemAlloc_v2", "cuGraphInstantiate", "cuLaunc", "", "cuStreamSynchronize"];
        assert!(!others.into_iter().any(hands_over_work));
        assert_eq!(
            ["cuMemsetD32", "cuMemcpyHtoDAsync_v2", "cuGraphLaunch"].map(work),
            [Work::Transfer, Work::Transfer, Work::Kernels]
        );
    }
}
