//! Graphs: operations and the order between them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, Weak};

use cuda_abi::*;

use super::driver::next_id;
use super::lock;
use super::operation::{KernelLaunch, Operation};
use super::user_object::{Held, UserObject};
use crate::error::{Result, refuse};
use crate::handles::{Handle, Object, object};

pub struct Graph {
    pub handle: Handle<Graph>,
    pub id: u64,
    topology: Mutex<Topology>,
}

#[derive(Default)]
struct Topology {
    nodes: BTreeMap<u64, Arc<Node>>,
    /// Pairs (from, to) in the order in which they were added.
    edges: Vec<(u64, u64)>,
    objects: Vec<Arc<Held>>,
    destroyed: bool,
}

pub struct Node {
    pub handle: Handle<Node>,
    graph: Weak<Graph>,
    operation: Mutex<Operation>,
    /// The node of which this one is a copy, in a cloned graph.
    pub origin: Option<u64>,
    shown: Mutex<Vec<Shown>>,
}

/// Parameters that the program was given pointers to: they stay as long as the node.
struct Shown {
    _parameters: Arc<[u8]>,
    /// The address of each parameter, a C array of pointers.
    places: Box<[usize]>,
}

object!(Graph, CUgraph_st, CUDA_ERROR_INVALID_VALUE);
object!(Node, CUgraphNode_st, CUDA_ERROR_INVALID_VALUE);

/// A graph as it is carried out: every node after those it depends on.
pub struct Ordered {
    pub node: Arc<Node>,
    /// Places in the order.
    pub dependencies: Vec<usize>,
}

impl Node {
    pub fn operation(&self) -> Operation {
        lock(&self.operation).clone()
    }

    pub fn set_operation(&self, operation: Operation) {
        *lock(&self.operation) = operation;
    }

    /// The parameters of a launch as C passes them, for as long as the node lives.
    pub fn show_parameters(&self, launch: &KernelLaunch) -> *mut *mut c_void {
        let start = launch.parameters.as_ptr().expose_provenance();
        let parameters = launch.function.kernel.parameters();
        let places = parameters.iter().map(|parameter| start + parameter.offset as usize).collect();
        let shown = Shown { _parameters: Arc::clone(&launch.parameters), places };
        let array = shown.places.as_ptr().cast_mut().cast();
        lock(&self.shown).push(shown);
        array
    }

    pub fn graph(&self) -> Result<Arc<Graph>> {
        self.graph.upgrade().ok_or(CUDA_ERROR_INVALID_VALUE.into())
    }

    pub fn kind(&self) -> CUgraphNodeType {
        match &*lock(&self.operation) {
            Operation::Empty => CU_GRAPH_NODE_TYPE_EMPTY,
            Operation::Kernel(_) => CU_GRAPH_NODE_TYPE_KERNEL,
            Operation::Copy(_) | Operation::Staged { .. } => CU_GRAPH_NODE_TYPE_MEMCPY,
            Operation::Fill(_) => CU_GRAPH_NODE_TYPE_MEMSET,
            Operation::Host(_) | Operation::Callback(_) => CU_GRAPH_NODE_TYPE_HOST,
            Operation::Record(_) => CU_GRAPH_NODE_TYPE_EVENT_RECORD,
            Operation::Wait(_) => CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            Operation::Words(_) => CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
            Operation::Allocate(_) => CU_GRAPH_NODE_TYPE_MEM_ALLOC,
            Operation::Free(_) => CU_GRAPH_NODE_TYPE_MEM_FREE,
            Operation::Child(_) => CU_GRAPH_NODE_TYPE_GRAPH,
        }
    }
}

impl Graph {
    pub fn create() -> Arc<Graph> {
        let handle = Handle::fresh();
        let graph = Arc::new(Graph { handle, id: next_id(), topology: Mutex::default() });
        handle.bind(Arc::clone(&graph));
        graph
    }

    /// Adds an operation that comes after `dependencies`, nodes of this graph without repetition.
    pub fn add(self: &Arc<Graph>, operation: Operation, dependencies: &[u64]) -> Result<Arc<Node>> {
        self.add_copy_of(None, operation, dependencies)
    }

    fn add_copy_of(
        self: &Arc<Graph>,
        origin: Option<u64>,
        operation: Operation,
        dependencies: &[u64],
    ) -> Result<Arc<Node>> {
        let mut topology = lock(&self.topology);
        let distinct = dependencies.iter().collect::<BTreeSet<_>>().len() == dependencies.len();
        let known = dependencies.iter().all(|node| topology.nodes.contains_key(node));
        if !distinct || !known {
            return refuse(CUDA_ERROR_INVALID_VALUE);
        }
        let handle = Handle::fresh();
        let graph = Arc::downgrade(self);
        let node = Arc::new(Node {
            handle,
            graph,
            operation: Mutex::new(operation),
            origin,
            shown: Mutex::default(),
        });
        handle.bind(Arc::clone(&node));
        topology.edges.extend(dependencies.iter().map(|from| (*from, handle.value())));
        topology.nodes.insert(handle.value(), Arc::clone(&node));
        Ok(node)
    }

