//! Executable graphs: which kernels a launch of one will run.
//!
//! A graph is looked through when it is instantiated: its kernel nodes are noted down, each with its kernel (`record`).
//! A launch of the graph is then worth so many launches of these. What programs change afterwards in an executable
//! graph is followed; it never becomes visible in the graph that it was made of.

use std::ptr;

use cuda_abi::{
    CU_GRAPH_NODE_TYPE_CONDITIONAL, CU_GRAPH_NODE_TYPE_GRAPH, CU_GRAPH_NODE_TYPE_KERNEL,
    CUDA_KERNEL_NODE_PARAMS, CUDA_SUCCESS, CUfunction, CUgraph, CUgraphNode, CUgraphNodeType, CUkernel,
};
use telemetry::{Ledger, Note};

use super::{Frame, Frames, Graph};
use crate::watch::Watch;
use crate::{arena, next};

/// Graphs in graphs in graphs.
const DEPTH: usize = 8;

impl Frames {
    /// A graph was made executable; the handle may have meant another one before.
    pub fn instantiated(&self, exec: usize, graph: CUgraph, ledger: &Ledger) -> Option<()> {
        let record = match self.graphs.get(exec) {
            Some(record) => record,
            None => {
                let record = self.spare.take()?;
                self.graphs.put(exec, record)?;
                record
            }
        };
        record.clear();
        let mut remembered = Some(());
        self.survey(graph, DEPTH, ledger, &mut |node, frame| {
            remembered = record.add(node.addr(), frame).and(remembered);
        });
        remembered
    }

    /// An executable graph was brought up to date with a graph of the same shape. What was off stays off.
    pub fn updated(&self, exec: usize, graph: CUgraph, ledger: &Ledger) -> Option<()> {
        let Some(record) = self.graphs.get(exec) else { return self.instantiated(exec, graph, ledger) };
        self.renew(record, 0, graph, ledger);
        Some(())
    }

    /// A child graph in an executable graph was brought up to date with another graph.
    pub fn updated_within(&self, exec: usize, child: CUgraphNode, graph: CUgraph, ledger: &Ledger) {
        let (Some(record), Some(old)) = (self.graphs.get(exec), graph_of(child)) else { return };
        let mut first = None;
        self.survey(old, DEPTH, ledger, &mut |node, _| {
            first.get_or_insert(node.addr());
        });
        if let Some(start) = first.and_then(|node| record.place_of(node)) {
            self.renew(record, start, graph, ledger);
        }
    }

    pub fn destroyed(&self, exec: usize) {
        if let Some(record) = self.graphs.remove(exec) {
            self.spare.give(record);
        }
    }

    /// Counts a launch of the graph under its kernels; how many there are of them.
    pub fn launched(&self, exec: usize, watch: &Watch) -> u64 {
        self.graphs.get(exec).map_or(0, |record| record.launched(watch))
    }

    /// A node of an executable graph was switched on or off, or was so already.
    pub fn switched(&self, exec: usize, node: CUgraphNode, on: bool) {
        if let Some(record) = self.graphs.get(exec) {
            record.switch(node.addr(), on);
        }
    }

    /// A node of an executable graph was given other parameters, and with them perhaps another kernel.
    pub fn given(&self, exec: usize, node: CUgraphNode, function: CUfunction, kernel: CUkernel) {
        if let Some(record) = self.graphs.get(exec) {
            record.give(node.addr(), self.either(function, kernel));
        }
    }

    /// Nodes are paired in the order in which the driver lists them, from a place on.
    fn renew(&self, record: &Graph, start: usize, graph: CUgraph, ledger: &Ledger) {
        let mut at = start;
        self.survey(graph, DEPTH, ledger, &mut |node, frame| {
            record.renew(at, node.addr(), frame);
            at += 1;
        });
    }

    /// Shows every kernel node of a graph and of the graphs inside it.
    fn survey(
        &self,
        graph: CUgraph,
        depth: usize,
        ledger: &Ledger,
        show: &mut dyn FnMut(CUgraphNode, Option<&'static Frame>),
    ) {
        let Some(nodes) = Nodes::of(graph) else { return };
        for &node in nodes.as_slice() {
            match kind_of(node) {
                Some(CU_GRAPH_NODE_TYPE_KERNEL) => show(node, self.kernel_of(node)),
                Some(CU_GRAPH_NODE_TYPE_GRAPH) if depth > 0 => {
                    if let Some(inner) = graph_of(node) {
                        self.survey(inner, depth - 1, ledger, show);
                    }
                }
                Some(CU_GRAPH_NODE_TYPE_CONDITIONAL) => ledger.note(Note::ConditionalGraphs),
                _ => {}
            }
        }
    }

    fn kernel_of(&self, node: CUgraphNode) -> Option<&'static Frame> {
        let mut parameters = CUDA_KERNEL_NODE_PARAMS::default();
        // SAFETY: a kernel node that the driver has just named, and a place for the answer.
        let result = unsafe { next::call::cuGraphKernelNodeGetParams_v2(node, &mut parameters) };
        if result != CUDA_SUCCESS {
            return None;
        }
        self.either(parameters.func, parameters.kern)
    }

    /// A node names its kernel by one of the two.
    fn either(&self, function: CUfunction, kernel: CUkernel) -> Option<&'static Frame> {
        self.function(function.addr()).or_else(|| self.function(kernel.addr()))
    }
}

fn kind_of(node: CUgraphNode) -> Option<CUgraphNodeType> {
    let mut kind = CUgraphNodeType(0);
    // SAFETY: a node that the driver has just named, and a place for the answer.
    let result = unsafe { next::call::cuGraphNodeGetType(node, &mut kind) };
    (result == CUDA_SUCCESS).then_some(kind)
}

fn graph_of(node: CUgraphNode) -> Option<CUgraph> {
    let mut graph = ptr::null_mut();
    // SAFETY: a child graph node that the driver has just named, and a place for the answer.
    let result = unsafe { next::call::cuGraphChildGraphNodeGetGraph(node, &mut graph) };
    (result == CUDA_SUCCESS).then_some(graph)
}

/// The nodes of a graph, in pages of their own while they are looked at.
struct Nodes {
    pages: arena::Pages,
    count: usize,
}

impl Nodes {
    fn of(graph: CUgraph) -> Option<Nodes> {
        let mut count = 0;
        // SAFETY: a graph that the driver has just used; no list is asked for, only its length.
        let result = unsafe { next::call::cuGraphGetNodes(graph, ptr::null_mut(), &mut count) };
        if result != CUDA_SUCCESS || count == 0 {
            return None;
        }
        let pages = arena::Pages::new(count.checked_mul(size_of::<CUgraphNode>())?)?;
        // SAFETY: there is room for as many nodes as are asked for.
        let result = unsafe { next::call::cuGraphGetNodes(graph, pages.start().cast(), &mut count) };
        (result == CUDA_SUCCESS && count * size_of::<CUgraphNode>() <= pages.bytes())
            .then_some(Nodes { pages, count })
    }

    fn as_slice(&self) -> &[CUgraphNode] {
        // SAFETY: the driver has written so many, which was checked to lie inside.
        unsafe { std::slice::from_raw_parts(self.pages.start().cast(), self.count) }
    }
}
