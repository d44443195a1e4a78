//! Arguments that no correct program passes, and the code that comes back.
//!
//! Programs depend on these answers more than one would think: they probe, they fall back, they retry. Each row is
//! one call; a whole table is judged before the case ends, and every row prints its code (`conformance --probe`), so
//! that one run on a card settles what its driver says.

use crate::answer::{Answer, Code};
use crate::context::Context;
use crate::driver::*;
use crate::memory::Pinned;
use crate::module::Module;
use crate::source;
use crate::stream::{Event, Stream};
use crate::suite::Case;
use anyhow::{Result, bail, ensure};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

pub const CASES: &[Case] = &[
    Case::new("bad/device_queries", device),
    Case::new("bad/contexts", contexts),
    Case::new("bad/memory", memory),
    Case::new("bad/copies", copies),
    Case::new("bad/host_memory", host_memory),
    Case::new("bad/modules", modules),
    Case::new("bad/functions_and_launches", functions),
    Case::new("bad/streams", streams),
    Case::new("bad/events", events),
    Case::new("bad/graphs", graphs),
    Case::new("bad/pools_and_attributes", pools),
    Case::new("bad/unchecked_by_the_card", unchecked).beyond_the_card(),
];

const VALUE: Code = Code::INVALID_VALUE;
const HANDLE: Code = Code::INVALID_HANDLE;
const DEVICE: Code = Code::INVALID_DEVICE;
const SUCCESS: Code = Code::SUCCESS;

/// A table of calls with the code that each answers.
struct Table {
    wrong: Vec<String>,
}

impl Table {
    fn new() -> Table {
        Table { wrong: Vec::new() }
    }

    fn row(&mut self, what: &str, answer: Answer, want: Code) {
        println!("probe: {}({what}) -> {}", answer.call, answer.code);
        if answer.code != want {
            self.wrong.push(format!("{}({what}): {}, wanted {want}", answer.call, answer.code));
        }
    }

    fn judge(self) -> Result<()> {
        if self.wrong.is_empty() { Ok(()) } else { bail!("{}", self.wrong.join("\n")) }
    }
}

fn device(c: &Context<'_>) -> Result<()> {
    let mut t = Table::new();
    let (mut number, mut name) = (0, [0; 8]);
    t.row("null", c.cuDeviceGetCount(null_mut()), VALUE);
    t.row("null, 0", c.cuDeviceGet(null_mut(), 0), VALUE);
    t.row("null, 8, 0", c.cuDeviceGetName(null_mut(), 8, 0), VALUE);
    t.row("name, 8, 99", c.cuDeviceGetName(name.as_mut_ptr(), 8, 99), DEVICE);
    let mut bytes = 0;
    t.row("bytes, 99", c.cuDeviceTotalMem_v2(&mut bytes, 99), DEVICE);
    t.row("bytes, -1", c.cuDeviceTotalMem_v2(&mut bytes, -1), DEVICE);
    t.row("value, -1, 0", c.cuDeviceGetAttribute(&mut number, CUdevice_attribute_enum(u32::MAX), 0), VALUE);
    let mut uuid = CUuuid::default();
    t.row("uuid, 99", c.cuDeviceGetUuid_v2(&mut uuid, 99), DEVICE);
    t.row("device, nonsense", c.cuDeviceGetByPCIBusId(&mut number, c"nonsense".as_ptr()), VALUE);
    t.judge()
}

/// Places without a place, where NVIDIA's driver looks without asking (or may) and takes the program down.
fn unchecked(c: &Context<'_>) -> Result<()> {
    let mut t = Table::new();
    let (mut number, mut name) = (0, [0; 8]);
    t.row("name, 0, 0", c.cuDeviceGetName(name.as_mut_ptr(), 0, 0), VALUE);
    t.row("null, 0", c.cuDeviceTotalMem_v2(null_mut(), 0), VALUE);
    t.row("null, warp size, 0", c.cuDeviceGetAttribute(null_mut(), CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), VALUE);
    t.row("null, 0", c.cuDeviceGetUuid_v2(null_mut(), 0), VALUE);
    t.row("device, null", c.cuDeviceGetByPCIBusId(&mut number, null()), VALUE);
    t.row("null, 13, 0", c.cuDeviceGetPCIBusId(null_mut(), 13, 0), VALUE);
    t.row("null, 0", c.cuDeviceComputeCapability(null_mut(), null_mut(), 0), VALUE);
    t.row("1, null", c.cuGetErrorName(CUresult(1), null_mut()), VALUE);
    t.row("1, null", c.cuGetErrorString(CUresult(1), null_mut()), VALUE);
    t.row("null", c.cuThreadExchangeStreamCaptureMode(null_mut()), VALUE);
    let (mut found, mut status) = (null_mut(), CUdriverProcAddressQueryResult_enum(77));
    t.row("null name", c.cuGetProcAddress_v2(null(), &mut found, 13000, 0, &mut status), VALUE);
    let name = c"cuInit".as_ptr();
    t.row("null place", c.cuGetProcAddress_v2(name, null_mut(), 13000, 0, &mut status), VALUE);
    t.judge()
}

