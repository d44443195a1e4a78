//! Executable graphs.

use super::graph_node::{any, copy, fill, host, kernel, widen, words};
use super::prelude::*;
use crate::state::capture;
use crate::state::event::Event;
use crate::state::exec::Exec;
use crate::state::graph::{Graph, Node};
use crate::state::operation::Operation;

/// What concerns memory that graphs allocate, and launches from the device, is accepted or refused here.
fn check_flags(flags: u64) -> Result<()> {
    let known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH.0
        | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD.0
        | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY.0;
    if flags & u64::from(CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH.0) != 0 {
        return Err(Error::unsupported("launching graphs from kernels"));
    }
    require(flags & !u64::from(known) == 0)
}

fn instantiate(out: &Out<CUgraphExec>, graph: Handle<Graph>, flags: u64) -> Result<()> {
    current::context()?;
    out.check()?;
    let graph = graph.get()?;
    check_flags(flags)?;
    out.set(Exec::instantiate(&graph, flags)?.handle.raw())
}

pub fn cuGraphInstantiateWithFlags(
    phGraphExec: Out<CUgraphExec>,
    hGraph: Handle<Graph>,
    flags: c_ulonglong,
) -> Result<()> {
    instantiate(&phGraphExec, hGraph, flags)
}

pub fn cuGraphInstantiate(
    phGraphExec: Out<CUgraphExec>,
    hGraph: Handle<Graph>,
    phErrorNode: Out<CUgraphNode>,
    logBuffer: Array<c_char>,
    bufferSize: usize,
) -> Result<()> {
    phErrorNode.set_if_wanted(std::ptr::null_mut());
    if !logBuffer.is_null() && bufferSize > 0 {
        logBuffer.put(0, 0);
    }
    instantiate(&phGraphExec, hGraph, 0)
}

pub fn cuGraphInstantiate_v2(
    phGraphExec: Out<CUgraphExec>,
    hGraph: Handle<Graph>,
    phErrorNode: Out<CUgraphNode>,
    logBuffer: Array<c_char>,
    bufferSize: usize,
) -> Result<()> {
    cuGraphInstantiate(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize)
}

pub fn cuGraphInstantiateWithParams(
    phGraphExec: Out<CUgraphExec>,
    hGraph: Handle<Graph>,
    instantiateParams: Out<CUDA_GRAPH_INSTANTIATE_PARAMS>,
) -> Result<()> {
    driver()?;
    let mut params = instantiateParams.read()?;
    let result = instantiate(&phGraphExec, hGraph, params.flags);
    params.hErrNode_out = std::ptr::null_mut();
    params.result_out =
        if result.is_ok() { CUDA_GRAPH_INSTANTIATE_SUCCESS } else { CUDA_GRAPH_INSTANTIATE_ERROR };
    instantiateParams.set(params)?;
    result
}

pub fn cuGraphExecGetFlags(hGraphExec: Handle<Exec>, flags: Out<cuuint64_t>) -> Result<()> {
    driver()?;
    flags.set(hGraphExec.get()?.flags)
}

pub fn cuGraphExecGetId(hGraphExec: Handle<Exec>, graphId: Out<c_uint>) -> Result<()> {
    driver()?;
    graphId.set(hGraphExec.get()?.id as c_uint)
}

/// What was launched goes on to its end.
pub fn cuGraphExecDestroy(hGraphExec: Handle<Exec>) -> Result<()> {
    driver()?;
    hGraphExec.take().map(drop)
}

/// There is nowhere to upload to.
pub fn cuGraphUpload(hGraph: Handle<Exec>, hStream: Handle<Stream>) -> Result<()> {
    driver()?;
    hGraph.get()?;
    Stream::find(hStream).map(drop)
}

