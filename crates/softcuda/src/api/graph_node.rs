//! Nodes of graphs: what they do.

use model::Dim3;
use softgpu::memory::{Copy3D, Fill, Pattern};

use super::copy::Transfer;
use super::launch::{Arguments, Shape, prepare};
use super::prelude::*;
use super::stream_capture::{nodes, plain_edges};
use super::stream_memory::batch;
use crate::entry::{HostFunction, NodeParams};
use crate::state::event::Event;
use crate::state::function::Function;
use crate::state::graph::{Graph, Node};
use crate::state::graph_memory::{self, GraphMemory};
use crate::state::library::LibraryKernel;
use crate::state::operation::{KernelLaunch, Operation};

/// The context a node works in: the one it names, or the calling thread's.
fn context_of(handle: Handle<Context>) -> Result<Arc<Context>> {
    if handle.is_null() { current::context() } else { handle.get() }
}

pub fn kernel(params: &CUDA_KERNEL_NODE_PARAMS) -> Result<Operation> {
    let context = context_of(Handle::of(params.ctx.addr() as u64))?;
    let named = if params.func.is_null() { params.kern.addr() } else { params.func.addr() };
    let shape = Shape {
        grid: Dim3::new(params.gridDimX, params.gridDimY, params.gridDimZ),
        block: Dim3::new(params.blockDimX, params.blockDimY, params.blockDimZ),
        dynamic_shared: params.sharedMemBytes,
        cooperative: false,
        priority: None,
        sms: None,
    };
    let arguments = Arguments {
        kernel_params: Address(params.kernelParams.expose_provenance() as u64).values(),
        extra: Address(params.extra.expose_provenance() as u64).values(),
    };
    Ok(Operation::Kernel(prepare(&context, Handle::of(named as u64), shape, &arguments)?))
}

/// The older struct is the beginning of the newer one.
pub fn widen(old: &CUDA_KERNEL_NODE_PARAMS_v1) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: old.func,
        gridDimX: old.gridDimX,
        gridDimY: old.gridDimY,
        gridDimZ: old.gridDimZ,
        blockDimX: old.blockDimX,
        blockDimY: old.blockDimY,
        blockDimZ: old.blockDimZ,
        sharedMemBytes: old.sharedMemBytes,
        kernelParams: old.kernelParams,
        extra: old.extra,
        ..CUDA_KERNEL_NODE_PARAMS::default()
    }
}

pub fn copy(params: &CUDA_MEMCPY3D, context: Handle<Context>) -> Result<Operation> {
    let context = context_of(context)?;
    let transfer = Transfer::of_3d(params)?;
    transfer.check(&context)?;
    Ok(Operation::Copy(transfer.copy))
}

pub fn fill(params: &CUDA_MEMSET_NODE_PARAMS, context: Handle<Context>) -> Result<Operation> {
    let context = context_of(context)?;
    let pattern = match params.elementSize {
        1 => Pattern::One(params.value as u8),
        2 => Pattern::Two(params.value as u16),
        4 => Pattern::Four(params.value),
        _ => return refuse(CUDA_ERROR_INVALID_VALUE),
    };
    let (width, height) = (params.width as u64, params.height as u64);
    require(width > 0 && height > 0 && params.dst.is_multiple_of(pattern.bytes()))?;
    let pitch = if height == 1 { width.saturating_mul(pattern.bytes()) } else { params.pitch as u64 };
    let operation = Operation::Fill(Fill { to: params.dst, pitch, pattern, width, height });
    operation.check(&context.driver.space)?;
    Ok(operation)
}

pub fn host(params: &CUDA_HOST_NODE_PARAMS) -> Result<Operation> {
    let argument = Address(params.userData.expose_provenance() as u64);
    Ok(Operation::Host(HostFunction::new(params.fn_, argument)?))
}

pub fn words(params: &CUDA_BATCH_MEM_OP_NODE_PARAMS) -> Result<Operation> {
    let context = context_of(Handle::of(params.ctx.addr() as u64))?;
    require(params.flags == 0)?;
    let array = Address(params.paramArray.expose_provenance() as u64).values();
    let operation = Operation::Words(batch(&array, params.count as usize)?.into());
    operation.check(&context.driver.space)?;
    Ok(operation)
}

