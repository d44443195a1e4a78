//! Functions before which something has to be done here: what they end, or make untouchable, must not be asked about any
//! more when they are called.

#![allow(non_snake_case, clippy::too_many_arguments)]

use std::ffi::c_void;

use cuda_abi::{
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, CUDA_SUCCESS, CUcontext,
    CUdevice, CUgraph, CUgraphEdgeData, CUgraphNode, CUgraphRecaptureCallback, CUresult, CUstream,
    CUstreamCaptureMode, CUstreamCigCaptureParams,
};

use super::{streams, taken};
use crate::{guard, next};

fn stream_ends(stream: CUstream) {
    taken().iter().for_each(|post| post.streams.forget(stream.addr()));
    guard::stream_ends(stream);
}

/// Which of our streams and events are in it is not known; those that are not are soon known again.
fn context_ends(context: CUcontext) {
    forget();
    guard::context_ends(context);
}

fn context_of_device_ends(device: CUdevice) {
    forget();
    guard::context_of_device_ends(device);
}

fn forget() {
    for post in taken() {
        post.streams.forget_all();
        post.flight.forget();
        post.raise.forget();
    }
}

/// Nobody asks the driver about a stream when the capture begins, nor until it is over.
fn capture_begins(begin: impl FnOnce() -> CUresult) -> CUresult {
    streams::capture_begins();
    taken().iter().for_each(|post| post.flight.settle());
    let result = begin();
    if result != CUDA_SUCCESS {
        streams::capture_ends();
    }
    result
}

/// A capture that was spoiled is over, too. Any other error means that there was none to end.
fn capture_ends(end: impl FnOnce() -> CUresult) -> CUresult {
    const SPOILED: std::ops::RangeInclusive<u32> =
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.0..=CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD.0;
    let result = end();
    if result == CUDA_SUCCESS || SPOILED.contains(&result.0) {
        streams::capture_ends();
    }
    result
}

macro_rules! before {
    ($($first:ident { $(fn $name:ident($($argument:ident: $type:ty),*);)+ })*) => {
        $($(
            /// # Safety
            /// As the driver's manual says.
            pub unsafe fn $name($($argument: $type),*) -> CUresult {
                $first($($argument),*);
                // SAFETY: passed on to our caller.
                unsafe { next::call::$name($($argument),*) }
            }
        )+)*
    };
}
before! {
    stream_ends { fn cuStreamDestroy(stream: CUstream); fn cuStreamDestroy_v2(stream: CUstream); }
    context_ends {
        fn cuCtxDestroy(context: CUcontext); fn cuCtxDestroy_v2(context: CUcontext);
        fn cuCtxDetach(context: CUcontext);
    }
    context_of_device_ends {
        fn cuDevicePrimaryCtxRelease(device: CUdevice); fn cuDevicePrimaryCtxRelease_v2(device: CUdevice);
        fn cuDevicePrimaryCtxReset(device: CUdevice); fn cuDevicePrimaryCtxReset_v2(device: CUdevice);
    }
}

macro_rules! within {
    ($($around:ident { $(fn $name:ident($($argument:ident: $type:ty),*);)+ })*) => {
        $($(
            /// # Safety
            /// As the driver's manual says.
            pub unsafe fn $name($($argument: $type),*) -> CUresult {
                // SAFETY: passed on to our caller.
                $around(|| unsafe { next::call::$name($($argument),*) })
            }
        )+)*
    };
}
within! {
    capture_begins {
        fn cuStreamBeginCapture(stream: CUstream);
        fn cuStreamBeginCapture_ptsz(stream: CUstream);
        fn cuStreamBeginCapture_v2(stream: CUstream, mode: CUstreamCaptureMode);
        fn cuStreamBeginCapture_v2_ptsz(stream: CUstream, mode: CUstreamCaptureMode);
        fn cuStreamBeginCaptureToCig(stream: CUstream, parameters: *mut CUstreamCigCaptureParams);
        fn cuStreamBeginCaptureToCig_ptsz(stream: CUstream, parameters: *mut CUstreamCigCaptureParams);
        fn cuStreamBeginCaptureToGraph(
            stream: CUstream, graph: CUgraph, dependencies: *const CUgraphNode, edges: *const CUgraphEdgeData,
            count: usize, mode: CUstreamCaptureMode);
        fn cuStreamBeginCaptureToGraph_ptsz(
            stream: CUstream, graph: CUgraph, dependencies: *const CUgraphNode, edges: *const CUgraphEdgeData,
            count: usize, mode: CUstreamCaptureMode);
        fn cuStreamBeginRecaptureToGraph(
            stream: CUstream, mode: CUstreamCaptureMode, graph: CUgraph, function: CUgraphRecaptureCallback,
            data: *mut c_void);
        fn cuStreamBeginRecaptureToGraph_ptsz(
            stream: CUstream, mode: CUstreamCaptureMode, graph: CUgraph, function: CUgraphRecaptureCallback,
            data: *mut c_void);
    }
    capture_ends {
        fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
        fn cuStreamEndCapture_ptsz(stream: CUstream, graph: *mut CUgraph);
        fn cuStreamEndCaptureToCig(stream: CUstream);
        fn cuStreamEndCaptureToCig_ptsz(stream: CUstream);
    }
}
