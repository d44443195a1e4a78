//! Graphs built node by node.

use crate::answer::Code;
use crate::cases::support::{Gate, Log, ORDER};
use crate::context::Context;
use crate::driver::*;
use crate::memory::Buffer;
use crate::module::{Arguments, Function, Module};
use crate::stream::{Event, NON_BLOCKING, Stream};
use crate::suite::Case;
use crate::{args, compare};
use anyhow::{Result, ensure};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

pub const CASES: &[Case] = &[
    Case::new("graph/every_kind_of_node", every_kind),
    Case::new("graph/dependencies_order_nodes", diamond),
    Case::new("graph/child_and_clone", child),
    Case::new("graph/parameters_can_be_changed", change_parameters),
    Case::new("graph/whole_update", whole_update),
    Case::new("graph/launches_follow_the_stream", in_stream),
    Case::new("graph/event_nodes", event_nodes),
    Case::new("graph/inspection", inspection),
    Case::new("graph/refusals", refusals),
];

const COUNT: usize = 64;

pub fn new_graph(context: &Context<'_>) -> Result<CUgraph> {
    let mut graph = ptr::null_mut();
    context.cuGraphCreate(&mut graph, 0).ok()?;
    Ok(graph)
}

pub fn instantiate(context: &Context<'_>, graph: CUgraph) -> Result<CUgraphExec> {
    let mut exec = ptr::null_mut();
    context.cuGraphInstantiateWithFlags(&mut exec, graph, 0).ok()?;
    Ok(exec)
}

/// A kernel node of one block of 64 threads; the driver copies the arguments.
fn kernel_node(
    context: &Context<'_>,
    graph: CUgraph,
    after: &[CUgraphNode],
    kernel: Function<'_>,
    mut arguments: Arguments,
) -> Result<CUgraphNode> {
    let mut pointers = arguments.pointers();
    let params = kernel_params(kernel, &mut pointers);
    let mut node = ptr::null_mut();
    context.cuGraphAddKernelNode_v2(&mut node, graph, after.as_ptr(), after.len(), &params).ok()?;
    Ok(node)
}

fn kernel_params(kernel: Function<'_>, pointers: &mut [*mut c_void]) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: kernel.handle(),
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: COUNT as u32,
        blockDimY: 1,
        blockDimZ: 1,
        kernelParams: pointers.as_mut_ptr(),
        ..Default::default()
    }
}

fn memset_params(buffer: &Buffer<'_, u32>, value: u32) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS {
        dst: buffer.address(),
        pitch: 0,
        value,
        elementSize: 4,
        width: COUNT,
        height: 1,
    }
}

fn copy_params(from: &Buffer<'_, u32>, to: &Buffer<'_, u32>) -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcMemoryType: CU_MEMORYTYPE_DEVICE,
        srcDevice: from.address(),
        dstMemoryType: CU_MEMORYTYPE_DEVICE,
        dstDevice: to.address(),
        WidthInBytes: 4 * COUNT,
        Height: 1,
        Depth: 1,
        ..Default::default()
    }
}

static CALLS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn count_call(_: *mut c_void) {
    CALLS.fetch_add(1, Ordering::SeqCst);
}

fn every_kind(context: &Context<'_>) -> Result<()> {
    ORDER.each_variant(context, |module| {
        let affine = module.function("affine")?;
        let (values, copy) = (context.zeros::<u32>(COUNT)?, context.zeros::<u32>(COUNT)?);
        let stream = Stream::new(context, NON_BLOCKING)?;
        context.synchronize()?;
        let graph = new_graph(context)?;
        let (mut fill, mut copied, mut called, mut empty) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let own = context.handle();
        context
            .cuGraphAddMemsetNode(&mut fill, graph, ptr::null(), 0, &memset_params(&values, 5), own)
            .ok()?;
        let scaled = kernel_node(context, graph, &[fill], affine, args![&values, 3u32, COUNT as i32])?;
        let params = copy_params(&values, &copy);
        context.cuGraphAddMemcpyNode(&mut copied, graph, &scaled, 1, &params, own).ok()?;
        let host = CUDA_HOST_NODE_PARAMS { fn_: Some(count_call), userData: ptr::null_mut() };
        context.cuGraphAddHostNode(&mut called, graph, &copied, 1, &host).ok()?;
        context.cuGraphAddEmptyNode(&mut empty, graph, &called, 1).ok()?;
        kernel_node(context, graph, &[empty], affine, args![&copy, 10u32, COUNT as i32])?;
        let exec = instantiate(context, graph)?;
        // The executable graph does not need the graph any more.
        context.cuGraphDestroy(graph).ok()?;
        let before = CALLS.load(Ordering::SeqCst);
        for _ in 0..3 {
            context.cuGraphLaunch(exec, stream.handle()).ok()?;
        }
        stream.synchronize()?;
        ensure!(CALLS.load(Ordering::SeqCst) == before + 3, "the host function was not called three times");
        let want: Vec<u32> = (0..COUNT as u32).map(|i| (15 + i) * 10 + i).collect();
        compare::equal(&copy.read()?, &want)?;
        context.cuGraphExecDestroy(exec).ok()
    })
}

