//! What a tenant computes.

mod keys;
mod models;

use std::fmt;

use model::Nanos;
use serde::{Deserialize, Serialize};

pub(crate) use keys::Keys;
pub use models::{Form, MODELS, Model, Task};

use crate::span::written;

/// One request of a latency tenant, or one iteration of a best-effort tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "Keys", try_from = "Keys")]
pub enum Workload {
    Torch(Torch),
    /// A weather-like stencil, in CuPy.
    Stencil,
    /// A walk over a random graph, in CuPy.
    Traversal,
    Burst(Burst),
    Grid(Grid),
}

/// A model in PyTorch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Torch {
    pub model: &'static Model,
    pub task: Task,
    pub form: Form,
    pub batch: u32,
    /// The length of its sequences, of models that have any.
    pub tokens: Option<u32>,
    /// Of a model that answers token by token: how many it is given,
    pub prompt: Option<u32>,
    /// and how many it gives.
    pub output: Option<u32>,
}

/// Launches of short kernels, the host pausing between them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Burst {
    pub launches: u32,
    pub blocks: u32,
    pub block: Nanos,
    pub gap: Nanos,
}

/// One launch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    pub blocks: u32,
    pub block: Nanos,
}

/// Which program does the work on a card. On the software GPU one player does all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Worker {
    Torch,
    Cupy,
    Synthetic,
}

impl Workload {
    /// The name under which its profile lies and its results are kept: equal for equal workloads, and only for those.
    pub fn id(&self) -> String {
        self.to_string()
    }

    pub fn worker(&self) -> Worker {
        match self {
            Workload::Torch(_) => Worker::Torch,
            Workload::Stencil | Workload::Traversal => Worker::Cupy,
            Workload::Burst(_) | Workload::Grid(_) => Worker::Synthetic,
        }
    }

    /// How many tokens an answer has, where answers come token by token.
    pub fn output(&self) -> Option<u32> {
        match self {
            Workload::Torch(torch) => torch.output,
            _ => None,
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Workload::Torch(torch) => {
                let Torch { model, task, form, batch, tokens, prompt, output } = torch;
                write!(f, "{}-{}-{}-b{batch}", model.name, task.name(), form.name())?;
                for (letter, length) in [('t', tokens), ('p', prompt), ('o', output)] {
                    if let Some(length) = length {
                        write!(f, "-{letter}{length}")?;
                    }
                }
                Ok(())
            }
            Workload::Stencil => f.write_str("stencil"),
            Workload::Traversal => f.write_str("traversal"),
            Workload::Burst(Burst { launches, blocks, block, gap }) => {
                write!(f, "burst-{launches}x{blocks}x{}", written(*block))?;
                if *gap > Nanos::ZERO { write!(f, "-gap{}", written(*gap)) } else { Ok(()) }
            }
            Workload::Grid(Grid { blocks, block }) => write!(f, "grid-{blocks}x{}", written(*block)),
        }
    }
}

#[cfg(test)]
mod tests;
