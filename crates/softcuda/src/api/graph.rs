//! Graphs: structure.

use super::prelude::*;
use super::stream_capture::{nodes, plain_edges};
use crate::state::graph::{Graph, Node};

pub fn cuGraphCreate(phGraph: Out<CUgraph>, flags: c_uint) -> Result<()> {
    driver()?;
    phGraph.check()?;
    require(flags == 0)?;
    phGraph.set(Graph::create().handle.raw())
}

pub fn cuGraphDestroy(hGraph: Handle<Graph>) -> Result<()> {
    driver()?;
    hGraph.get()?.destroy();
    Ok(())
}

pub fn cuGraphClone(phGraphClone: Out<CUgraph>, originalGraph: Handle<Graph>) -> Result<()> {
    driver()?;
    phGraphClone.check()?;
    phGraphClone.set(originalGraph.get()?.duplicate()?.handle.raw())
}

pub fn cuGraphNodeFindInClone(
    phNode: Out<CUgraphNode>,
    hOriginalNode: Handle<Node>,
    hClonedGraph: Handle<Graph>,
) -> Result<()> {
    driver()?;
    phNode.check()?;
    let graph = hClonedGraph.get()?;
    let copy = graph.nodes().into_iter().find(|node| node.origin == Some(hOriginalNode.value()));
    phNode.set(copy.ok_or(CUDA_ERROR_INVALID_VALUE)?.handle.raw())
}

pub fn cuGraphNodeGetType(hNode: Handle<Node>, type_: Out<CUgraphNodeType>) -> Result<()> {
    driver()?;
    type_.set(hNode.get()?.kind())
}

pub fn cuGraphNodeGetContainingGraph(hNode: Handle<Node>, phGraph: Out<CUgraph>) -> Result<()> {
    driver()?;
    phGraph.set(hNode.get()?.graph()?.handle.raw())
}

pub fn cuGraphNodeGetLocalId(hNode: Handle<Node>, nodeId: Out<c_uint>) -> Result<()> {
    driver()?;
    let node = hNode.get()?;
    let place = node.graph()?.nodes().iter().position(|other| other.handle == node.handle);
    nodeId.set(place.ok_or(CUDA_ERROR_INVALID_VALUE)? as c_uint)
}

pub fn cuGraphGetId(hGraph: Handle<Graph>, graphId: Out<c_uint>) -> Result<()> {
    driver()?;
    graphId.set(hGraph.get()?.id as c_uint)
}

pub fn cuGraphDestroyNode(hNode: Handle<Node>) -> Result<()> {
    driver()?;
    let node = hNode.get()?;
    node.graph()?.remove(&node)
}

/// Gives a list the way CUDA does: without a place for it, its length; else as much as there is room for, the
/// rest of the room filled with nothing, and how much there was.
fn list<const N: usize>(
    items: &[[u64; N]],
    places: [&Array<CUgraphNode>; N],
    count: &Out<usize>,
) -> Result<()> {
    count.check()?;
    if places.iter().all(|place| place.is_null()) {
        return count.set(items.len());
    }
    let room = count.read()?;
    for (column, place) in places.iter().enumerate() {
        require(!place.is_null() || room == 0)?;
        for row in 0..room {
            let value = items.get(row).map_or(0, |item| item[column]);
            place.put(row, Handle::<Node>::of(value).raw());
        }
    }
    count.set(items.len().min(room))
}

/// Edges are all plain, so there is nothing to say about them.
fn edge_data(places: &Array<CUgraphEdgeData>, count: usize) {
    if !places.is_null() {
        (0..count).for_each(|row| places.put(row, CUgraphEdgeData::default()));
    }
}

pub fn cuGraphGetNodes(hGraph: Handle<Graph>, nodes: Array<CUgraphNode>, numNodes: Out<usize>) -> Result<()> {
    driver()?;
    let all: Vec<[u64; 1]> = hGraph.get()?.nodes().iter().map(|node| [node.handle.value()]).collect();
    list(&all, [&nodes], &numNodes)
}

pub fn cuGraphGetRootNodes(
    hGraph: Handle<Graph>,
    rootNodes: Array<CUgraphNode>,
    numRootNodes: Out<usize>,
) -> Result<()> {
    driver()?;
    let roots: Vec<[u64; 1]> = hGraph.get()?.roots().into_iter().map(|node| [node]).collect();
    list(&roots, [&rootNodes], &numRootNodes)
}