fn diamond(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let append = module.function("append")?;
    let (tokens, length) = (context.zeros::<u32>(256)?, context.zeros::<u32>(1)?);
    let stream = Stream::new(context, NON_BLOCKING)?;
    let graph = new_graph(context)?;
    let node = |after: &[CUgraphNode], token: u32| {
        kernel_node(context, graph, after, append, args![&tokens, &length, token])
    };
    // Added in an order that is not the order of execution.
    let last = node(&[], 9)?;
    let left = node(&[], 2)?;
    let first = node(&[], 1)?;
    let right = node(&[first], 3)?;
    let (from, to) = ([first, left, right], [left, last, last]);
    context.cuGraphAddDependencies_v2(graph, from.as_ptr(), to.as_ptr(), ptr::null(), 3).ok()?;
    let exec = instantiate(context, graph)?;
    for _ in 0..20 {
        context.cuGraphLaunch(exec, stream.handle()).ok()?;
    }
    stream.synchronize()?;
    let tokens = tokens.read()?;
    for (round, seen) in tokens[..80].chunks(4).enumerate() {
        let right_order = seen[0] == 1 && seen[3] == 9 && (seen[1..3] == [2, 3] || seen[1..3] == [3, 2]);
        ensure!(right_order, "round {round} ran as {seen:?}");
    }
    context.cuGraphExecDestroy(exec).ok()?;
    context.cuGraphDestroy(graph).ok()
}

fn child(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let affine = module.function("affine")?;
    let values = context.zeros::<u32>(COUNT)?;
    let inner = new_graph(context)?;
    let first = kernel_node(context, inner, &[], affine, args![&values, 2u32, COUNT as i32])?;
    kernel_node(context, inner, &[first], affine, args![&values, 3u32, COUNT as i32])?;
    let outer = new_graph(context)?;
    let before = kernel_node(context, outer, &[], affine, args![&values, 5u32, COUNT as i32])?;
    let mut child = ptr::null_mut();
    context.cuGraphAddChildGraphNode(&mut child, outer, &before, 1, inner).ok()?;
    kernel_node(context, outer, &[child], affine, args![&values, 7u32, COUNT as i32])?;
    context.cuGraphDestroy(inner).ok()?;
    let mut clone = ptr::null_mut();
    context.cuGraphClone(&mut clone, outer).ok()?;
    context.cuGraphDestroy(outer).ok()?;
    let exec = instantiate(context, clone)?;
    context.cuGraphLaunch(exec, ptr::null_mut()).ok()?;
    let want: Vec<u32> =
        (0..COUNT as u32).map(|i| [5, 2, 3, 7].iter().fold(0u32, |x, factor| x * factor + i)).collect();
    compare::equal(&values.read()?, &want)?;
    context.cuGraphExecDestroy(exec).ok()?;
    context.cuGraphDestroy(clone).ok()
}

