//! The list of what works: a function that is not named here is refused.

#[allow(unused_imports)]
pub use crate::exports::refusals::*;

pub use super::context::{
    cuCtxCreate_v2, cuCtxCreate_v3, cuCtxCreate_v4, cuCtxDestroy, cuCtxDestroy_v2, cuCtxDetach,
    cuCtxDisablePeerAccess, cuCtxEnablePeerAccess, cuCtxGetApiVersion, cuCtxGetCacheConfig, cuCtxGetCurrent,
    cuCtxGetDevice, cuCtxGetDevice_v2, cuCtxGetFlags, cuCtxGetId, cuCtxGetLimit, cuCtxGetSharedMemConfig,
    cuCtxGetStreamPriorityRange, cuCtxPopCurrent, cuCtxPopCurrent_v2, cuCtxPushCurrent, cuCtxPushCurrent_v2,
    cuCtxRecordEvent, cuCtxResetPersistingL2Cache, cuCtxSetCacheConfig, cuCtxSetCurrent, cuCtxSetFlags,
    cuCtxSetLimit, cuCtxSetSharedMemConfig, cuCtxSynchronize, cuCtxSynchronize_v2, cuCtxWaitEvent,
};
pub use super::copy::{
    cuMemcpy, cuMemcpy2D_v2, cuMemcpy2DAsync_v2, cuMemcpy2DUnaligned_v2, cuMemcpy3D_v2, cuMemcpy3DAsync_v2,
    cuMemcpyAsync, cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2, cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2,
    cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, cuMemcpyPeer, cuMemcpyPeerAsync,
};
pub use super::device::{
    cuDeviceCanAccessPeer, cuDeviceComputeCapability, cuDeviceGet, cuDeviceGetAttribute,
    cuDeviceGetByPCIBusId, cuDeviceGetCount, cuDeviceGetExecAffinitySupport, cuDeviceGetName,
    cuDeviceGetP2PAttribute, cuDeviceGetPCIBusId, cuDeviceGetProperties, cuDeviceGetTexture1DLinearMaxWidth,
    cuDeviceGetUuid, cuDeviceGetUuid_v2, cuDeviceTotalMem_v2,
};
pub use super::event::{
    cuEventCreate, cuEventDestroy, cuEventDestroy_v2, cuEventElapsedTime, cuEventElapsedTime_v2,
    cuEventQuery, cuEventRecord, cuEventRecordWithFlags, cuEventSynchronize, cuStreamWaitEvent,
};
pub use super::fill::{
    cuMemsetD2D8_v2, cuMemsetD2D8Async, cuMemsetD2D16_v2, cuMemsetD2D16Async, cuMemsetD2D32_v2,
    cuMemsetD2D32Async, cuMemsetD8_v2, cuMemsetD8Async, cuMemsetD16_v2, cuMemsetD16Async, cuMemsetD32_v2,
    cuMemsetD32Async,
};
pub use super::function::{
    cuFuncGetAttribute, cuFuncGetName, cuFuncGetParamCount, cuFuncGetParamInfo, cuFuncIsLoaded, cuFuncLoad,
    cuFuncSetAttribute, cuFuncSetCacheConfig, cuFuncSetSharedMemConfig, cuKernelGetAttribute,
    cuKernelGetParamCount, cuKernelGetParamInfo, cuKernelSetAttribute, cuKernelSetCacheConfig,
};
pub use super::graph::{
    cuGraphAddDependencies, cuGraphAddDependencies_v2, cuGraphClone, cuGraphCreate, cuGraphDestroy,
    cuGraphDestroyNode, cuGraphGetEdges, cuGraphGetEdges_v2, cuGraphGetId, cuGraphGetNodes,
    cuGraphGetRootNodes, cuGraphNodeFindInClone, cuGraphNodeGetContainingGraph, cuGraphNodeGetDependencies,
    cuGraphNodeGetDependencies_v2, cuGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes_v2,
    cuGraphNodeGetLocalId, cuGraphNodeGetType, cuGraphRemoveDependencies, cuGraphRemoveDependencies_v2,
};
pub use super::graph_exec::{
    cuGraphExecBatchMemOpNodeSetParams, cuGraphExecChildGraphNodeSetParams, cuGraphExecDestroy,
    cuGraphExecEventRecordNodeSetEvent, cuGraphExecEventWaitNodeSetEvent, cuGraphExecGetFlags,
    cuGraphExecGetId, cuGraphExecHostNodeSetParams, cuGraphExecKernelNodeSetParams,
    cuGraphExecKernelNodeSetParams_v2, cuGraphExecMemcpyNodeSetParams, cuGraphExecMemsetNodeSetParams,
    cuGraphExecNodeSetParams, cuGraphExecUpdate, cuGraphExecUpdate_v2, cuGraphInstantiate,
    cuGraphInstantiate_v2, cuGraphInstantiateWithFlags, cuGraphInstantiateWithParams, cuGraphLaunch,
    cuGraphNodeGetEnabled, cuGraphNodeSetEnabled, cuGraphUpload,
};
pub use super::graph_node::{
    cuGraphAddBatchMemOpNode, cuGraphAddChildGraphNode, cuGraphAddEmptyNode, cuGraphAddEventRecordNode,
    cuGraphAddEventWaitNode, cuGraphAddHostNode, cuGraphAddKernelNode, cuGraphAddKernelNode_v2,
    cuGraphAddMemAllocNode, cuGraphAddMemFreeNode, cuGraphAddMemcpyNode, cuGraphAddMemsetNode,
    cuGraphAddNode, cuGraphAddNode_v2, cuGraphBatchMemOpNodeSetParams, cuGraphChildGraphNodeGetGraph,
    cuGraphEventRecordNodeGetEvent, cuGraphEventRecordNodeSetEvent, cuGraphEventWaitNodeGetEvent,
    cuGraphEventWaitNodeSetEvent, cuGraphHostNodeGetParams, cuGraphHostNodeSetParams,
    cuGraphKernelNodeCopyAttributes, cuGraphKernelNodeGetAttribute, cuGraphKernelNodeGetParams,
    cuGraphKernelNodeGetParams_v2, cuGraphKernelNodeSetAttribute, cuGraphKernelNodeSetParams,
    cuGraphKernelNodeSetParams_v2, cuGraphMemAllocNodeGetParams, cuGraphMemFreeNodeGetParams,
    cuGraphMemcpyNodeGetParams, cuGraphMemcpyNodeSetParams, cuGraphMemsetNodeGetParams,
    cuGraphMemsetNodeSetParams, cuGraphNodeSetParams,
};
pub use super::green::{
    cuCtxGetDevResource, cuDevResourceGenerateDesc, cuDevSmResourceSplitByCount, cuDeviceGetDevResource,
    cuGreenCtxCreate, cuGreenCtxDestroy, cuGreenCtxGetDevResource, cuGreenCtxStreamCreate,
    cuStreamGetGreenCtx,
};
pub use super::host_memory::{
    cuMemAllocHost_v2, cuMemFreeHost, cuMemHostAlloc, cuMemHostGetDevicePointer_v2, cuMemHostGetFlags,
    cuMemHostRegister_v2, cuMemHostUnregister,
};
pub use super::init::{
    cuDriverGetVersion, cuFlushGPUDirectRDMAWrites, cuGetErrorName, cuGetErrorString, cuGetExportTable,
    cuGetProcAddress, cuGetProcAddress_v2, cuInit, cuProfilerStart, cuProfilerStop,
};
pub use super::ipc::{cuIpcCloseMemHandle, cuIpcGetMemHandle, cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2};
pub use super::launch::{cuLaunchCooperativeKernel, cuLaunchKernel, cuLaunchKernelEx};
pub use super::library::{
    cuKernelGetFunction, cuKernelGetLibrary, cuKernelGetName, cuLibraryEnumerateKernels, cuLibraryGetGlobal,
    cuLibraryGetKernel, cuLibraryGetKernelCount, cuLibraryGetModule, cuLibraryLoadData,
    cuLibraryLoadFromFile, cuLibraryUnload,
};
pub use super::link::{cuLinkAddData_v2, cuLinkAddFile_v2, cuLinkComplete, cuLinkCreate_v2, cuLinkDestroy};
pub use super::memory::{
    cuMemAdvise, cuMemAdvise_v2, cuMemAlloc_v2, cuMemAllocManaged, cuMemAllocPitch_v2, cuMemFree_v2,
    cuMemGetAddressRange_v2, cuMemGetInfo_v2, cuMemPrefetchAsync, cuMemPrefetchAsync_v2,
};
pub use super::module::{
    cuFuncGetModule, cuModuleEnumerateFunctions, cuModuleGetFunction, cuModuleGetFunctionCount,
    cuModuleGetGlobal_v2, cuModuleGetLoadingMode, cuModuleLoad, cuModuleLoadData, cuModuleLoadDataEx,
    cuModuleLoadFatBinary, cuModuleUnload,
};
pub use super::occupancy::{
    cuOccupancyAvailableDynamicSMemPerBlock, cuOccupancyMaxActiveBlocksPerMultiprocessor,
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, cuOccupancyMaxPotentialBlockSize,
    cuOccupancyMaxPotentialBlockSizeWithFlags,
};
pub use super::pointer::{cuPointerGetAttribute, cuPointerGetAttributes, cuPointerSetAttribute};
pub use super::pool::{
    cuDeviceGetDefaultMemPool, cuDeviceGetMemPool, cuDeviceGraphMemTrim, cuDeviceSetMemPool, cuMemAllocAsync,
    cuMemAllocFromPoolAsync, cuMemFreeAsync, cuMemPoolCreate, cuMemPoolDestroy, cuMemPoolGetAccess,
    cuMemPoolGetAttribute, cuMemPoolSetAccess, cuMemPoolSetAttribute, cuMemPoolTrimTo,
};
pub use super::primary::{
    cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2,
    cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxRetain,
    cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2,
};
pub use super::stream::{
    cuLaunchHostFunc, cuStreamAddCallback, cuStreamAttachMemAsync, cuStreamCopyAttributes, cuStreamCreate,
    cuStreamCreateWithPriority, cuStreamDestroy, cuStreamDestroy_v2, cuStreamGetAttribute, cuStreamGetCtx,
    cuStreamGetCtx_v2, cuStreamGetDevice, cuStreamGetFlags, cuStreamGetId, cuStreamGetPriority,
    cuStreamQuery, cuStreamSetAttribute, cuStreamSynchronize,
};
pub use super::stream_capture::{
    cuStreamBeginCapture, cuStreamBeginCapture_v2, cuStreamBeginCaptureToGraph, cuStreamEndCapture,
    cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v3, cuStreamIsCapturing,
    cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_v2,
    cuThreadExchangeStreamCaptureMode,
};
pub use super::stream_memory::{
    cuStreamBatchMemOp, cuStreamBatchMemOp_v2, cuStreamWaitValue32, cuStreamWaitValue32_v2,
    cuStreamWaitValue64, cuStreamWaitValue64_v2, cuStreamWriteValue32, cuStreamWriteValue32_v2,
    cuStreamWriteValue64, cuStreamWriteValue64_v2,
};
pub use super::user_object::{
    cuGraphReleaseUserObject, cuGraphRetainUserObject, cuUserObjectCreate, cuUserObjectRelease,
    cuUserObjectRetain,
};
pub use super::vmm::{
    cuMemAddressFree, cuMemAddressReserve, cuMemCreate, cuMemExportToShareableHandle, cuMemGetAccess,
    cuMemGetAllocationGranularity, cuMemGetAllocationPropertiesFromHandle, cuMemImportFromShareableHandle,
    cuMemMap, cuMemRelease, cuMemRetainAllocationHandle, cuMemSetAccess, cuMemUnmap,
};