fn contexts(c: &Context<'_>) -> Result<()> {
    let mut t = Table::new();
    t.row("null", c.cuCtxGetCurrent(null_mut()), VALUE);
    t.row("null", c.cuCtxGetDevice(null_mut()), VALUE);
    t.row("null", c.cuCtxGetFlags(null_mut()), VALUE);
    t.row("null, stack size", c.cuCtxGetLimit(null_mut(), CU_LIMIT_STACK_SIZE), VALUE);
    t.row("null", c.cuCtxPushCurrent_v2(null_mut()), VALUE);
    t.row("null", c.cuCtxDestroy_v2(null_mut()), VALUE);
    t.row("null, null", c.cuCtxGetApiVersion(null_mut(), null_mut()), VALUE);
    t.row("context, null", c.cuCtxGetId(c.handle(), null_mut()), VALUE);
    t.row("9", c.cuCtxSetCacheConfig(CUfunc_cache_enum(9)), VALUE);
    t.row("null, 0", c.cuDevicePrimaryCtxRetain(null_mut(), 0), VALUE);
    let mut context = null_mut();
    t.row("context, 99", c.cuDevicePrimaryCtxRetain(&mut context, 99), DEVICE);
    t.row("99", c.cuDevicePrimaryCtxRelease_v2(99), DEVICE);
    t.row("99", c.cuDevicePrimaryCtxReset_v2(99), DEVICE);
    t.row("0, null, null", c.cuDevicePrimaryCtxGetState(0, null_mut(), null_mut()), VALUE);
    t.row("0, 0xff", c.cuDevicePrimaryCtxSetFlags_v2(0, 0xff), VALUE);
    t.row("null, 0", c.cuCtxEnablePeerAccess(null_mut(), 0), Code::INVALID_CONTEXT);
    t.judge()
}

fn memory(c: &Context<'_>) -> Result<()> {
    let mut t = Table::new();
    let (mut address, mut pitch) = (0, 0);
    t.row("null, 4", c.cuMemAlloc_v2(null_mut(), 4), VALUE);
    t.row("address, 0", c.cuMemAlloc_v2(&mut address, 0), VALUE);
    t.row("1", c.cuMemFree_v2(1), VALUE);
    t.row("null, null", c.cuMemGetInfo_v2(null_mut(), null_mut()), SUCCESS);
    t.row("address, null, 4, 4, 4", c.cuMemAllocPitch_v2(&mut address, null_mut(), 4, 4, 4), VALUE);
    t.row("address, pitch, 4, 0, 4", c.cuMemAllocPitch_v2(&mut address, &mut pitch, 4, 0, 4), VALUE);
    t.row("address, pitch, 4, 4, 0", c.cuMemAllocPitch_v2(&mut address, &mut pitch, 4, 4, 0), VALUE);
    t.row("address, 0, global", c.cuMemAllocManaged(&mut address, 0, 1), VALUE);
    t.row("address, 4, 99", c.cuMemAllocManaged(&mut address, 4, 99), VALUE);
    t.row("null, 4, null", c.cuMemAllocAsync(null_mut(), 4, null_mut()), VALUE);
    address = 0x77;
    t.row("address, 0, null", c.cuMemAllocAsync(&mut address, 0, null_mut()), SUCCESS);
    ensure!(address == 0, "memory of no size is at {address:#x}");
    t.row("1, null", c.cuMemFreeAsync(1, null_mut()), VALUE);
    t.row("0, null", c.cuMemFreeAsync(0, null_mut()), SUCCESS);
    t.row("null, null, 0", c.cuMemGetAddressRange_v2(null_mut(), null_mut(), 0), SUCCESS);
    t.row("null, type, 1", c.cuPointerGetAttribute(null_mut(), CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 1), VALUE);
    t.row(
        "address, 99, 1",
        c.cuPointerGetAttribute((&raw mut address).cast(), CUpointer_attribute_enum(99), 1),
        VALUE,
    );
    t.judge()
}

