//! Instantiated graphs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cuda_abi::*;
use softgpu::engine::{Task, Work};

use super::context::Context;
use super::driver::next_id;
use super::graph::{Graph, Ordered};
use super::lock;
use super::operation::Operation;
use super::queue::Takes;
use super::stream::Stream;
use super::user_object::Held;
use crate::error::{Result, refuse};
use crate::handles::{Handle, object};

pub struct Exec {
    pub handle: Handle<Exec>,
    pub id: u64,
    pub flags: u64,
    plan: Mutex<Plan>,
    /// What the graph kept alive when this was made of it.
    _objects: Vec<Arc<Held>>,
    /// The end of the latest launch: an executable graph does not run twice at a time.
    last: Mutex<Task>,
}

object!(Exec, CUgraphExec_st, CUDA_ERROR_INVALID_VALUE);

/// What is done, in order. It is a copy: later changes to the graph do not touch it.
#[derive(Clone, Default)]
struct Plan {
    steps: Vec<Step>,
}

#[derive(Clone)]
struct Step {
    /// The node of the graph this came from, under which it is updated.
    node: u64,
    action: Action,
    dependencies: Vec<usize>,
    enabled: bool,
}

#[derive(Clone)]
enum Action {
    Operation(Operation),
    Child(Plan),
}

/// Why a graph does not fit an executable graph.
pub struct Mismatch {
    pub node: Option<u64>,
    pub result: CUgraphExecUpdateResult,
}

impl Plan {
    fn of(graph: &Graph) -> Result<Plan> {
        let step = |Ordered { node, dependencies }: Ordered| -> Result<Step> {
            let action = match node.operation() {
                Operation::Child(graph) => Action::Child(Plan::of(&graph)?),
                operation => Action::Operation(operation),
            };
            Ok(Step { node: node.handle.value(), action, dependencies, enabled: true })
        };
        let steps = graph.ordered()?.into_iter().map(step).collect::<Result<_>>()?;
        Ok(Plan { steps })
    }

    /// Submits everything, to start after `before`; gives the tasks that nothing else depends on.
    fn submit(&self, context: &Arc<Context>, before: &[Task], priority: i32) -> Result<Vec<Task>> {
        let mut tasks: Vec<Task> = Vec::with_capacity(self.steps.len());
        let mut is_leaf = vec![true; self.steps.len()];
        for step in &self.steps {
            let mut after: Vec<Task> = step.dependencies.iter().map(|place| tasks[*place].clone()).collect();
            step.dependencies.iter().for_each(|place| is_leaf[*place] = false);
            if after.is_empty() {
                after = before.to_vec();
            }
            let task = match &step.action {
                _ if !step.enabled => context.engine.submit(Work::Nothing, &after, priority),
                Action::Operation(operation) => operation.submit_after(context, &after, priority)?,
                Action::Child(plan) => {
                    let ends = plan.submit(context, &after, priority)?;
                    let ends = if ends.is_empty() { after } else { ends };
                    context.engine.submit(Work::Nothing, &ends, priority)
                }
            };
            tasks.push(task);
        }
        Ok(tasks.into_iter().zip(is_leaf).filter_map(|(task, leaf)| leaf.then_some(task)).collect())
    }

