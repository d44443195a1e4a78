//! Executable graphs: which kernels a launch of one will run.
//!
//! A graph is looked through when it is instantiated: its kernel nodes are counted, each under its kernel. A launch of
//! the graph is then worth so many launches of these. Records are used again after the graph's end, since some programs
//! instantiate one for every step.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use cuda_abi::{
    CU_GRAPH_NODE_TYPE_CONDITIONAL, CU_GRAPH_NODE_TYPE_GRAPH, CU_GRAPH_NODE_TYPE_KERNEL,
    CUDA_KERNEL_NODE_PARAMS, CUDA_SUCCESS, CUgraph, CUgraphNode, CUgraphNodeType,
};
use telemetry::{Counter, Ledger, Note};

use super::{Frame, Frames};
use crate::lock::Lock;
use crate::watch::Watch;
use crate::{arena, next};

/// How many different kernels are told apart in one graph; the rest are counted together.
const DIFFERENT: usize = 48;
/// How many nodes are remembered to be switched off in one graph; more count as if they were on.
const SWITCHED_OFF: usize = 64;
/// Graphs in graphs in graphs.
const DEPTH: usize = 8;

pub struct Graph {
    kernels: AtomicU64,
    parts: [Part; DIFFERENT],
    /// Kernel nodes that are switched off.
    off: [AtomicUsize; SWITCHED_OFF],
    /// The next spare record.
    next: AtomicPtr<Graph>,
}

/// A kernel and how many nodes launch it.
struct Part {
    frame: AtomicPtr<Frame>,
    times: AtomicU32,
}

/// Records of graphs that are gone.
pub struct Spare {
    lock: Lock,
    first: AtomicPtr<Graph>,
}

impl Spare {
    pub fn new() -> Spare {
        Spare { lock: Lock::new(), first: AtomicPtr::new(ptr::null_mut()) }
    }

    fn take(&self) -> Option<&'static Graph> {
        let held = self.lock.acquire()?;
        // SAFETY: null, or a record in the arena, which stays.
        let first = unsafe { self.first.load(Ordering::Relaxed).as_ref() };
        if let Some(graph) = first {
            self.first.store(graph.next.load(Ordering::Relaxed), Ordering::Relaxed);
            return Some(graph);
        }
        drop(held);
        // SAFETY: a record is made of atomics, for which zeros are values.
        unsafe { arena::zeroed::<Graph>(1) }?.first()
    }

    fn give(&self, graph: &'static Graph) {
        let Some(_held) = self.lock.acquire() else { return };
        graph.next.store(self.first.load(Ordering::Relaxed), Ordering::Relaxed);
        self.first.store(ptr::from_ref(graph).cast_mut(), Ordering::Relaxed);
    }
}

impl Frames {
    /// A graph was made executable, or an executable one was brought up to date with it, all its nodes on.
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
        self.survey(record, graph, DEPTH, ledger);
        Some(())
    }

    pub fn destroyed(&self, exec: usize) {
        if let Some(record) = self.graphs.remove(exec) {
            self.spare.give(record);
        }
    }

    /// Counts a launch of the graph under its kernels.
    pub fn launched(&self, exec: usize, watch: &Watch) {
        let Some(record) = self.graphs.get(exec) else { return };
        watch.ledger.add(Counter::KernelsInGraphs, record.kernels.load(Ordering::Relaxed));
        for part in &record.parts {
            // SAFETY: null, or a frame in the arena, which stays.
            let Some(frame) = (unsafe { part.frame.load(Ordering::Acquire).as_ref() }) else { break };
            let times = u64::from(part.times.load(Ordering::Relaxed));
            if let Some(kernel) = frame.learned(watch).and_then(|learned| learned.kernel) {
                kernel.in_graph(times);
            }
        }
    }

    /// A node of an executable graph was switched on or off, or was so already.
    pub fn switched(&self, exec: usize, node: CUgraphNode, on: bool) {
        let Some(record) = self.graphs.get(exec) else { return };
        if kind_of(node) == Some(CU_GRAPH_NODE_TYPE_KERNEL) && record.switch(node.addr(), on) {
            record.change(self.kernel_of(node), on);
        }
    }

    fn survey(&self, record: &Graph, graph: CUgraph, depth: usize, ledger: &Ledger) {
        let Some(nodes) = Nodes::of(graph) else { return };
        for &node in nodes.as_slice() {
            match kind_of(node) {
                Some(CU_GRAPH_NODE_TYPE_KERNEL) => record.change(self.kernel_of(node), true),
                Some(CU_GRAPH_NODE_TYPE_GRAPH) if depth > 0 => {
                    if let Some(inner) = graph_of(node) {
                        self.survey(record, inner, depth - 1, ledger);
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
        self.function(parameters.func.addr()).or_else(|| self.function(parameters.kern.addr()))
    }
}

impl Graph {
    fn clear(&self) {
        self.kernels.store(0, Ordering::Relaxed);
        for part in &self.parts {
            part.frame.store(ptr::null_mut(), Ordering::Relaxed);
            part.times.store(0, Ordering::Relaxed);
        }
        self.off.iter().for_each(|place| place.store(0, Ordering::Relaxed));
    }

    /// Whether that changes anything.
    fn switch(&self, node: usize, on: bool) -> bool {
        let found = self.off.iter().find(|place| place.load(Ordering::Relaxed) == node);
        let (place, value) = match (found, on) {
            (Some(place), true) => (place, 0),
            (None, false) => {
                let Some(free) = self.off.iter().find(|place| place.load(Ordering::Relaxed) == 0) else {
                    return false;
                };
                (free, node)
            }
            _ => return false,
        };
        place.store(value, Ordering::Relaxed);
        true
    }

    /// One node more or less of a kernel.
    fn change(&self, frame: Option<&'static Frame>, more: bool) {
        let step = |count: &AtomicU64| match more {
            true => count.fetch_add(1, Ordering::Relaxed),
            false => count.fetch_sub(1, Ordering::Relaxed),
        };
        step(&self.kernels);
        let Some(frame) = frame else { return };
        let frame = ptr::from_ref(frame).cast_mut();
        for part in &self.parts {
            let there =
                part.frame.compare_exchange(ptr::null_mut(), frame, Ordering::AcqRel, Ordering::Acquire);
            if there.is_ok() || there == Err(frame) {
                let times = part.times.load(Ordering::Relaxed);
                let times = if more { times + 1 } else { times.saturating_sub(1) };
                part.times.store(times, Ordering::Relaxed);
                return;
            }
        }
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
