//! What a stream is asked to do. The same description serves a stream, a capture and a node of a graph.

use std::sync::Arc;

use cuda_abi::*;
use model::Dim3;
use softgpu::card::SmSet;
use softgpu::engine::{Task, Work};
use softgpu::error::Access;
use softgpu::memory::{AddressSpace, Copy3D, Fill, Word};
use softgpu::simt::Launch;

use super::context::Context;
use super::event::{Event, Mark};
use super::function::Function;
use super::graph::Graph;
use super::graph_memory::{self, GraphMemory};
use super::lock;
use super::pool;
use super::queue::Takes;
use super::stream::Stream;
use crate::entry::{HostFunction, StreamCallback};
use crate::error::{Result, refuse};
use crate::log::{self, Level};

#[derive(Clone)]
pub enum Operation {
    Empty,
    Kernel(KernelLaunch),
    Copy(Copy3D),
    /// Bytes of the program that were taken at the time of the call, since it may reuse their place at once.
    Staged {
        to: u64,
        bytes: Arc<[u8]>,
    },
    Fill(Fill),
    Host(HostFunction),
    Callback(StreamCallback),
    Record(Arc<Event>),
    Wait(Arc<Event>),
    Words(Arc<[WordOperation]>),
    /// Memory of a graph, which is there as long as the graph is.
    Allocate(Arc<GraphMemory>),
    /// Gives memory of a pool back.
    Free(u64),
    Child(Arc<Graph>),
}

#[derive(Clone)]
pub struct KernelLaunch {
    pub function: Arc<Function>,
    /// Under which handle the program knows the kernel.
    pub named: u64,
    pub grid: Dim3,
    pub block: Dim3,
    pub dynamic_shared: u32,
    pub parameters: Arc<[u8]>,
    pub cooperative: bool,
    pub priority: Option<i32>,
    /// The SMs of the green context in whose stream it was launched or captured.
    pub sms: Option<SmSet>,
}

/// A wait for, or a write of, a word in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WordOperation {
    Wait {
        address: u64,
        width: Word,
        value: u64,
        condition: Condition,
    },
    Write {
        address: u64,
        width: Word,
        value: u64,
    },
    /// Orders what comes before and after; words are written in order here anyway.
    Barrier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Greater or equal, cyclically.
    Geq,
    Eq,
    And,
    Nor,
}

impl Condition {
    pub fn holds(self, word: u64, value: u64, width: Word) -> bool {
        match (self, width) {
            (Condition::Geq, Word::Four) => (word as u32).wrapping_sub(value as u32) as i32 >= 0,
            (Condition::Geq, Word::Eight) => word.wrapping_sub(value) as i64 >= 0,
            (Condition::Eq, _) => word == value,
            (Condition::And, _) => word & value != 0,
            (Condition::Nor, Word::Four) => !(word | value) as u32 != 0,
            (Condition::Nor, Word::Eight) => !(word | value) != 0,
        }
    }
}

impl Operation {
    /// Appends the operation to a stream.
    pub fn submit(&self, context: &Arc<Context>, stream: &Stream, also: &[Task]) -> Result<Task> {
        let priority = self.priority().unwrap_or(stream.priority);
        let mut last = None;
        for work in self.steps(context)? {
            let also = if last.is_none() { also } else { &[] };
            last = Some(context.submit(stream, work, also, priority));
        }
        let task = last.ok_or(CUDA_ERROR_INVALID_VALUE)?;
        self.submitted(&task);
        Ok(task)
    }

    /// Makes tasks of the operation that start after `after`; the last of them is given.
    pub fn submit_after(&self, context: &Arc<Context>, after: &[Task], priority: i32) -> Result<Task> {
        let priority = self.priority().unwrap_or(priority);
        let mut after = after.to_vec();
        if let Operation::Wait(event) = self
            && let Mark::Recorded(task) = event.mark()
        {
            after.push(task);
        }
        for work in self.steps(context)? {
            after = vec![context.engine.submit(work, &after, priority)];
        }
        let task = after.pop().ok_or(CUDA_ERROR_INVALID_VALUE)?;
        self.submitted(&task);
        Ok(task)
    }

    /// What the operation takes in the queue of its stream.
    pub fn takes(&self) -> Takes {
        match self {
            Operation::Kernel(_)
            | Operation::Copy(_)
            | Operation::Staged { .. }
            | Operation::Fill(_)
            | Operation::Words(_) => Takes::AnEntry,
            Operation::Empty
            | Operation::Host(_)
            | Operation::Callback(_)
            | Operation::Record(_)
            | Operation::Wait(_)
            | Operation::Allocate(_)
            | Operation::Free(_)
            | Operation::Child(_) => Takes::Nothing,
        }
    }

    fn submitted(&self, task: &Task) {
        if let Operation::Record(event) = self {
            event.set_mark(Mark::Recorded(task.clone()));
        }
    }

    fn priority(&self) -> Option<i32> {
        match self {
            Operation::Kernel(launch) => launch.priority,
            _ => None,
        }
    }