/// Only what graphs allocate is theirs to free.
fn free(address: CUdeviceptr) -> Result<Operation> {
    require(graph_memory::contains(address))?;
    Ok(Operation::Free(address))
}

/// A child graph is copied when it is added.
fn child(graph: Handle<Graph>) -> Result<Operation> {
    Ok(Operation::Child(graph.get()?.duplicate()?))
}

/// An operation of any kind, from the struct that can hold any.
pub fn any(params: &CUgraphNodeParams) -> Result<Operation> {
    match crate::entry::node_params(params) {
        NodeParams::Kernel(params) => kernel(&params),
        NodeParams::Copy(params, context) => copy(&params, context),
        NodeParams::Fill(params, context) => fill(&params, context),
        NodeParams::Host(params) => host(&params),
        NodeParams::Child(graph) => child(graph),
        NodeParams::Record(event) => Ok(Operation::Record(event.get()?)),
        NodeParams::Wait(event) => Ok(Operation::Wait(event.get()?)),
        NodeParams::Words(params) => words(&params),
        NodeParams::Empty => Ok(Operation::Empty),
        NodeParams::Other(kind) => Err(Error::unsupported(format!("a graph node of type {kind}"))),
    }
}

fn add(
    out: &Out<CUgraphNode>,
    graph: Handle<Graph>,
    dependencies: &Array<CUgraphNode>,
    count: usize,
    operation: impl FnOnce() -> Result<Operation>,
) -> Result<()> {
    driver()?;
    out.check()?;
    let graph = graph.get()?;
    let after = nodes(dependencies, count)?;
    out.set(graph.add(operation()?, &after)?.handle.raw())
}

/// Functions that add a node: what they are told, and the operation it makes.
macro_rules! adders {
    ($($name:ident($($arg:ident: $type:ty),*) = $operation:expr;)*) => {$(
        pub fn $name(
            phGraphNode: Out<CUgraphNode>,
            hGraph: Handle<Graph>,
            dependencies: Array<CUgraphNode>,
            numDependencies: usize,
            $($arg: $type),*
        ) -> Result<()> {
            add(&phGraphNode, hGraph, &dependencies, numDependencies, || $operation)
        }
    )*};
}

adders! {
    cuGraphAddKernelNode_v2(nodeParams: In<CUDA_KERNEL_NODE_PARAMS>) = kernel(&nodeParams.get()?);
    cuGraphAddKernelNode(nodeParams: In<CUDA_KERNEL_NODE_PARAMS_v1>) = kernel(&widen(&nodeParams.get()?));
    cuGraphAddMemcpyNode(copyParams: In<CUDA_MEMCPY3D>, ctx: Handle<Context>) = copy(&copyParams.get()?, ctx);
    cuGraphAddMemsetNode(memsetParams: In<CUDA_MEMSET_NODE_PARAMS>, ctx: Handle<Context>) = fill(&memsetParams.get()?, ctx);
    cuGraphAddHostNode(nodeParams: In<CUDA_HOST_NODE_PARAMS>) = host(&nodeParams.get()?);
    cuGraphAddChildGraphNode(childGraph: Handle<Graph>) = child(childGraph);
    cuGraphAddEmptyNode() = Ok(Operation::Empty);
    cuGraphAddEventRecordNode(event: Handle<Event>) = Ok(Operation::Record(event.get()?));
    cuGraphAddEventWaitNode(event: Handle<Event>) = Ok(Operation::Wait(event.get()?));
    cuGraphAddBatchMemOpNode(nodeParams: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>) = words(&nodeParams.get()?);
    cuGraphAddMemFreeNode(dptr: CUdeviceptr) = free(dptr);
    cuGraphAddNode(nodeParams: In<CUgraphNodeParams>) = any(&nodeParams.get()?);
}

/// Gives its address back in the parameters.
pub fn cuGraphAddMemAllocNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: Handle<Graph>,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    nodeParams: Out<CUDA_MEM_ALLOC_NODE_PARAMS>,
) -> Result<()> {
    let driver = driver()?;
    let mut params = nodeParams.read()?;
    require(params.poolProps.allocType == CU_MEM_ALLOCATION_TYPE_PINNED)?;
    driver.check_device(crate::entry::location_id(&params.poolProps.location))?;
    let memory = GraphMemory::allocate(driver, params.bytesize as u64)?;
    params.dptr = memory.address();
    add(&phGraphNode, hGraph, &dependencies, numDependencies, || Ok(Operation::Allocate(memory)))?;
    nodeParams.set(params)
}

