//! Capture of streams.

use super::prelude::*;
use crate::state::capture::{self, Capture};
use crate::state::graph::{Graph, Node};

pub fn cuStreamBeginCapture_v2(hStream: Handle<Stream>, mode: CUstreamCaptureMode) -> Result<()> {
    let stream = Stream::find(hStream)?;
    require(capture::is_mode(mode))?;
    Capture::begin(&stream, mode, None).map(drop)
}

pub fn cuStreamBeginCapture(hStream: Handle<Stream>) -> Result<()> {
    cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL)
}

pub fn cuStreamBeginCaptureToGraph(
    hStream: Handle<Stream>,
    hGraph: Handle<Graph>,
    dependencies: Array<CUgraphNode>,
    dependencyData: Array<CUgraphEdgeData>,
    numDependencies: usize,
    mode: CUstreamCaptureMode,
) -> Result<()> {
    let stream = Stream::find(hStream)?;
    require(capture::is_mode(mode))?;
    plain_edges(&dependencyData, numDependencies)?;
    let after = nodes(&dependencies, numDependencies)?;
    Capture::begin(&stream, mode, Some((hGraph.get()?, after))).map(drop)
}

/// The values of handles of nodes.
pub fn nodes(handles: &Array<CUgraphNode>, count: usize) -> Result<Vec<u64>> {
    Ok(handles.read(count)?.into_iter().map(|node| node.addr() as u64).collect())
}

/// Edges that wait for the whole node are the only ones there are.
pub fn plain_edges(edges: &Array<CUgraphEdgeData>, count: usize) -> Result<()> {
    if edges.is_null() {
        return Ok(());
    }
    let plain = |edge: &CUgraphEdgeData| edge.from_port == 0 && edge.to_port == 0 && edge.type_ == 0;
    if edges.read(count)?.iter().all(plain) { Ok(()) } else { Err(Error::unsupported("an edge with ports")) }
}

pub fn cuStreamEndCapture(hStream: Handle<Stream>, phGraph: Out<CUgraph>) -> Result<()> {
    let stream = Stream::find(hStream)?;
    if lock(&stream.capture).is_none() {
        return refuse(CUDA_ERROR_ILLEGAL_STATE);
    }
    phGraph.check()?;
    let result = Capture::end(&stream);
    phGraph.set(result.as_ref().map_or(std::ptr::null_mut(), |graph| graph.handle.raw()))?;
    result.map(drop)
}

fn status(stream: &Stream) -> (CUstreamCaptureStatus, Option<Arc<Capture>>) {
    match lock(&stream.capture).clone() {
        None => (CU_STREAM_CAPTURE_STATUS_NONE, None),
        Some(capture) if capture.is_invalid() => (CU_STREAM_CAPTURE_STATUS_INVALIDATED, Some(capture)),
        Some(capture) => (CU_STREAM_CAPTURE_STATUS_ACTIVE, Some(capture)),
    }
}