    pub fn nodes(&self) -> Vec<Arc<Node>> {
        lock(&self.topology).nodes.values().cloned().collect()
    }

    pub fn roots(&self) -> Vec<u64> {
        let topology = lock(&self.topology);
        let targets: BTreeSet<u64> = topology.edges.iter().map(|(_, to)| *to).collect();
        topology.nodes.keys().filter(|node| !targets.contains(node)).copied().collect()
    }

    pub fn edges(&self) -> Vec<(u64, u64)> {
        lock(&self.topology).edges.clone()
    }

    pub fn contains(&self, node: u64) -> bool {
        lock(&self.topology).nodes.contains_key(&node)
    }

    /// Adds edges, all or none.
    pub fn connect(&self, edges: &[(u64, u64)]) -> Result<()> {
        let mut topology = lock(&self.topology);
        let before = topology.edges.len();
        for edge in edges {
            let (from, to) = edge;
            let known = topology.nodes.contains_key(from) && topology.nodes.contains_key(to);
            if !known || from == to || topology.edges.contains(edge) {
                topology.edges.truncate(before);
                return refuse(CUDA_ERROR_INVALID_VALUE);
            }
            topology.edges.push(*edge);
        }
        if topology.order().is_none() {
            topology.edges.truncate(before);
            return refuse(CUDA_ERROR_INVALID_VALUE);
        }
        Ok(())
    }

    pub fn disconnect(&self, edges: &[(u64, u64)]) -> Result<()> {
        let mut topology = lock(&self.topology);
        if !edges.iter().all(|edge| topology.edges.contains(edge)) {
            return refuse(CUDA_ERROR_INVALID_VALUE);
        }
        topology.edges.retain(|edge| !edges.contains(edge));
        Ok(())
    }

    pub fn remove(&self, node: &Node) -> Result<()> {
        let mut topology = lock(&self.topology);
        let key = node.handle.value();
        if topology.nodes.remove(&key).is_none() {
            return refuse(CUDA_ERROR_INVALID_VALUE);
        }
        topology.edges.retain(|(from, to)| *from != key && *to != key);
        drop(topology);
        node.handle.take().map(drop)
    }

    /// Takes over references to an object of the program.
    pub fn hold(&self, held: Held) {
        lock(&self.topology).objects.push(Arc::new(held));
    }

    /// Gives references back, in the portions in which they came.
    pub fn let_go(&self, object: &UserObject, count: u32) -> Result<()> {
        let mut topology = lock(&self.topology);
        let same = |held: &Arc<Held>| held.object.handle == object.handle && held.count == count;
        let place = topology.objects.iter().position(same).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        let held = topology.objects.remove(place);
        drop(topology);
        drop(held);
        Ok(())
    }

    /// What the graph keeps alive.
    pub fn objects(&self) -> Vec<Arc<Held>> {
        lock(&self.topology).objects.clone()
    }

    /// A copy with nodes of its own, child graphs included.
    pub fn duplicate(&self) -> Result<Arc<Graph>> {
        let copy = Graph::create();
        lock(&copy.topology).objects = self.objects();
        let mut places = BTreeMap::new();
        let ordered = self.ordered()?;
        for Ordered { node, dependencies } in &ordered {
            let operation = match node.operation() {
                Operation::Child(graph) => Operation::Child(graph.duplicate()?),
                operation => operation,
            };
            let of_copy = |place: &usize| places[&ordered[*place].node.handle.value()];
            let dependencies: Vec<u64> = dependencies.iter().map(of_copy).collect();
            let made = copy.add_copy_of(Some(node.handle.value()), operation, &dependencies)?;
            places.insert(node.handle.value(), made.handle.value());
        }
        Ok(copy)
    }

    /// The nodes in an order in which they can be carried out.
    pub fn ordered(&self) -> Result<Vec<Ordered>> {
        let topology = lock(&self.topology);
        let order = topology.order().ok_or(CUDA_ERROR_INVALID_VALUE)?;
        let places: BTreeMap<u64, usize> =
            order.iter().enumerate().map(|(place, node)| (*node, place)).collect();
        let mut ordered: Vec<Ordered> = order
            .iter()
            .map(|node| Ordered { node: Arc::clone(&topology.nodes[node]), dependencies: Vec::new() })
            .collect();
        for (from, to) in &topology.edges {
            ordered[places[to]].dependencies.push(places[from]);
        }
        Ok(ordered)
    }