fn copies(c: &Context<'_>) -> Result<()> {
    let mut t = Table::new();
    let buffer = c.zeros::<u32>(16)?;
    let (at, mut word) = (buffer.address(), 0u32);
    let here: *mut c_void = (&raw mut word).cast();
    t.row("0, host, 4", c.cuMemcpyHtoD_v2(0, here, 4), VALUE);
    t.row("device, null, 4", c.cuMemcpyHtoD_v2(at, null(), 4), VALUE);
    t.row("null, device, 4", c.cuMemcpyDtoH_v2(null_mut(), at, 4), VALUE);
    t.row("host, 0, 4", c.cuMemcpyDtoH_v2(here, 0, 4), VALUE);
    t.row("0, device, 4", c.cuMemcpyDtoD_v2(0, at, 4), VALUE);
    t.row("device, 0, 4", c.cuMemcpyDtoD_v2(at, 0, 4), VALUE);
    t.row("0, host, 4, null", c.cuMemcpyHtoDAsync_v2(0, here, 4, null_mut()), VALUE);
    t.row("null", c.cuMemcpy2D_v2(null()), VALUE);
    let mut copy = CUDA_MEMCPY2D { WidthInBytes: 4, Height: 1, ..Default::default() };
    t.row("no memory types", c.cuMemcpy2D_v2(&copy), VALUE);
    copy.srcMemoryType = CUmemorytype_enum(9);
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = at;
    t.row("memory type 9", c.cuMemcpy2D_v2(&copy), VALUE);
    t.row("0, 1, 4", c.cuMemsetD8_v2(0, 1, 4), VALUE);
    t.row("1, 1, 4", c.cuMemsetD32_v2(1, 1, 4), VALUE);
    t.row("device + 1, 1, 1", c.cuMemsetD32_v2(at + 1, 1, 1), VALUE);
    t.row("0, 8, 1, 4, 4", c.cuMemsetD2D8_v2(0, 8, 1, 4, 4), VALUE);
    t.row("pitch 2 for width 4", c.cuMemsetD2D8_v2(at, 2, 1, 4, 2), VALUE);
    t.judge()
}

fn host_memory(c: &Context<'_>) -> Result<()> {
    let mut t = Table::new();
    let (mut place, mut address, mut flags) = (null_mut(), 0, 0);
    let local = 0u32;
    let here: *mut c_void = (&raw const local).cast_mut().cast();
    let pinned = Pinned::<u32>::new(c, 4)?;
    t.row("null, 4, 0", c.cuMemHostAlloc(null_mut(), 4, 0), VALUE);
    t.row("place, 4, 0xff", c.cuMemHostAlloc(&mut place, 4, 0xff), VALUE);
    place = here;
    t.row("place, 0", c.cuMemAllocHost_v2(&mut place, 0), SUCCESS);
    ensure!(place.is_null(), "host memory of no size is at {place:?}");
    place = here;
    t.row("place, 0, 0", c.cuMemHostAlloc(&mut place, 0, 0), SUCCESS);
    ensure!(place.is_null(), "host memory of no size is at {place:?}");
    t.row("null", c.cuMemFreeHost(null_mut()), SUCCESS);
    t.row("local", c.cuMemFreeHost(here), VALUE);
    t.row("null, 4, 0", c.cuMemHostRegister_v2(null_mut(), 4, 0), VALUE);
    t.row("local, 0, 0", c.cuMemHostRegister_v2(here, 0, 0), VALUE);
    t.row("local, 4, 0xff", c.cuMemHostRegister_v2(here, 4, 0xff), VALUE);
    t.row("null", c.cuMemHostUnregister(null_mut()), VALUE);
    t.row("local", c.cuMemHostUnregister(here), Code::HOST_MEMORY_NOT_REGISTERED);
    t.row("local", c.cuMemHostGetDevicePointer_v2(&mut address, here, 0), VALUE);
    t.row("pinned, flags 1", c.cuMemHostGetDevicePointer_v2(&mut address, pinned.host().cast(), 1), VALUE);
    t.row("flags, local", c.cuMemHostGetFlags(&mut flags, here), VALUE);
    t.judge()
}

