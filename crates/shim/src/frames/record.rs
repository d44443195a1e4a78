//! The record of one executable graph: its kernel nodes, and how often a launch of it runs each kernel.
//!
//! Nodes are kept one by one, in the order in which the driver lists them, because programs switch single nodes off and
//! give them other kernels; kernels are kept apart from them, so that a launch looks at each kernel once. A program may
//! not change an executable graph while it launches it, so nothing here has to be exact then, only sound.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use telemetry::Counter;

use super::Frame;
use crate::arena;
use crate::lock::Lock;
use crate::tenancy::warm_up;
use crate::watch::Watch;

pub struct Graph {
    /// Kernel nodes that are on.
    kernels: AtomicU64,
    /// Of these, the ones whose kernel is not known.
    unknown: AtomicU64,
    /// Null until there is a node.
    room: AtomicPtr<Room>,
    /// Whether it was launched since it was instantiated.
    used: AtomicBool,
    /// The next spare record.
    next: AtomicPtr<Graph>,
}

/// As many parts as nodes: there cannot be more different kernels than nodes.
struct Room {
    nodes: &'static [Node],
    parts: &'static [Part],
    used: AtomicUsize,
    /// The node that was found last. Programs go through their nodes in order.
    last: AtomicUsize,
}

struct Node {
    /// In the graph that was instantiated.
    name: AtomicUsize,
    /// In the graph that the executable one was last brought up to date with.
    newer: AtomicUsize,
    frame: AtomicPtr<Frame>,
    off: AtomicBool,
}

/// A kernel and how many nodes that are on run it. Null ends the list; what is run by none may be taken.
struct Part {
    frame: AtomicPtr<Frame>,
    times: AtomicU64,
}

/// Records of graphs that are gone: some programs instantiate one for every step.
pub struct Spare {
    lock: Lock,
    first: AtomicPtr<Graph>,
}

impl Spare {
    pub fn new() -> Spare {
        Spare { lock: Lock::new(), first: AtomicPtr::new(ptr::null_mut()) }
    }

    pub fn take(&self) -> Option<&'static Graph> {
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

    pub fn give(&self, graph: &'static Graph) {
        let Some(_held) = self.lock.acquire() else { return };
        graph.next.store(self.first.load(Ordering::Relaxed), Ordering::Relaxed);
        self.first.store(ptr::from_ref(graph).cast_mut(), Ordering::Relaxed);
    }
}

impl Graph {
    pub fn clear(&self) {
        self.kernels.store(0, Ordering::Relaxed);
        self.unknown.store(0, Ordering::Relaxed);
        self.used.store(false, Ordering::Relaxed);
        let Some(room) = self.room() else { return };
        room.used.store(0, Ordering::Relaxed);
        room.last.store(0, Ordering::Relaxed);
        for part in room.parts() {
            part.frame.store(ptr::null_mut(), Ordering::Relaxed);
            part.times.store(0, Ordering::Relaxed);
        }
    }

    /// One more kernel node, which is on. `None` when there is no memory: it is counted, and not told apart.
    pub fn add(&self, name: usize, frame: Option<&'static Frame>) -> Option<()> {
        let Some(room) = self.room().filter(|room| !room.is_full()).or_else(|| self.grow()) else {
            self.change(None, true);
            return None;
        };
        let at = room.used.load(Ordering::Relaxed);
        room.nodes[at].set(name, frame);
        room.used.store(at + 1, Ordering::Relaxed);
        self.change(frame, true);
        Some(())
    }

    /// The node at that place was brought up to date with one of another graph. It is on or off as it was.
    pub fn renew(&self, at: usize, newer: usize, frame: Option<&'static Frame>) {
        let Some(node) = self.room().and_then(|room| room.nodes().get(at)) else { return };
        node.newer.store(newer, Ordering::Relaxed);
        self.put(node, frame);
    }

    /// A node was given another kernel, or the same.
    pub fn give(&self, name: usize, frame: Option<&'static Frame>) {
        if let Some(at) = self.place_of(name) {
            self.renew(at, name, frame);
        }
    }

    /// A node was switched on or off, or was so already.
    pub fn switch(&self, name: usize, on: bool) {
        let Some(node) = self.place_of(name).and_then(|at| self.room()?.nodes().get(at)) else { return };
        if node.off.swap(!on, Ordering::Relaxed) == on {
            self.change(node.frame(), on);
        }
    }

    /// Where a kernel node is in the list.
    pub fn place_of(&self, name: usize) -> Option<usize> {
        let room = self.room()?;
        let (nodes, last) = (room.nodes(), room.last.load(Ordering::Relaxed));
        let order = (last..nodes.len()).chain(0..last.min(nodes.len()));
        let found = order.into_iter().find(|&at| nodes[at].is_called(name))?;
        room.last.store(found, Ordering::Relaxed);
        Some(found)
    }