pub fn cuGraphMemAllocNodeGetParams(
    hNode: Handle<Node>,
    params_out: Out<CUDA_MEM_ALLOC_NODE_PARAMS>,
) -> Result<()> {
    driver()?;
    let Operation::Allocate(memory) = hNode.get()?.operation() else {
        return refuse(CUDA_ERROR_INVALID_VALUE);
    };
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS::default();
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CU_MEM_LOCATION_TYPE_DEVICE;
    params.bytesize = memory.bytes() as usize;
    params.dptr = memory.address();
    params_out.set(params)
}

pub fn cuGraphMemFreeNodeGetParams(hNode: Handle<Node>, dptr_out: Out<CUdeviceptr>) -> Result<()> {
    driver()?;
    let Operation::Free(address) = hNode.get()?.operation() else { return refuse(CUDA_ERROR_INVALID_VALUE) };
    dptr_out.set(address)
}

pub fn cuGraphAddNode_v2(
    phGraphNode: Out<CUgraphNode>,
    hGraph: Handle<Graph>,
    dependencies: Array<CUgraphNode>,
    dependencyData: Array<CUgraphEdgeData>,
    numDependencies: usize,
    nodeParams: In<CUgraphNodeParams>,
) -> Result<()> {
    plain_edges(&dependencyData, numDependencies)?;
    cuGraphAddNode(phGraphNode, hGraph, dependencies, numDependencies, nodeParams)
}

/// Replaces what a node does by something of the same kind.
fn set(node: Handle<Node>, operation: impl FnOnce() -> Result<Operation>) -> Result<()> {
    driver()?;
    let node = node.get()?;
    let operation = operation()?;
    require(std::mem::discriminant(&node.operation()) == std::mem::discriminant(&operation))?;
    node.set_operation(operation);
    Ok(())
}

pub fn cuGraphNodeSetParams(hNode: Handle<Node>, nodeParams: In<CUgraphNodeParams>) -> Result<()> {
    set(hNode, || any(&nodeParams.get()?))
}

pub fn cuGraphKernelNodeSetParams_v2(
    hNode: Handle<Node>,
    nodeParams: In<CUDA_KERNEL_NODE_PARAMS>,
) -> Result<()> {
    set(hNode, || keep_attributes(hNode, kernel(&nodeParams.get()?)?))
}

pub fn cuGraphKernelNodeSetParams(
    hNode: Handle<Node>,
    nodeParams: In<CUDA_KERNEL_NODE_PARAMS_v1>,
) -> Result<()> {
    set(hNode, || keep_attributes(hNode, kernel(&widen(&nodeParams.get()?))?))
}

/// Attributes are set apart from parameters and outlive them.
fn keep_attributes(node: Handle<Node>, operation: Operation) -> Result<Operation> {
    Ok(match (node.get()?.operation(), operation) {
        (Operation::Kernel(old), Operation::Kernel(new)) => Operation::Kernel(new.with_attributes_of(&old)),
        (_, operation) => operation,
    })
}

pub fn cuGraphMemcpyNodeSetParams(hNode: Handle<Node>, nodeParams: In<CUDA_MEMCPY3D>) -> Result<()> {
    set(hNode, || copy(&nodeParams.get()?, Handle::of(0)))
}

pub fn cuGraphMemsetNodeSetParams(
    hNode: Handle<Node>,
    nodeParams: In<CUDA_MEMSET_NODE_PARAMS>,
) -> Result<()> {
    set(hNode, || fill(&nodeParams.get()?, Handle::of(0)))
}

pub fn cuGraphHostNodeSetParams(hNode: Handle<Node>, nodeParams: In<CUDA_HOST_NODE_PARAMS>) -> Result<()> {
    set(hNode, || host(&nodeParams.get()?))
}