fn modules(c: &Context<'_>) -> Result<()> {
    let mut t = Table::new();
    let module = Module::load(c, source!("globals").usual())?;
    let (mut handle, mut function, mut address, mut bytes) = (null_mut(), null_mut(), 0, 0);
    let (m, name) = (module.handle(), c"counter".as_ptr());
    t.row("null, text", c.cuModuleLoadData(null_mut(), source!("globals").usual().as_ptr().cast()), VALUE);
    t.row("module, null", c.cuModuleLoadData(&mut handle, null()), VALUE);
    t.row("module, null", c.cuModuleLoad(&mut handle, null()), VALUE);
    t.row("module, null", c.cuModuleLoadFatBinary(&mut handle, null()), VALUE);
    t.row("null", c.cuModuleUnload(null_mut()), HANDLE);
    t.row("null, module, name", c.cuModuleGetFunction(null_mut(), m, c"touch_globals".as_ptr()), VALUE);
    t.row("function, null, name", c.cuModuleGetFunction(&mut function, null_mut(), name), HANDLE);
    t.row("function, module, null", c.cuModuleGetFunction(&mut function, m, null()), VALUE);
    t.row("function, module, empty", c.cuModuleGetFunction(&mut function, m, c"".as_ptr()), VALUE);
    t.row("null module", c.cuModuleGetGlobal_v2(&mut address, &mut bytes, null_mut(), name), HANDLE);
    t.row("null name", c.cuModuleGetGlobal_v2(&mut address, &mut bytes, m, null()), VALUE);
    let (mut library, mut kernel) = (null_mut(), null_mut());
    let (a, b, d) = (null_mut(), null_mut(), null_mut());
    t.row("null code", c.cuLibraryLoadData(&mut library, null(), a, b, 0, d, null_mut(), 0), VALUE);
    t.row("null", c.cuLibraryUnload(null_mut()), HANDLE);
    t.row("kernel, null, name", c.cuLibraryGetKernel(&mut kernel, null_mut(), name), HANDLE);
    t.row("null state", c.cuLinkComplete(null_mut(), null_mut(), null_mut()), HANDLE);
    t.row("null", c.cuLinkCreate_v2(0, null_mut(), null_mut(), null_mut()), VALUE);
    t.judge()
}

fn functions(c: &Context<'_>) -> Result<()> {
    let mut t = Table::new();
    let module = Module::load(c, source!("params").usual())?;
    let f = module.function("no_parameters")?.handle();
    let with = module.function("mixed")?.handle();
    let (mut number, mut size) = (0, 0);
    let launch = |f, grid, block, shared| {
        c.cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, null_mut(), null_mut(), null_mut())
    };
    t.row("null function", launch(null_mut(), 1, 1, 0), HANDLE);
    t.row("grid 0", launch(f, 0, 1, 0), VALUE);
    t.row("block 0", launch(f, 1, 0, 0), VALUE);
    t.row("block 1025", launch(f, 1, 1025, 0), VALUE);
    t.row("shared 1 MiB", launch(f, 1, 1, 1 << 20), VALUE);
    t.row("parameters missing", launch(with, 1, 1, 0), VALUE);
    t.row("null, registers, f", c.cuFuncGetAttribute(null_mut(), CU_FUNC_ATTRIBUTE_NUM_REGS, f), VALUE);
    t.row("null function", c.cuFuncGetAttribute(&mut number, CU_FUNC_ATTRIBUTE_NUM_REGS, null_mut()), HANDLE);
    t.row("attribute 99", c.cuFuncGetAttribute(&mut number, CUfunction_attribute_enum(99), f), VALUE);
    t.row("attribute 99", c.cuFuncSetAttribute(f, CUfunction_attribute_enum(99), 1), VALUE);
    let carveout = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    t.row("carveout 101", c.cuFuncSetAttribute(f, carveout, 101), VALUE);
    t.row("carveout -2", c.cuFuncSetAttribute(f, carveout, -2), VALUE);
    t.row("null module", c.cuFuncGetModule(null_mut(), f), VALUE);
    t.row("null function", c.cuFuncGetParamInfo(null_mut(), 0, &mut size, null_mut()), VALUE);
    t.row("cache 9", c.cuFuncSetCacheConfig(f, CUfunc_cache_enum(9)), VALUE);
    t.row("null", c.cuOccupancyMaxActiveBlocksPerMultiprocessor(null_mut(), f, 32, 0), VALUE);
    t.row(
        "null function",
        c.cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut number, null_mut(), 32, 0),
        HANDLE,
    );
    t.row("block 0", c.cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut number, f, 0, 0), VALUE);
    t.row("block -1", c.cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut number, f, -1, 0), VALUE);
    t.row("null config", c.cuLaunchKernelEx(null(), f, null_mut(), null_mut()), VALUE);
    let none = null_mut();
    t.row(
        "null function",
        c.cuLaunchCooperativeKernel(null_mut(), 1, 1, 1, 1, 1, 1, 0, none, null_mut()),
        HANDLE,
    );
    t.row("null function", c.cuLaunchHostFunc(null_mut(), None, null_mut()), VALUE);
    t.judge()
}