fn change_parameters(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let affine = module.function("affine")?;
    let (values, other) = (context.zeros::<u32>(COUNT)?, context.zeros::<u32>(COUNT)?);
    let graph = new_graph(context)?;
    let mut fill = ptr::null_mut();
    let own = context.handle();
    context.cuGraphAddMemsetNode(&mut fill, graph, ptr::null(), 0, &memset_params(&values, 1), own).ok()?;
    let node = kernel_node(context, graph, &[fill], affine, args![&values, 10u32, COUNT as i32])?;
    let exec = instantiate(context, graph)?;
    context.cuGraphLaunch(exec, ptr::null_mut()).ok()?;
    let expect =
        |start: u32, factor: u32| -> Vec<u32> { (0..COUNT as u32).map(|i| start * factor + i).collect() };
    compare::equal(&values.read()?, &expect(1, 10))?;
    let mut arguments = args![&values, 100u32, COUNT as i32];
    let mut pointers = arguments.pointers();
    let params = kernel_params(affine, &mut pointers);
    context.cuGraphExecKernelNodeSetParams_v2(exec, node, &params).ok()?;
    context.cuGraphExecMemsetNodeSetParams(exec, fill, &memset_params(&values, 4), own).ok()?;
    context.cuGraphLaunch(exec, ptr::null_mut()).ok()?;
    compare::equal(&values.read()?, &expect(4, 100))?;
    // A node can be switched off in the executable graph.
    context.cuGraphNodeSetEnabled(exec, node, 0).ok()?;
    context.cuGraphLaunch(exec, ptr::null_mut()).ok()?;
    compare::equal(&values.read()?, &[4; COUNT])?;
    context.cuGraphExecMemsetNodeSetParams(exec, fill, &memset_params(&other, 6), own).ok()?;
    context.cuGraphLaunch(exec, ptr::null_mut()).ok()?;
    compare::equal(&other.read()?, &[6; COUNT])?;
    context.cuGraphExecDestroy(exec).ok()?;
    context.cuGraphDestroy(graph).ok()
}

fn whole_update(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let affine = module.function("affine")?;
    let values = context.zeros::<u32>(COUNT)?;
    let build = |factor: u32, nodes: usize| -> Result<CUgraph> {
        let graph = new_graph(context)?;
        let mut after = Vec::new();
        for _ in 0..nodes {
            after = vec![kernel_node(context, graph, &after, affine, args![&values, factor, COUNT as i32])?];
        }
        Ok(graph)
    };
    let (first, second, longer) = (build(1, 2)?, build(3, 2)?, build(3, 3)?);
    let exec = instantiate(context, first)?;
    let mut info = CUgraphExecUpdateResultInfo::default();
    context.cuGraphExecUpdate_v2(exec, second, &mut info).ok()?;
    ensure!(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS, "{:?}", info.result);
    context.cuGraphLaunch(exec, ptr::null_mut()).ok()?;
    let want: Vec<u32> = (0..COUNT as u32).map(|i| i * 3 + i).collect();
    compare::equal(&values.read()?, &want)?;
    context.cuGraphExecUpdate_v2(exec, longer, &mut info).is(Code::GRAPH_EXEC_UPDATE_FAILURE)?;
    ensure!(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, "{:?}", info.result);
    for graph in [first, second, longer] {
        context.cuGraphDestroy(graph).ok()?;
    }
    context.cuGraphExecDestroy(exec).ok()
}

fn in_stream(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let (gate, log) = (Gate::new(context, &module)?, Log::new(context, &module, 16)?);
    let affine = module.function("affine")?;
    let values = context.zeros::<u32>(COUNT)?;
    let graph = new_graph(context)?;
    kernel_node(context, graph, &[], affine, args![&values, 1u32, COUNT as i32])?;
    let exec = instantiate(context, graph)?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    context.cuGraphUpload(exec, stream.handle()).ok()?;
    context.synchronize()?;
    gate.shut(stream.handle())?;
    context.cuGraphLaunch(exec, stream.handle()).ok()?;
    log.append(stream.handle(), 1)?;
    context.cuStreamQuery(stream.handle()).is(Code::NOT_READY)?;
    compare::equal(&log.read(context)?, &[])?;
    gate.open();
    stream.synchronize()?;
    compare::equal(&log.read(context)?, &[1])?;
    ensure!(values.read()?[5] == 5);
    context.cuGraphExecDestroy(exec).ok()?;
    context.cuGraphDestroy(graph).ok()
}