pub fn cuGraphBatchMemOpNodeSetParams(
    hNode: Handle<Node>,
    nodeParams: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> Result<()> {
    set(hNode, || words(&nodeParams.get()?))
}

pub fn cuGraphEventRecordNodeSetEvent(hNode: Handle<Node>, event: Handle<Event>) -> Result<()> {
    set(hNode, || Ok(Operation::Record(event.get()?)))
}

pub fn cuGraphEventWaitNodeSetEvent(hNode: Handle<Node>, event: Handle<Event>) -> Result<()> {
    set(hNode, || Ok(Operation::Wait(event.get()?)))
}

pub fn cuGraphKernelNodeGetParams_v2(
    hNode: Handle<Node>,
    nodeParams: Out<CUDA_KERNEL_NODE_PARAMS>,
) -> Result<()> {
    driver()?;
    let node = hNode.get()?;
    let Operation::Kernel(launch) = node.operation() else { return refuse(CUDA_ERROR_INVALID_VALUE) };
    // A kernel of a library is told apart from a function of a module by the handle it was given with.
    let is_function = launch.named == launch.function.handle.value();
    let (func, kern) = if is_function { (launch.named, 0) } else { (0, launch.named) };
    nodeParams.set(CUDA_KERNEL_NODE_PARAMS {
        func: Handle::<Function>::of(func).raw(),
        gridDimX: launch.grid.x,
        gridDimY: launch.grid.y,
        gridDimZ: launch.grid.z,
        blockDimX: launch.block.x,
        blockDimY: launch.block.y,
        blockDimZ: launch.block.z,
        sharedMemBytes: launch.dynamic_shared,
        kernelParams: node.show_parameters(&launch),
        extra: std::ptr::null_mut(),
        kern: Handle::<LibraryKernel>::of(kern).raw(),
        ctx: current::handle().raw(),
    })
}

pub fn cuGraphKernelNodeGetParams(
    hNode: Handle<Node>,
    nodeParams: Out<CUDA_KERNEL_NODE_PARAMS_v1>,
) -> Result<()> {
    nodeParams.check()?;
    let mut wide = CUDA_KERNEL_NODE_PARAMS::default();
    cuGraphKernelNodeGetParams_v2(hNode, Out::to(&mut wide))?;
    nodeParams.set(CUDA_KERNEL_NODE_PARAMS_v1 {
        func: wide.func,
        gridDimX: wide.gridDimX,
        gridDimY: wide.gridDimY,
        gridDimZ: wide.gridDimZ,
        blockDimX: wide.blockDimX,
        blockDimY: wide.blockDimY,
        blockDimZ: wide.blockDimZ,
        sharedMemBytes: wide.sharedMemBytes,
        kernelParams: wide.kernelParams,
        extra: wide.extra,
    })
}

pub fn cuGraphMemcpyNodeGetParams(hNode: Handle<Node>, nodeParams: Out<CUDA_MEMCPY3D>) -> Result<()> {
    let driver = driver()?;
    let Operation::Copy(Copy3D { plane, to_slice, from_slice, depth }) = hNode.get()?.operation() else {
        return refuse(CUDA_ERROR_INVALID_VALUE);
    };
    let kind = |address| match driver.space.lookup(address) {
        Some(_) => CU_MEMORYTYPE_DEVICE,
        None => CU_MEMORYTYPE_HOST,
    };
    nodeParams.set(CUDA_MEMCPY3D {
        srcMemoryType: kind(plane.from),
        srcHost: Address(plane.from).pointer(),
        srcDevice: plane.from,
        srcPitch: plane.from_pitch as usize,
        srcHeight: from_slice.checked_div(plane.from_pitch).unwrap_or(0) as usize,
        dstMemoryType: kind(plane.to),
        dstHost: Address(plane.to).pointer(),
        dstDevice: plane.to,
        dstPitch: plane.to_pitch as usize,
        dstHeight: to_slice.checked_div(plane.to_pitch).unwrap_or(0) as usize,
        WidthInBytes: plane.width as usize,
        Height: plane.height as usize,
        Depth: depth as usize,
        ..CUDA_MEMCPY3D::default()
    })
}

pub fn cuGraphMemsetNodeGetParams(
    hNode: Handle<Node>,
    nodeParams: Out<CUDA_MEMSET_NODE_PARAMS>,
) -> Result<()> {
    driver()?;
    let Operation::Fill(fill) = hNode.get()?.operation() else { return refuse(CUDA_ERROR_INVALID_VALUE) };
    let value = match fill.pattern {
        Pattern::One(value) => u32::from(value),
        Pattern::Two(value) => u32::from(value),
        Pattern::Four(value) => value,
    };
    nodeParams.set(CUDA_MEMSET_NODE_PARAMS {
        dst: fill.to,
        pitch: fill.pitch as usize,
        value,
        elementSize: fill.pattern.bytes() as c_uint,
        width: fill.width as usize,
        height: fill.height as usize,
    })
}

pub fn cuGraphHostNodeGetParams(hNode: Handle<Node>, nodeParams: Out<CUDA_HOST_NODE_PARAMS>) -> Result<()> {
    driver()?;
    let Operation::Host(function) = hNode.get()?.operation() else { return refuse(CUDA_ERROR_INVALID_VALUE) };
    let (fn_, argument) = function.parts();
    nodeParams.set(CUDA_HOST_NODE_PARAMS { fn_, userData: argument.pointer() })
}

pub fn cuGraphEventRecordNodeGetEvent(hNode: Handle<Node>, event_out: Out<CUevent>) -> Result<()> {
    driver()?;
    let Operation::Record(event) = hNode.get()?.operation() else { return refuse(CUDA_ERROR_INVALID_VALUE) };
    event_out.set(event.handle.raw())
}

pub fn cuGraphEventWaitNodeGetEvent(hNode: Handle<Node>, event_out: Out<CUevent>) -> Result<()> {
    driver()?;
    let Operation::Wait(event) = hNode.get()?.operation() else { return refuse(CUDA_ERROR_INVALID_VALUE) };
    event_out.set(event.handle.raw())
}

pub fn cuGraphChildGraphNodeGetGraph(hNode: Handle<Node>, phGraph: Out<CUgraph>) -> Result<()> {
    driver()?;
    let Operation::Child(graph) = hNode.get()?.operation() else { return refuse(CUDA_ERROR_INVALID_VALUE) };
    phGraph.set(graph.handle.raw())
}

pub fn cuGraphKernelNodeGetAttribute(
    hNode: Handle<Node>,
    attr: CUkernelNodeAttrID,
    value_out: Out<CUkernelNodeAttrValue>,
) -> Result<()> {
    driver()?;
    value_out.check()?;
    let Operation::Kernel(launch) = hNode.get()?.operation() else { return refuse(CUDA_ERROR_INVALID_VALUE) };
    match attr {
        CU_LAUNCH_ATTRIBUTE_COOPERATIVE => value_out.cast::<c_int>().set(c_int::from(launch.cooperative)),
        CU_LAUNCH_ATTRIBUTE_PRIORITY => value_out.cast::<c_int>().set(launch.priority.unwrap_or(0)),
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => value_out.set(CUkernelNodeAttrValue::default()),
        _ => refuse(CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn cuGraphKernelNodeSetAttribute(
    hNode: Handle<Node>,
    attr: CUkernelNodeAttrID,
    value: In<CUkernelNodeAttrValue>,
) -> Result<()> {
    driver()?;
    let node = hNode.get()?;
    let Operation::Kernel(mut launch) = node.operation() else { return refuse(CUDA_ERROR_INVALID_VALUE) };
    let number = value.cast::<c_int>().get()?;
    match attr {
        CU_LAUNCH_ATTRIBUTE_COOPERATIVE => launch.cooperative = number != 0,
        CU_LAUNCH_ATTRIBUTE_PRIORITY => launch.priority = Some(number),
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => {}
        _ => return refuse(CUDA_ERROR_INVALID_VALUE),
    }
    node.set_operation(Operation::Kernel(launch));
    Ok(())
}

pub fn cuGraphKernelNodeCopyAttributes(dst: Handle<Node>, src: Handle<Node>) -> Result<()> {
    driver()?;
    let (to, from) = (dst.get()?, src.get()?);
    let (Operation::Kernel(launch), Operation::Kernel(other)) = (to.operation(), from.operation()) else {
        return refuse(CUDA_ERROR_INVALID_VALUE);
    };
    let launch = KernelLaunch { cooperative: other.cooperative, priority: other.priority, ..launch };
    to.set_operation(Operation::Kernel(launch));
    Ok(())
}