fn streams(c: &Context<'_>) -> Result<()> {
    let mut t = Table::new();
    let stream = Stream::new(c, 0)?;
    let (mut handle, mut flags, mut priority) = (null_mut(), 0, 0);
    t.row("null, 0", c.cuStreamCreate(null_mut(), 0), VALUE);
    t.row("stream, 2", c.cuStreamCreate(&mut handle, 2), VALUE);
    t.row("stream, 0xff", c.cuStreamCreateWithPriority(&mut handle, 0xff, 0), VALUE);
    t.row("null, 0, 0", c.cuStreamCreateWithPriority(null_mut(), 0, 0), VALUE);
    t.row("null", c.cuStreamDestroy_v2(null_mut()), HANDLE);
    t.row("legacy", c.cuStreamDestroy_v2(CU_STREAM_LEGACY), HANDLE);
    t.row("per thread", c.cuStreamDestroy_v2(CU_STREAM_PER_THREAD), HANDLE);
    t.row("stream, null", c.cuStreamGetFlags(stream.handle(), null_mut()), VALUE);
    t.row("stream, null", c.cuStreamGetPriority(stream.handle(), null_mut()), VALUE);
    t.row("stream, null", c.cuStreamGetCtx(stream.handle(), null_mut()), VALUE);
    t.row("stream, null", c.cuStreamGetId(stream.handle(), null_mut()), VALUE);
    t.row("null stream, flags", c.cuStreamGetFlags(null_mut(), &mut flags), SUCCESS);
    t.row("null stream, priority", c.cuStreamGetPriority(null_mut(), &mut priority), SUCCESS);
    t.row("stream, null event, 0", c.cuStreamWaitEvent(stream.handle(), null_mut(), 0), HANDLE);
    t.row("stream, null", c.cuStreamIsCapturing(stream.handle(), null_mut()), VALUE);
    t.row("not capturing", c.cuStreamEndCapture(stream.handle(), &mut null_mut()), Code::ILLEGAL_STATE);
    t.row("stream, null", c.cuStreamEndCapture(stream.handle(), null_mut()), Code::ILLEGAL_STATE);
    t.row("stream, mode 9", c.cuStreamBeginCapture_v2(stream.handle(), CUstreamCaptureMode_enum(9)), VALUE);
    let mut operation = CUstreamBatchMemOpParams::default();
    t.row("0 operations", c.cuStreamBatchMemOp_v2(stream.handle(), 0, &mut operation, 0), SUCCESS);
    t.judge()
}

fn events(c: &Context<'_>) -> Result<()> {
    let mut t = Table::new();
    let event = Event::new(c, 0)?;
    let stream = Stream::new(c, 0)?;
    let (mut handle, mut time) = (null_mut(), 0.0);
    t.row("null, 0", c.cuEventCreate(null_mut(), 0), VALUE);
    t.row("event, 0xff", c.cuEventCreate(&mut handle, 0xff), VALUE);
    t.row("event, interprocess", c.cuEventCreate(&mut handle, CU_EVENT_INTERPROCESS.0), VALUE);
    t.row("null", c.cuEventDestroy_v2(null_mut()), HANDLE);
    t.row("null event, stream", c.cuEventRecord(null_mut(), stream.handle()), HANDLE);
    t.row("event, stream, 0xff", c.cuEventRecordWithFlags(event.handle(), stream.handle(), 0xff), VALUE);
    t.row("null", c.cuEventQuery(null_mut()), HANDLE);
    t.row("null", c.cuEventSynchronize(null_mut()), HANDLE);
    t.row("null, event, event", c.cuEventElapsedTime(null_mut(), event.handle(), event.handle()), HANDLE);
    t.row("time, null, event", c.cuEventElapsedTime(&mut time, null_mut(), event.handle()), HANDLE);
    t.row("time, event, null", c.cuEventElapsedTime(&mut time, event.handle(), null_mut()), HANDLE);
    t.row(
        "time, unrecorded, unrecorded",
        c.cuEventElapsedTime(&mut time, event.handle(), event.handle()),
        HANDLE,
    );
    t.row("stream, event, flags 0xff", c.cuStreamWaitEvent(stream.handle(), event.handle(), 0xff), VALUE);
    t.judge()
}

