//! Structures which cross into programs lie in memory as a C compiler lays them.
//!
//! The figures are gcc's for x86-64, read off the headers with `sizeof` and `offsetof`; bindgen has its own
//! from clang. A wrong one would not fail loudly: it would copy the wrong bytes.

use core::mem::{align_of, offset_of, size_of};

use cuda_abi::*;

#[test]
fn sizes_and_alignments() {
    let laid = [
        (size_of::<CUresult>(), align_of::<CUresult>(), 4, 4, "CUresult"),
        (size_of::<CUdeviceptr_v1>(), align_of::<CUdeviceptr_v1>(), 4, 4, "CUdeviceptr_v1"),
        (size_of::<CUdeviceptr>(), align_of::<CUdeviceptr>(), 8, 8, "CUdeviceptr"),
        (size_of::<CUuuid>(), align_of::<CUuuid>(), 16, 1, "CUuuid"),
        (size_of::<CUipcMemHandle>(), align_of::<CUipcMemHandle>(), 64, 1, "CUipcMemHandle"),
        (size_of::<CUipcEventHandle>(), align_of::<CUipcEventHandle>(), 64, 1, "CUipcEventHandle"),
        (size_of::<CUDA_MEMCPY2D_v1>(), align_of::<CUDA_MEMCPY2D_v1>(), 96, 8, "CUDA_MEMCPY2D_v1"),
        (size_of::<CUDA_MEMCPY2D_v2>(), align_of::<CUDA_MEMCPY2D_v2>(), 128, 8, "CUDA_MEMCPY2D_v2"),
        (size_of::<CUDA_MEMCPY3D_v2>(), align_of::<CUDA_MEMCPY3D_v2>(), 200, 8, "CUDA_MEMCPY3D_v2"),
        (size_of::<CUlaunchConfig>(), align_of::<CUlaunchConfig>(), 56, 8, "CUlaunchConfig"),
        (size_of::<CUlaunchAttribute>(), align_of::<CUlaunchAttribute>(), 72, 8, "CUlaunchAttribute"),
        (
            size_of::<CUDA_KERNEL_NODE_PARAMS_v1>(),
            align_of::<CUDA_KERNEL_NODE_PARAMS_v1>(),
            56,
            8,
            "kernel v1",
        ),
        (
            size_of::<CUDA_KERNEL_NODE_PARAMS_v2>(),
            align_of::<CUDA_KERNEL_NODE_PARAMS_v2>(),
            72,
            8,
            "kernel v2",
        ),
        (
            size_of::<CUDA_MEMSET_NODE_PARAMS_v1>(),
            align_of::<CUDA_MEMSET_NODE_PARAMS_v1>(),
            40,
            8,
            "memset node",
        ),
        (size_of::<CUDA_HOST_NODE_PARAMS_v1>(), align_of::<CUDA_HOST_NODE_PARAMS_v1>(), 16, 8, "host node"),
        (size_of::<CUgraphNodeParams>(), align_of::<CUgraphNodeParams>(), 256, 8, "CUgraphNodeParams"),
        (size_of::<CUgraphEdgeData>(), align_of::<CUgraphEdgeData>(), 8, 1, "CUgraphEdgeData"),
        (size_of::<CUstreamBatchMemOpParams>(), align_of::<CUstreamBatchMemOpParams>(), 48, 8, "batch op"),
        (size_of::<CUmemLocation>(), align_of::<CUmemLocation>(), 8, 4, "CUmemLocation"),
        (size_of::<CUmemAllocationProp>(), align_of::<CUmemAllocationProp>(), 32, 8, "CUmemAllocationProp"),
        (size_of::<CUmemAccessDesc>(), align_of::<CUmemAccessDesc>(), 12, 4, "CUmemAccessDesc"),
        (size_of::<CUmemPoolProps>(), align_of::<CUmemPoolProps>(), 88, 8, "CUmemPoolProps"),
        (size_of::<CUctxCreateParams>(), align_of::<CUctxCreateParams>(), 24, 8, "CUctxCreateParams"),
        (size_of::<CUdevResource>(), align_of::<CUdevResource>(), 144, 8, "CUdevResource"),
        (size_of::<CUtensorMap>(), align_of::<CUtensorMap>(), 128, 128, "CUtensorMap"),
    ];
    for (size, align, expected_size, expected_align, name) in laid {
        assert_eq!((size, align), (expected_size, expected_align), "{name}");
    }
}

#[test]
fn places_of_fields() {
    assert_eq!(offset_of!(CUDA_MEMCPY2D_v2, srcDevice), 32);
    assert_eq!(offset_of!(CUDA_MEMCPY2D_v2, dstMemoryType), 72);
    assert_eq!(offset_of!(CUDA_MEMCPY2D_v2, Height), 120);
    assert_eq!(offset_of!(CUDA_MEMCPY3D_v2, dstXInBytes), 88);
    assert_eq!(offset_of!(CUDA_MEMCPY3D_v2, Depth), 192);
    assert_eq!(offset_of!(CUlaunchConfig, hStream), 32);
    assert_eq!(offset_of!(CUlaunchConfig, attrs), 40);
    assert_eq!(offset_of!(CUlaunchConfig, numAttrs), 48);
    assert_eq!(offset_of!(CUlaunchAttribute, value), 8);
    assert_eq!(offset_of!(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams), 40);
    assert_eq!(offset_of!(CUDA_KERNEL_NODE_PARAMS_v2, ctx), 64);
    assert_eq!(offset_of!(CUmemAllocationProp, location), 8);
    assert_eq!(offset_of!(CUmemAllocationProp, win32HandleMetaData), 16);
    assert_eq!(offset_of!(CUmemAllocationProp, allocFlags), 24);
    assert_eq!(offset_of!(CUmemAccessDesc, flags), 8);
    assert_eq!(offset_of!(CUmemPoolProps, maxSize), 24);
}

#[test]
fn a_default_is_all_zero() {
    let config = CUlaunchConfig::default();
    assert!(config.hStream.is_null() && config.attrs.is_null() && config.numAttrs == 0);
    assert_eq!(CUDA_MEMCPY2D_v2::default().srcMemoryType, CUmemorytype(0));
}
