//! Graphs: captures, executable graphs, their launches.

#![allow(non_snake_case)]

use std::ffi::c_uint;
use std::ptr;
use std::sync::atomic::Ordering;

use cuda_abi::{
    CU_GRAPH_NODE_TYPE_GRAPH, CU_GRAPH_NODE_TYPE_KERNEL, CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1,
    CUgraph, CUgraphExec, CUgraphNode, CUgraphNodeParams, CUstream,
};
use telemetry::{Counter, LaunchKind, Note, What};

use crate::entry::{Raw, Seen};
use crate::tenancy::{self, warm_up};

pub fn cuGraphLaunch(seen: &Seen, exec: Raw<CUgraphExec>, stream: Raw<CUstream>) {
    if seen.captured(stream.value()) {
        return;
    }
    seen.handed_over(stream.value());
    seen.count(Counter::launches(LaunchKind::Graph, seen.stream(stream.handle())));
    let kernels = seen.watch.frames.launched(exec.handle(), seen.watch);
    tenancy::launched(kernels);
    seen.tell(stream.value(), |stream| What::Graph { stream, kernels });
}

fn capture_began(seen: &Seen) {
    seen.count(Counter::CapturesBegun);
    seen.watch.frames.captures.fetch_add(1, Ordering::Relaxed);
}

/// An end that fails is not seen here, and the count stays too high: launches then ask in vain, which costs them a
/// little. Too low it never is.
fn capture_ended(seen: &Seen) {
    let fewer = |count: usize| count.checked_sub(1);
    let _ = seen.watch.frames.captures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
}

pub fn cuStreamBeginCapture<A>(seen: &Seen, _: A) {
    capture_began(seen);
}

pub fn cuStreamBeginCapture_v2<A, B>(seen: &Seen, _: A, _: B) {
    capture_began(seen);
}

pub fn cuStreamBeginCaptureToGraph<A, B, C, D, E, F>(seen: &Seen, _: A, _: B, _: C, _: D, _: E, _: F) {
    capture_began(seen);
}

pub fn cuStreamBeginCaptureToCig<A, B>(seen: &Seen, _: A, _: B) {
    capture_began(seen);
}

pub fn cuStreamBeginRecaptureToGraph<A, B, C, D, E>(seen: &Seen, _: A, _: B, _: C, _: D, _: E) {
    capture_began(seen);
}

pub fn cuStreamEndCapture<A, B>(seen: &Seen, _: A, _: B) {
    capture_ended(seen);
}

pub fn cuStreamEndCaptureToCig<A>(seen: &Seen, _: A) {
    capture_ended(seen);
}

fn instantiated(seen: &Seen, exec: Raw<*mut CUgraphExec>, graph: Raw<CUgraph>) {
    warm_up::note();
    seen.count(Counter::GraphsInstantiated);
    if let Some(exec) = exec.written() {
        let frames = &seen.watch.frames;
        remembered(seen, frames.instantiated(exec.addr(), graph.value(), &seen.watch.ledger));
    }
}

fn remembered(seen: &Seen, done: Option<()>) {
    if done.is_none() {
        seen.watch.ledger.note(Note::OutOfMemory);
    }
}

pub fn cuGraphInstantiate<A, B, C>(
    seen: &Seen,
    exec: Raw<*mut CUgraphExec>,
    graph: Raw<CUgraph>,
    _: A,
    _: B,
    _: C,
) {
    instantiated(seen, exec, graph);
}

pub fn cuGraphInstantiateWithFlags<A>(seen: &Seen, exec: Raw<*mut CUgraphExec>, graph: Raw<CUgraph>, _: A) {
    instantiated(seen, exec, graph);
}

/// The same to us: their further arguments are not looked at.
pub use self::{
    cuGraphInstantiate as cuGraphInstantiate_v2, cuGraphInstantiateWithFlags as cuGraphInstantiateWithParams,
};

fn updated(seen: &Seen, exec: Raw<CUgraphExec>, graph: Raw<CUgraph>) {
    seen.count(Counter::GraphsUpdated);
    let frames = &seen.watch.frames;
    remembered(seen, frames.updated(exec.handle(), graph.value(), &seen.watch.ledger));
}

pub fn cuGraphExecUpdate<A, B>(seen: &Seen, exec: Raw<CUgraphExec>, graph: Raw<CUgraph>, _: A, _: B) {
    updated(seen, exec, graph);
}

pub fn cuGraphExecUpdate_v2<A>(seen: &Seen, exec: Raw<CUgraphExec>, graph: Raw<CUgraph>, _: A) {
    updated(seen, exec, graph);
}

pub fn cuGraphExecDestroy(seen: &Seen, exec: Raw<CUgraphExec>) {
    seen.watch.frames.destroyed(exec.handle());
}

pub fn cuGraphNodeSetEnabled(
    seen: &Seen,
    exec: Raw<CUgraphExec>,
    node: Raw<CUgraphNode>,
    enabled: Raw<c_uint>,
) {
    seen.watch.frames.switched(exec.handle(), node.value(), enabled.value() != 0);
}

pub fn cuGraphExecKernelNodeSetParams(
    seen: &Seen,
    exec: Raw<CUgraphExec>,
    node: Raw<CUgraphNode>,
    parameters: Raw<*const CUDA_KERNEL_NODE_PARAMS_v1>,
) {
    let Some(parameters) = parameters.read() else { return };
    seen.watch.frames.given(exec.handle(), node.value(), parameters.func, ptr::null_mut());
}

pub fn cuGraphExecKernelNodeSetParams_v2(
    seen: &Seen,
    exec: Raw<CUgraphExec>,
    node: Raw<CUgraphNode>,
    parameters: Raw<*const CUDA_KERNEL_NODE_PARAMS>,
) {
    let Some(parameters) = parameters.read() else { return };
    seen.watch.frames.given(exec.handle(), node.value(), parameters.func, parameters.kern);
}

pub fn cuGraphExecChildGraphNodeSetParams(
    seen: &Seen,
    exec: Raw<CUgraphExec>,
    node: Raw<CUgraphNode>,
    graph: Raw<CUgraph>,
) {
    let watch = seen.watch;
    watch.frames.updated_within(exec.handle(), node.value(), graph.value(), &watch.ledger);
}

pub fn cuGraphExecNodeSetParams(
    seen: &Seen,
    exec: Raw<CUgraphExec>,
    node: Raw<CUgraphNode>,
    parameters: Raw<*mut CUgraphNodeParams>,
) {
    let Some(parameters) = parameters.written() else { return };
    let watch = seen.watch;
    match parameters.type_ {
        CU_GRAPH_NODE_TYPE_KERNEL => {
            // SAFETY: the type says which of the union the driver has read.
            let kernel = unsafe { parameters.__bindgen_anon_1.kernel };
            watch.frames.given(exec.handle(), node.value(), kernel.func, kernel.kern);
        }
        CU_GRAPH_NODE_TYPE_GRAPH => {
            // SAFETY: the type says which of the union the driver has read.
            let child = unsafe { parameters.__bindgen_anon_1.graph };
            watch.frames.updated_within(exec.handle(), node.value(), child.graph, &watch.ledger);
        }
        _ => {}
    }
}