    /// The pieces of work, one after the other.
    fn steps(&self, context: &Arc<Context>) -> Result<Vec<Work>> {
        let space = Arc::clone(&context.driver.space);
        Ok(match self {
            Operation::Empty | Operation::Record(_) | Operation::Wait(_) | Operation::Allocate(_) => {
                vec![Work::Nothing]
            }
            Operation::Kernel(launch) => launch.steps(context)?,
            Operation::Copy(copy) => {
                let copy = *copy;
                vec![host("a copy", move || space.copy_3d(&copy))]
            }
            Operation::Staged { to, bytes } => {
                let (to, bytes) = (*to, Arc::clone(bytes));
                vec![host("a copy", move || space.write(to, &bytes))]
            }
            Operation::Fill(fill) => {
                let fill = *fill;
                vec![host("a memset", move || space.fill(&fill))]
            }
            Operation::Host(function) => {
                let function = *function;
                vec![Work::Callback(Box::new(move || function.call()))]
            }
            Operation::Callback(callback) => {
                let (callback, context) = (*callback, Arc::clone(context));
                let status = move || context.check().map_or_else(|error| error.code, |()| CUDA_SUCCESS);
                vec![Work::Callback(Box::new(move || callback.call(status())))]
            }
            Operation::Words(words) => words.iter().map(|word| word.work(&space)).collect(),
            Operation::Free(address) if graph_memory::contains(*address) => vec![Work::Nothing],
            Operation::Free(address) => {
                let address = *address;
                vec![host("a free", move || pool::free(&space, address))]
            }
            Operation::Child(_) => return refuse(CUDA_ERROR_NOT_SUPPORTED),
        })
    }

    /// Refuses what is known to go wrong, before it is queued.
    pub fn check(&self, space: &AddressSpace) -> Result<()> {
        match self {
            Operation::Fill(fill) => {
                let bytes = (fill.height.max(1) - 1).checked_mul(fill.pitch);
                let row = fill.width.checked_mul(fill.pattern.bytes());
                let bytes = bytes.zip(row).and_then(|(rows, row)| rows.checked_add(row));
                match bytes {
                    Some(0) => Ok(()),
                    Some(bytes) => Ok(space.check(fill.to, bytes, Access::Write)?),
                    None => refuse(CUDA_ERROR_INVALID_VALUE),
                }
            }
            Operation::Words(words) => words.iter().try_for_each(|word| word.check(space)),
            _ => Ok(()),
        }
    }
}

/// Host work whose failure can only be told to the log: memory that was freed while a copy was under way.
fn host<E: std::fmt::Display>(
    what: &'static str,
    body: impl FnOnce() -> std::result::Result<(), E> + Send + 'static,
) -> Work {
    Work::Host(Box::new(move || {
        if let Err(error) = body() {
            log::say(Level::Warn, format_args!("{what} in a stream failed: {error}"));
        }
    }))
}

impl WordOperation {
    fn work(self, space: &Arc<AddressSpace>) -> Work {
        let space = Arc::clone(space);
        match self {
            WordOperation::Barrier => Work::Nothing,
            WordOperation::Write { address, width, value } => {
                host("a write of a value", move || space.store_word(address, width, value))
            }
            // Memory that is gone will never hold the value; waiting for it would hang for ever.
            WordOperation::Wait { address, width, value, condition } => Work::Poll(Box::new(move || {
                space.load_word(address, width).map_or(true, |word| condition.holds(word, value, width))
            })),
        }
    }

    fn check(self, space: &AddressSpace) -> Result<()> {
        match self {
            WordOperation::Barrier => Ok(()),
            WordOperation::Write { address, width, .. } | WordOperation::Wait { address, width, .. } => {
                space.load_word(address, width)?;
                Ok(())
            }
        }
    }
}

impl KernelLaunch {
    /// New parameters for a node of a graph; how and where it runs stays as it was.
    pub fn with_attributes_of(self, old: &KernelLaunch) -> KernelLaunch {
        KernelLaunch { cooperative: old.cooperative, priority: old.priority, sms: old.sms, ..self }
    }

    fn steps(&self, context: &Arc<Context>) -> Result<Vec<Work>> {
        let workspace = if self.cooperative { context.take_workspace()? } else { 0 };
        let stack = lock(&context.limits).stack;
        let launch = Launch {
            kernel: self.function.kernel.clone(),
            grid: self.grid,
            block: self.block,
            dynamic_shared: self.dynamic_shared,
            parameters: self.parameters.iter().copied().collect(),
            grid_workspace: workspace,
            grid_id: context.next_grid_id(),
            sm_count: context.driver.properties.sms,
            sms: self.sms,
            stack_limit: u32::try_from(stack).unwrap_or(u32::MAX),
            output: Arc::clone(&context.output),
        };
        let mut steps = vec![Work::Launch(Arc::new(launch))];
        if self.cooperative {
            let context = Arc::clone(context);
            steps.push(Work::Host(Box::new(move || context.give_workspace(workspace))));
        }
        Ok(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_those_of_the_manual() {
        use Condition::*;
        assert!(Geq.holds(5, 5, Word::Four));
        assert!(Geq.holds(3, u64::from(u32::MAX), Word::Four), "cyclic");
        assert!(!Geq.holds(3, 4, Word::Eight));
        assert!(Eq.holds(7, 7, Word::Four) && !Eq.holds(7, 8, Word::Four));
        assert!(And.holds(6, 2, Word::Four) && !And.holds(4, 2, Word::Four));
        assert!(!Nor.holds(0xffff_0000, 0x0000_ffff, Word::Four));
        assert!(Nor.holds(0xffff_0000, 0x0000_ffff, Word::Eight));
    }
}