fn event_nodes(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let (gate, log) = (Gate::new(context, &module)?, Log::new(context, &module, 16)?);
    let event = Event::new(context, 0)?;
    let graph = new_graph(context)?;
    let mut node = ptr::null_mut();
    context.cuGraphAddEventRecordNode(&mut node, graph, ptr::null(), 0, event.handle()).ok()?;
    let exec = instantiate(context, graph)?;
    let (a, b) = (Stream::new(context, NON_BLOCKING)?, Stream::new(context, NON_BLOCKING)?);
    context.cuGraphUpload(exec, a.handle()).ok()?;
    context.synchronize()?;
    gate.shut(a.handle())?;
    context.cuGraphLaunch(exec, a.handle()).ok()?;
    context.cuStreamWaitEvent(b.handle(), event.handle(), 0).ok()?;
    log.append(b.handle(), 1)?;
    context.cuStreamQuery(b.handle()).is(Code::NOT_READY)?;
    gate.open();
    b.synchronize()?;
    compare::equal(&log.read(context)?, &[1])?;
    context.cuGraphExecDestroy(exec).ok()?;
    context.cuGraphDestroy(graph).ok()
}

fn inspection(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let affine = module.function("affine")?;
    let values = context.zeros::<u32>(COUNT)?;
    let graph = new_graph(context)?;
    let mut fill = ptr::null_mut();
    let own = context.handle();
    context.cuGraphAddMemsetNode(&mut fill, graph, ptr::null(), 0, &memset_params(&values, 1), own).ok()?;
    let kernel = kernel_node(context, graph, &[fill], affine, args![&values, 10u32, COUNT as i32])?;
    let mut count = 0;
    context.cuGraphGetNodes(graph, ptr::null_mut(), &mut count).ok()?;
    ensure!(count == 2, "{count} nodes");
    let mut edges = 0;
    context.cuGraphGetEdges_v2(graph, ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), &mut edges).ok()?;
    ensure!(edges == 1, "{edges} edges");
    let mut roots = [ptr::null_mut(); 2];
    count = 2;
    context.cuGraphGetRootNodes(graph, roots.as_mut_ptr(), &mut count).ok()?;
    ensure!(count == 1 && roots[0] == fill);
    let mut kind = CUgraphNodeType_enum(77);
    context.cuGraphNodeGetType(fill, &mut kind).ok()?;
    ensure!(kind == CU_GRAPH_NODE_TYPE_MEMSET);
    context.cuGraphNodeGetType(kernel, &mut kind).ok()?;
    ensure!(kind == CU_GRAPH_NODE_TYPE_KERNEL);
    let mut params = CUDA_KERNEL_NODE_PARAMS::default();
    context.cuGraphKernelNodeGetParams_v2(kernel, &mut params).ok()?;
    ensure!(params.func == affine.handle() && params.blockDimX == COUNT as u32);
    context.cuGraphDestroyNode(kernel).ok()?;
    context.cuGraphGetNodes(graph, ptr::null_mut(), &mut count).ok()?;
    ensure!(count == 1, "{count} nodes after one was destroyed");
    context.cuGraphDestroy(graph).ok()
}

fn refusals(context: &Context<'_>) -> Result<()> {
    let graph = new_graph(context)?;
    let (mut a, mut b) = (ptr::null_mut(), ptr::null_mut());
    context.cuGraphAddEmptyNode(&mut a, graph, ptr::null(), 0).ok()?;
    context.cuGraphAddEmptyNode(&mut b, graph, &a, 1).ok()?;
    // A cycle is found at the latest when the graph is to be run.
    let added = context.cuGraphAddDependencies_v2(graph, &b, &a, ptr::null(), 1);
    if added.code == Code::SUCCESS {
        let mut exec = ptr::null_mut();
        context.cuGraphInstantiateWithFlags(&mut exec, graph, 0).is(Code::INVALID_VALUE)?;
    } else {
        added.is(Code::INVALID_VALUE)?;
    }
    context.cuGraphCreate(ptr::null_mut(), 0).is(Code::INVALID_VALUE)?;
    let mut other = ptr::null_mut();
    context.cuGraphCreate(&mut other, 5).is(Code::INVALID_VALUE)?;
    context.cuGraphLaunch(ptr::null_mut(), ptr::null_mut()).is(Code::INVALID_VALUE)?;
    context.cuGraphAddEmptyNode(&mut a, ptr::null_mut(), ptr::null(), 0).is(Code::INVALID_VALUE)?;
    context.cuGraphAddKernelNode_v2(&mut a, graph, ptr::null(), 0, ptr::null()).is(Code::INVALID_VALUE)?;
    context.cuGraphDestroy(graph).ok()
}