pub fn cuGraphGetEdges(
    hGraph: Handle<Graph>,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    numEdges: Out<usize>,
) -> Result<()> {
    driver()?;
    let edges: Vec<[u64; 2]> = hGraph.get()?.edges().into_iter().map(|(from, to)| [from, to]).collect();
    list(&edges, [&from, &to], &numEdges)
}

pub fn cuGraphGetEdges_v2(
    hGraph: Handle<Graph>,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    edgeData: Array<CUgraphEdgeData>,
    numEdges: Out<usize>,
) -> Result<()> {
    let asked = !from.is_null();
    let count = numEdges.cast::<usize>();
    cuGraphGetEdges(hGraph, from, to, numEdges)?;
    edge_data(&edgeData, if asked { count.read()? } else { 0 });
    Ok(())
}

pub fn cuGraphNodeGetDependencies(
    hNode: Handle<Node>,
    dependencies: Array<CUgraphNode>,
    numDependencies: Out<usize>,
) -> Result<()> {
    driver()?;
    let edges = hNode.get()?.graph()?.edges();
    let before = edges.into_iter().filter(|(_, to)| *to == hNode.value()).map(|(from, _)| [from]);
    list(&before.collect::<Vec<_>>(), [&dependencies], &numDependencies)
}

pub fn cuGraphNodeGetDependencies_v2(
    hNode: Handle<Node>,
    dependencies: Array<CUgraphNode>,
    edgeData: Array<CUgraphEdgeData>,
    numDependencies: Out<usize>,
) -> Result<()> {
    let asked = !dependencies.is_null();
    let count = numDependencies.cast::<usize>();
    cuGraphNodeGetDependencies(hNode, dependencies, numDependencies)?;
    edge_data(&edgeData, if asked { count.read()? } else { 0 });
    Ok(())
}

pub fn cuGraphNodeGetDependentNodes(
    hNode: Handle<Node>,
    dependentNodes: Array<CUgraphNode>,
    numDependentNodes: Out<usize>,
) -> Result<()> {
    driver()?;
    let edges = hNode.get()?.graph()?.edges();
    let after = edges.into_iter().filter(|(from, _)| *from == hNode.value()).map(|(_, to)| [to]);
    list(&after.collect::<Vec<_>>(), [&dependentNodes], &numDependentNodes)
}

pub fn cuGraphNodeGetDependentNodes_v2(
    hNode: Handle<Node>,
    dependentNodes: Array<CUgraphNode>,
    edgeData: Array<CUgraphEdgeData>,
    numDependentNodes: Out<usize>,
) -> Result<()> {
    let asked = !dependentNodes.is_null();
    let count = numDependentNodes.cast::<usize>();
    cuGraphNodeGetDependentNodes(hNode, dependentNodes, numDependentNodes)?;
    edge_data(&edgeData, if asked { count.read()? } else { 0 });
    Ok(())
}

fn pairs(from: &Array<CUgraphNode>, to: &Array<CUgraphNode>, count: usize) -> Result<Vec<(u64, u64)>> {
    Ok(nodes(from, count)?.into_iter().zip(nodes(to, count)?).collect())
}

pub fn cuGraphAddDependencies(
    hGraph: Handle<Graph>,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    numDependencies: usize,
) -> Result<()> {
    driver()?;
    hGraph.get()?.connect(&pairs(&from, &to, numDependencies)?)
}

pub fn cuGraphAddDependencies_v2(
    hGraph: Handle<Graph>,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    edgeData: Array<CUgraphEdgeData>,
    numDependencies: usize,
) -> Result<()> {
    plain_edges(&edgeData, numDependencies)?;
    cuGraphAddDependencies(hGraph, from, to, numDependencies)
}

pub fn cuGraphRemoveDependencies(
    hGraph: Handle<Graph>,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    numDependencies: usize,
) -> Result<()> {
    driver()?;
    hGraph.get()?.disconnect(&pairs(&from, &to, numDependencies)?)
}

pub fn cuGraphRemoveDependencies_v2(
    hGraph: Handle<Graph>,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    edgeData: Array<CUgraphEdgeData>,
    numDependencies: usize,
) -> Result<()> {
    plain_edges(&edgeData, numDependencies)?;
    cuGraphRemoveDependencies(hGraph, from, to, numDependencies)
}