    /// Counts a launch; how many kernels it runs.
    pub fn launched(&self, watch: &Watch) -> u64 {
        // The first launch takes the graph to the GPU.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
            warm_up::note();
        }
        let (ledger, kernels) = (&watch.ledger, self.kernels.load(Ordering::Relaxed));
        ledger.add(Counter::KernelsInGraphs, kernels);
        ledger.add(Counter::KernelsUnknown, self.unknown.load(Ordering::Relaxed));
        for part in self.room().into_iter().flat_map(Room::parts) {
            let times = part.times.load(Ordering::Relaxed);
            let Some(frame) = part.frame().filter(|_| times > 0) else { continue };
            match frame.learned(watch).and_then(|learned| learned.kernel) {
                Some(kernel) => kernel.in_graph(times),
                None => ledger.add(Counter::KernelsUnlisted, times),
            }
        }
        kernels
    }

    fn put(&self, node: &Node, frame: Option<&'static Frame>) {
        if !node.off.load(Ordering::Relaxed) {
            self.change(node.frame(), false);
            self.change(frame, true);
        }
        node.frame.store(address(frame), Ordering::Relaxed);
    }

    /// One node more or less that runs a kernel.
    fn change(&self, frame: Option<&'static Frame>, more: bool) {
        step(&self.kernels, more);
        let part = frame.and_then(|frame| self.room()?.part_of(frame));
        step(part.map_or(&self.unknown, |part| &part.times), more);
    }

    fn room(&self) -> Option<&'static Room> {
        // SAFETY: null, or a room in the arena, which stays.
        unsafe { self.room.load(Ordering::Acquire).as_ref() }
    }

    /// Twice the room, with all that is there.
    fn grow(&self) -> Option<&'static Room> {
        let old = self.room();
        let room = Room::new(old.map_or(FIRST, |room| room.nodes.len() * 2))?;
        if let Some(old) = old {
            old.nodes().iter().zip(room.nodes).for_each(|(from, to)| to.copy(from));
            old.parts().zip(room.parts).for_each(|(from, to)| to.copy(from));
            room.used.store(old.nodes().len(), Ordering::Relaxed);
        }
        self.room.store(ptr::from_ref(room).cast_mut(), Ordering::Release);
        Some(room)
    }
}

const FIRST: usize = 32;

impl Room {
    fn new(count: usize) -> Option<&'static Room> {
        // SAFETY: a node is made of atomics, for which zeros are values.
        let nodes = unsafe { arena::zeroed(count) }?;
        // SAFETY: so is a part.
        let parts = unsafe { arena::zeroed(count) }?;
        arena::place(Room { nodes, parts, used: AtomicUsize::new(0), last: AtomicUsize::new(0) })
    }

    fn is_full(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.nodes.len()
    }

    fn nodes(&self) -> &'static [Node] {
        &self.nodes[..self.used.load(Ordering::Relaxed).min(self.nodes.len())]
    }

    fn parts(&self) -> impl Iterator<Item = &'static Part> {
        self.parts.iter().take_while(|part| part.frame().is_some())
    }

    /// The part of a kernel: its own, or one that is free.
    fn part_of(&self, frame: &'static Frame) -> Option<&'static Part> {
        let own = self.parts().find(|part| part.frame().is_some_and(|known| ptr::eq(known, frame)));
        own.or_else(|| {
            let free = self.parts.iter().find(|part| part.times.load(Ordering::Relaxed) == 0)?;
            free.frame.store(address(Some(frame)), Ordering::Release);
            Some(free)
        })
    }
}

impl Node {
    fn set(&self, name: usize, frame: Option<&'static Frame>) {
        self.name.store(name, Ordering::Relaxed);
        self.newer.store(name, Ordering::Relaxed);
        self.frame.store(address(frame), Ordering::Relaxed);
        self.off.store(false, Ordering::Relaxed);
    }

    fn copy(&self, from: &Node) {
        self.set(from.name.load(Ordering::Relaxed), from.frame());
        self.newer.store(from.newer.load(Ordering::Relaxed), Ordering::Relaxed);
        self.off.store(from.off.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn is_called(&self, name: usize) -> bool {
        self.name.load(Ordering::Relaxed) == name || self.newer.load(Ordering::Relaxed) == name
    }

    fn frame(&self) -> Option<&'static Frame> {
        // SAFETY: null, or a frame in the arena, which stays.
        unsafe { self.frame.load(Ordering::Acquire).as_ref() }
    }
}

impl Part {
    fn copy(&self, from: &Part) {
        self.frame.store(address(from.frame()), Ordering::Relaxed);
        self.times.store(from.times.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn frame(&self) -> Option<&'static Frame> {
        // SAFETY: null, or a frame in the arena, which stays.
        unsafe { self.frame.load(Ordering::Acquire).as_ref() }
    }
}

fn address(frame: Option<&'static Frame>) -> *mut Frame {
    frame.map_or(ptr::null_mut(), |frame| ptr::from_ref(frame).cast_mut())
}

/// Never below zero: a launch of no kernels is better than one of 2⁶⁴.
fn step(count: &AtomicU64, more: bool) {
    let next = |count: u64| if more { count.checked_add(1) } else { count.checked_sub(1) };
    let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
}