fn graphs(c: &Context<'_>) -> Result<()> {
    let mut t = Table::new();
    let (mut graph, mut node, mut exec, mut count) = (null_mut(), null_mut(), null_mut(), 0);
    t.row("null, 0", c.cuGraphCreate(null_mut(), 0), VALUE);
    t.row("graph, 1", c.cuGraphCreate(&mut graph, 1), VALUE);
    c.cuGraphCreate(&mut graph, 0).ok()?;
    t.row("null", c.cuGraphDestroy(null_mut()), VALUE);
    t.row("null", c.cuGraphExecDestroy(null_mut()), VALUE);
    t.row("null", c.cuGraphDestroyNode(null_mut()), VALUE);
    t.row("null, graph, 0", c.cuGraphInstantiateWithFlags(null_mut(), graph, 0), VALUE);
    t.row("exec, null, 0", c.cuGraphInstantiateWithFlags(&mut exec, null_mut(), 0), VALUE);
    t.row("exec, graph, 0x8000", c.cuGraphInstantiateWithFlags(&mut exec, graph, 0x8000), VALUE);
    t.row("null, null", c.cuGraphLaunch(null_mut(), null_mut()), VALUE);
    t.row("null node", c.cuGraphAddEmptyNode(null_mut(), graph, null(), 0), VALUE);
    t.row("null dependencies, 3", c.cuGraphAddEmptyNode(&mut node, graph, null(), 3), VALUE);
    t.row("null params", c.cuGraphAddMemsetNode(&mut node, graph, null(), 0, null(), c.handle()), VALUE);
    t.row("null params", c.cuGraphAddHostNode(&mut node, graph, null(), 0, null()), VALUE);
    t.row("null graph", c.cuGraphGetNodes(null_mut(), null_mut(), &mut count), VALUE);
    t.row("null count", c.cuGraphGetNodes(graph, null_mut(), null_mut()), VALUE);
    t.row("null", c.cuGraphNodeGetType(null_mut(), null_mut()), VALUE);
    t.row("null", c.cuGraphClone(null_mut(), graph), VALUE);
    c.cuGraphDestroy(graph).ok()?;
    t.judge()
}

fn pools(c: &Context<'_>) -> Result<()> {
    let mut t = Table::new();
    let (mut pool, mut value) = (null_mut(), 0u64);
    t.row("null, 0", c.cuDeviceGetDefaultMemPool(null_mut(), 0), VALUE);
    t.row("pool, 99", c.cuDeviceGetDefaultMemPool(&mut pool, 99), DEVICE);
    t.row("pool, null", c.cuMemPoolCreate(&mut pool, null()), VALUE);
    let properties = CUmemPoolProps::default();
    t.row("pool, zeros", c.cuMemPoolCreate(&mut pool, &properties), VALUE);
    t.row("null", c.cuMemPoolDestroy(null_mut()), VALUE);
    t.row("null, 0", c.cuMemPoolTrimTo(null_mut(), 0), VALUE);
    c.cuDeviceGetDefaultMemPool(&mut pool, 0).ok()?;
    let place = (&raw mut value).cast();
    t.row("pool, 99, value", c.cuMemPoolGetAttribute(pool, CUmemPool_attribute_enum(99), place), VALUE);
    let threshold = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    t.row("pool, threshold, null", c.cuMemPoolGetAttribute(pool, threshold, null_mut()), VALUE);
    t.row("0, null", c.cuDeviceSetMemPool(0, null_mut()), VALUE);
    let mut address = 0;
    t.row("null pool", c.cuMemAllocFromPoolAsync(&mut address, 4, null_mut(), null_mut()), VALUE);
    t.judge()
}