    /// Nodes from which one of `nodes` can be reached, and these themselves.
    pub fn ancestors(&self, nodes: &[u64]) -> BTreeSet<u64> {
        let topology = lock(&self.topology);
        let mut before: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (from, to) in &topology.edges {
            before.entry(*to).or_default().push(*from);
        }
        let mut found = BTreeSet::new();
        let mut open = nodes.to_vec();
        while let Some(node) = open.pop() {
            if found.insert(node) {
                open.extend(before.get(&node).into_iter().flatten());
            }
        }
        found
    }

    /// The graph's handle and those of all its nodes become invalid.
    pub fn destroy(&self) {
        let (nodes, objects) = {
            let mut topology = lock(&self.topology);
            if std::mem::replace(&mut topology.destroyed, true) {
                return;
            }
            (std::mem::take(&mut topology.nodes), std::mem::take(&mut topology.objects))
        };
        // Their end calls functions of the program, so no lock is held.
        drop(objects);
        let _ = self.handle.take();
        let gone = Node::registry().sweep(|node| nodes.contains_key(&node.handle.value()));
        for node in gone {
            if let Operation::Child(graph) = node.operation() {
                graph.destroy();
            }
        }
    }
}

impl Topology {
    /// Kahn's order, in order of creation where the edges leave a choice; `None` when there is a cycle.
    fn order(&self) -> Option<Vec<u64>> {
        let mut waiting: BTreeMap<u64, usize> = self.nodes.keys().map(|node| (*node, 0)).collect();
        let mut after: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (from, to) in &self.edges {
            *waiting.get_mut(to)? += 1;
            after.entry(*from).or_default().push(*to);
        }
        let mut ready: BTreeSet<u64> =
            waiting.iter().filter(|(_, count)| **count == 0).map(|(node, _)| *node).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(node) = ready.pop_first() {
            order.push(node);
            for to in after.get(&node).into_iter().flatten() {
                let count = waiting.get_mut(to)?;
                *count -= 1;
                if *count == 0 {
                    ready.insert(*to);
                }
            }
        }
        (order.len() == self.nodes.len()).then_some(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(nodes: &[&Arc<Node>]) -> Vec<u64> {
        nodes.iter().map(|node| node.handle.value()).collect()
    }

    #[test]
    fn a_graph_is_carried_out_in_the_order_of_its_edges() {
        let graph = Graph::create();
        let a = graph.add(Operation::Empty, &[]).unwrap();
        let b = graph.add(Operation::Empty, &[]).unwrap();
        let c = graph.add(Operation::Empty, &keys(&[&a, &b])).unwrap();
        assert_eq!(graph.roots(), keys(&[&a, &b]));
        graph.connect(&[(b.handle.value(), a.handle.value())]).unwrap();
        let order: Vec<u64> = graph.ordered().unwrap().iter().map(|o| o.node.handle.value()).collect();
        assert_eq!(order, keys(&[&b, &a, &c]));
        assert_eq!(graph.ancestors(&keys(&[&a])), keys(&[&a, &b]).into_iter().collect());
    }

    #[test]
    fn cycles_doubles_and_strangers_are_refused() {
        let (graph, other) = (Graph::create(), Graph::create());
        let a = graph.add(Operation::Empty, &[]).unwrap();
        let b = graph.add(Operation::Empty, &keys(&[&a])).unwrap();
        let stranger = other.add(Operation::Empty, &[]).unwrap();
        let edge = |from: &Arc<Node>, to: &Arc<Node>| [(from.handle.value(), to.handle.value())];
        assert!(graph.connect(&edge(&b, &a)).is_err());
        assert!(graph.connect(&edge(&a, &a)).is_err());
        assert!(graph.connect(&edge(&a, &b)).is_err());
        assert!(graph.connect(&edge(&a, &stranger)).is_err());
        assert!(graph.add(Operation::Empty, &keys(&[&stranger])).is_err());
        assert!(graph.add(Operation::Empty, &keys(&[&a, &a])).is_err());
        assert!(graph.disconnect(&edge(&b, &a)).is_err());
        graph.disconnect(&edge(&a, &b)).unwrap();
        assert_eq!(graph.edges(), []);
    }

    #[test]
    fn a_copy_knows_its_origin_and_stands_alone() {
        let graph = Graph::create();
        let child = Graph::create();
        child.add(Operation::Empty, &[]).unwrap();
        let a = graph.add(Operation::Child(child), &[]).unwrap();
        graph.add(Operation::Empty, &keys(&[&a])).unwrap();
        let copy = graph.duplicate().unwrap();
        graph.destroy();
        assert!(a.handle.get().is_err());
        let nodes = copy.nodes();
        assert_eq!(nodes.len(), 2);
        assert_eq!(nodes[0].origin, Some(a.handle.value()));
        let Operation::Child(child) = nodes[0].operation() else { panic!("still a child graph") };
        assert_eq!(child.nodes().len(), 1, "the child was copied, too");
    }
}