pub fn cuGraphLaunch(hGraph: Handle<Exec>, hStream: Handle<Stream>) -> Result<()> {
    let stream = Stream::find(hStream)?;
    let exec = hGraph.get()?;
    if let Some(capture) = capture::of(&stream, &*stream.context()?)? {
        capture.invalidate();
        return refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    exec.launch(&stream)
}

pub fn cuGraphExecUpdate_v2(
    hGraphExec: Handle<Exec>,
    hGraph: Handle<Graph>,
    resultInfo: Out<CUgraphExecUpdateResultInfo>,
) -> Result<()> {
    driver()?;
    resultInfo.check()?;
    let (result, node) = update(hGraphExec, hGraph)?;
    resultInfo.set(CUgraphExecUpdateResultInfo {
        result,
        errorNode: node,
        errorFromNode: std::ptr::null_mut(),
    })?;
    updated(result)
}

pub fn cuGraphExecUpdate(
    hGraphExec: Handle<Exec>,
    hGraph: Handle<Graph>,
    hErrorNode_out: Out<CUgraphNode>,
    updateResult_out: Out<CUgraphExecUpdateResult>,
) -> Result<()> {
    driver()?;
    let (result, node) = update(hGraphExec, hGraph)?;
    hErrorNode_out.set_if_wanted(node);
    updateResult_out.set(result)?;
    updated(result)
}

fn update(exec: Handle<Exec>, graph: Handle<Graph>) -> Result<(CUgraphExecUpdateResult, CUgraphNode)> {
    let (exec, graph) = (exec.get()?, graph.get()?);
    Ok(match exec.update(&graph)? {
        Ok(()) => (CU_GRAPH_EXEC_UPDATE_SUCCESS, std::ptr::null_mut()),
        Err(mismatch) => (mismatch.result, Handle::<Node>::of(mismatch.node.unwrap_or(0)).raw()),
    })
}

fn updated(result: CUgraphExecUpdateResult) -> Result<()> {
    if result == CU_GRAPH_EXEC_UPDATE_SUCCESS { Ok(()) } else { refuse(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) }
}

fn set(exec: Handle<Exec>, node: Handle<Node>, operation: impl FnOnce() -> Result<Operation>) -> Result<()> {
    driver()?;
    let (exec, operation) = (exec.get()?, operation()?);
    let operation = match (exec.operation(node.value()), operation) {
        (Ok(Operation::Kernel(old)), Operation::Kernel(new)) => {
            Operation::Kernel(new.with_attributes_of(&old))
        }
        (_, operation) => operation,
    };
    exec.set_operation(node.value(), operation)
}

pub fn cuGraphExecKernelNodeSetParams_v2(
    hGraphExec: Handle<Exec>,
    hNode: Handle<Node>,
    nodeParams: In<CUDA_KERNEL_NODE_PARAMS>,
) -> Result<()> {
    set(hGraphExec, hNode, || kernel(&nodeParams.get()?))
}

pub fn cuGraphExecKernelNodeSetParams(
    hGraphExec: Handle<Exec>,
    hNode: Handle<Node>,
    nodeParams: In<CUDA_KERNEL_NODE_PARAMS_v1>,
) -> Result<()> {
    set(hGraphExec, hNode, || kernel(&widen(&nodeParams.get()?)))
}

pub fn cuGraphExecMemcpyNodeSetParams(
    hGraphExec: Handle<Exec>,
    hNode: Handle<Node>,
    copyParams: In<CUDA_MEMCPY3D>,
    ctx: Handle<Context>,
) -> Result<()> {
    set(hGraphExec, hNode, || copy(&copyParams.get()?, ctx))
}

pub fn cuGraphExecMemsetNodeSetParams(
    hGraphExec: Handle<Exec>,
    hNode: Handle<Node>,
    memsetParams: In<CUDA_MEMSET_NODE_PARAMS>,
    ctx: Handle<Context>,
) -> Result<()> {
    set(hGraphExec, hNode, || fill(&memsetParams.get()?, ctx))
}

pub fn cuGraphExecHostNodeSetParams(
    hGraphExec: Handle<Exec>,
    hNode: Handle<Node>,
    nodeParams: In<CUDA_HOST_NODE_PARAMS>,
) -> Result<()> {
    set(hGraphExec, hNode, || host(&nodeParams.get()?))
}

pub fn cuGraphExecBatchMemOpNodeSetParams(
    hGraphExec: Handle<Exec>,
    hNode: Handle<Node>,
    nodeParams: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> Result<()> {
    set(hGraphExec, hNode, || words(&nodeParams.get()?))
}

pub fn cuGraphExecEventRecordNodeSetEvent(
    hGraphExec: Handle<Exec>,
    hNode: Handle<Node>,
    event: Handle<Event>,
) -> Result<()> {
    set(hGraphExec, hNode, || Ok(Operation::Record(event.get()?)))
}

pub fn cuGraphExecEventWaitNodeSetEvent(
    hGraphExec: Handle<Exec>,
    hNode: Handle<Node>,
    event: Handle<Event>,
) -> Result<()> {
    set(hGraphExec, hNode, || Ok(Operation::Wait(event.get()?)))
}

pub fn cuGraphExecNodeSetParams(
    hGraphExec: Handle<Exec>,
    hNode: Handle<Node>,
    nodeParams: In<CUgraphNodeParams>,
) -> Result<()> {
    set(hGraphExec, hNode, || any(&nodeParams.get()?))
}

pub fn cuGraphExecChildGraphNodeSetParams(
    hGraphExec: Handle<Exec>,
    hNode: Handle<Node>,
    childGraph: Handle<Graph>,
) -> Result<()> {
    driver()?;
    hGraphExec.get()?.set_child(hNode.value(), &*childGraph.get()?)
}

pub fn cuGraphNodeSetEnabled(hGraphExec: Handle<Exec>, hNode: Handle<Node>, isEnabled: c_uint) -> Result<()> {
    driver()?;
    hGraphExec.get()?.set_enabled(hNode.value(), isEnabled != 0)
}

pub fn cuGraphNodeGetEnabled(
    hGraphExec: Handle<Exec>,
    hNode: Handle<Node>,
    isEnabled: Out<c_uint>,
) -> Result<()> {
    driver()?;
    isEnabled.set(c_uint::from(hGraphExec.get()?.is_enabled(hNode.value())?))
}