    /// Takes over the operations of `newer`, which must have the same shape.
    fn update(&mut self, newer: Plan) -> std::result::Result<(), Mismatch> {
        let mismatch = |node, result| Err(Mismatch { node, result });
        if self.steps.len() != newer.steps.len() {
            return mismatch(None, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
        }
        for (old, new) in self.steps.iter_mut().zip(newer.steps) {
            if old.dependencies != new.dependencies {
                return mismatch(Some(new.node), CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
            }
            match (&mut old.action, new.action) {
                (Action::Child(old), Action::Child(new)) => old.update(new)?,
                (Action::Operation(old), Action::Operation(new)) if alike(old, &new) => *old = new,
                _ => return mismatch(Some(new.node), CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED),
            }
            old.node = new.node;
        }
        Ok(())
    }
}

fn alike(a: &Operation, b: &Operation) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

impl Exec {
    pub fn instantiate(graph: &Graph, flags: u64) -> Result<Arc<Exec>> {
        let handle = Handle::fresh();
        let exec = Arc::new(Exec {
            handle,
            id: next_id(),
            flags,
            plan: Mutex::new(Plan::of(graph)?),
            _objects: graph.objects(),
            last: Mutex::new(Task::done()),
        });
        handle.bind(Arc::clone(&exec));
        Ok(exec)
    }

    /// Puts the whole graph into a stream.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        let context = stream.context()?;
        let plan = lock(&self.plan).clone();
        let mut last = lock(&self.last);
        let before = last.clone();
        *last = context.hand_over(stream, Takes::AnEntry, || {
            let begin = context.submit(stream, Work::Nothing, &[before], stream.priority);
            let ends = plan.submit(&context, &[begin], stream.priority)?;
            Ok(context.submit(stream, Work::Nothing, &ends, stream.priority))
        })?;
        Ok(())
    }

    pub fn update(&self, graph: &Graph) -> Result<std::result::Result<(), Mismatch>> {
        let newer = Plan::of(graph)?;
        let mut plan = lock(&self.plan);
        let mut updated = plan.clone();
        let result = updated.update(newer);
        if result.is_ok() {
            *plan = updated;
        }
        Ok(result)
    }

    /// Replaces the operation of one node by another of its kind.
    pub fn set_operation(&self, node: u64, operation: Operation) -> Result<()> {
        let mut plan = lock(&self.plan);
        let step = plan.steps.iter_mut().find(|step| step.node == node).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        match &mut step.action {
            Action::Operation(old) if alike(old, &operation) => *old = operation,
            _ => return refuse(CUDA_ERROR_INVALID_VALUE),
        }
        Ok(())
    }

    pub fn operation(&self, node: u64) -> Result<Operation> {
        let plan = lock(&self.plan);
        match plan.steps.iter().find(|step| step.node == node).map(|step| &step.action) {
            Some(Action::Operation(operation)) => Ok(operation.clone()),
            _ => refuse(CUDA_ERROR_INVALID_VALUE),
        }
    }

    pub fn set_child(&self, node: u64, graph: &Graph) -> Result<()> {
        let newer = Plan::of(graph)?;
        let mut plan = lock(&self.plan);
        let step = plan.steps.iter_mut().find(|step| step.node == node);
        match step.map(|step| &mut step.action) {
            Some(Action::Child(old)) => {
                // The nodes keep the names under which the program knows them.
                let names: BTreeMap<usize, u64> =
                    old.steps.iter().map(|step| step.node).enumerate().collect();
                let mut updated = old.clone();
                if updated.update(newer).is_err() {
                    return refuse(CUDA_ERROR_INVALID_VALUE);
                }
                for (place, step) in updated.steps.iter_mut().enumerate() {
                    step.node = names[&place];
                }
                *old = updated;
                Ok(())
            }
            _ => refuse(CUDA_ERROR_INVALID_VALUE),
        }
    }

    pub fn set_enabled(&self, node: u64, enabled: bool) -> Result<()> {
        let mut plan = lock(&self.plan);
        let step = plan.steps.iter_mut().find(|step| step.node == node).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        let may = matches!(
            step.action,
            Action::Operation(Operation::Kernel(_) | Operation::Copy(_) | Operation::Fill(_))
        );
        if !may {
            return refuse(CUDA_ERROR_INVALID_VALUE);
        }
        step.enabled = enabled;
        Ok(())
    }

    pub fn is_enabled(&self, node: u64) -> Result<bool> {
        let plan = lock(&self.plan);
        let step = plan.steps.iter().find(|step| step.node == node);
        step.map(|step| step.enabled).ok_or(CUDA_ERROR_INVALID_VALUE.into())
    }
}