pub fn cuStreamIsCapturing(hStream: Handle<Stream>, captureStatus: Out<CUstreamCaptureStatus>) -> Result<()> {
    let stream = Stream::find(hStream)?;
    // Asking the default stream while a stream that waits for it is captured is a mistake, but does no harm.
    if capture::is_implicit(&stream, &*stream.context()?) {
        return refuse(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    captureStatus.set(status(&stream).0)
}

/// What a program learns about the capture of a stream: status, id, graph, and what its next node comes after.
fn info(
    stream: &Stream,
    status_out: &Out<CUstreamCaptureStatus>,
    id_out: &Out<cuuint64_t>,
    graph_out: &Out<CUgraph>,
    dependencies_out: &Out<*const CUgraphNode>,
    edges_out: &Out<*const CUgraphEdgeData>,
    count_out: &Out<usize>,
) -> Result<()> {
    let (status, capture) = status(stream);
    status_out.set(status)?;
    let Some(capture) = capture.filter(|_| status == CU_STREAM_CAPTURE_STATUS_ACTIVE) else { return Ok(()) };
    id_out.set_if_wanted(capture.id);
    graph_out.set_if_wanted(capture.graph.handle.raw());
    let nodes = capture.dependencies(stream);
    count_out.set_if_wanted(nodes.len());
    dependencies_out.set_if_wanted(remember(nodes));
    edges_out.set_if_wanted(std::ptr::null());
    Ok(())
}

/// The program may read the nodes until its next call on the stream, so the thread keeps the latest list.
fn remember(nodes: Vec<u64>) -> *const CUgraphNode {
    thread_local! {
        static LATEST: std::cell::RefCell<Vec<CUgraphNode>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    LATEST.with_borrow_mut(|latest| {
        *latest = nodes.into_iter().map(|node| Handle::<Node>::of(node).raw()).collect();
        latest.as_ptr()
    })
}

pub fn cuStreamGetCaptureInfo(
    hStream: Handle<Stream>,
    captureStatus_out: Out<CUstreamCaptureStatus>,
    id_out: Out<cuuint64_t>,
) -> Result<()> {
    let stream = Stream::find(hStream)?;
    let (status, capture) = status(&stream);
    captureStatus_out.set(status)?;
    if let Some(capture) = capture {
        id_out.set_if_wanted(capture.id);
    }
    Ok(())
}

pub fn cuStreamGetCaptureInfo_v2(
    hStream: Handle<Stream>,
    captureStatus_out: Out<CUstreamCaptureStatus>,
    id_out: Out<cuuint64_t>,
    graph_out: Out<CUgraph>,
    dependencies_out: Out<*const CUgraphNode>,
    numDependencies_out: Out<usize>,
) -> Result<()> {
    let stream = Stream::find(hStream)?;
    let edges: Out<*const CUgraphEdgeData> = Out::nowhere();
    info(&stream, &captureStatus_out, &id_out, &graph_out, &dependencies_out, &edges, &numDependencies_out)
}

pub fn cuStreamGetCaptureInfo_v3(
    hStream: Handle<Stream>,
    captureStatus_out: Out<CUstreamCaptureStatus>,
    id_out: Out<cuuint64_t>,
    graph_out: Out<CUgraph>,
    dependencies_out: Out<*const CUgraphNode>,
    edgeData_out: Out<*const CUgraphEdgeData>,
    numDependencies_out: Out<usize>,
) -> Result<()> {
    let stream = Stream::find(hStream)?;
    info(
        &stream,
        &captureStatus_out,
        &id_out,
        &graph_out,
        &dependencies_out,
        &edgeData_out,
        &numDependencies_out,
    )
}

pub fn cuStreamUpdateCaptureDependencies(
    hStream: Handle<Stream>,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    flags: c_uint,
) -> Result<()> {
    let stream = Stream::find(hStream)?;
    let capture = capture::of(&stream, &*stream.context()?)?.ok_or(CUDA_ERROR_ILLEGAL_STATE)?;
    let mut after = nodes(&dependencies, numDependencies)?;
    match flags {
        flags if flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES.0 => {
            let mut all = capture.dependencies(&stream);
            after.retain(|node| !all.contains(node));
            all.append(&mut after);
            capture.set_dependencies(&stream, all)
        }
        flags if flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES.0 => capture.set_dependencies(&stream, after),
        _ => refuse(CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn cuStreamUpdateCaptureDependencies_v2(
    hStream: Handle<Stream>,
    dependencies: Array<CUgraphNode>,
    dependencyData: Array<CUgraphEdgeData>,
    numDependencies: usize,
    flags: c_uint,
) -> Result<()> {
    plain_edges(&dependencyData, numDependencies)?;
    cuStreamUpdateCaptureDependencies(hStream, dependencies, numDependencies, flags)
}

pub fn cuThreadExchangeStreamCaptureMode(mode: Out<CUstreamCaptureMode>) -> Result<()> {
    driver()?;
    let wanted = mode.read()?;
    require(capture::is_mode(wanted))?;
    mode.set(capture::exchange_mode(wanted))
}
