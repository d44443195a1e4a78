//! The models of the PyTorch workers: what each can do, and which lengths it has.

use serde::{Deserialize, Serialize};

/// What is done with a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    Inference,
    Training,
}

/// How a model is handed to the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Kernel by kernel, as PyTorch does by itself.
    Eager,
    /// One CUDA graph to a request (of a decoder: to a token).
    Graph,
    /// `torch.compile`.
    Compile,
}

impl Task {
    pub fn name(self) -> &'static str {
        match self {
            Task::Inference => "inference",
            Task::Training => "training",
        }
    }
}

impl Form {
    pub fn name(self) -> &'static str {
        match self {
            Form::Eager => "eager",
            Form::Graph => "graph",
            Form::Compile => "compile",
        }
    }
}

/// A model with random weights, built from its published shape.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Model {
    pub name: &'static str,
    pub(super) tasks: &'static [Task],
    /// The length of its sequences where nothing is said, for inference and for training; none if it has no sequences.
    pub(super) tokens: Option<[u32; 2]>,
    /// Whether it answers token by token, so that there is a first token to wait for.
    pub generates: bool,
}

const BOTH: &[Task] = &[Task::Inference, Task::Training];
const INFERENCE: &[Task] = &[Task::Inference];
const TRAINING: &[Task] = &[Task::Training];

const fn vision(name: &'static str, tasks: &'static [Task]) -> Model {
    Model { name, tasks, tokens: None, generates: false }
}

const fn text(name: &'static str, tasks: &'static [Task], tokens: [u32; 2]) -> Model {
    Model { name, tasks, tokens: Some(tokens), generates: false }
}

pub const MODELS: [Model; 14] = [
    vision("vgg19", BOTH),
    vision("resnet50", BOTH),
    vision("resnet152", BOTH),
    vision("densenet201", BOTH),
    vision("inception-v3", BOTH),
    text("distilbert", BOTH, [128, 128]),
    text("bert", BOTH, [128, 128]),
    vision("yolo", INFERENCE),
    Model { name: "llama", tasks: INFERENCE, tokens: None, generates: true },
    text("gpt2-large", BOTH, [128, 1024]),
    text("whisper", BOTH, [1500, 500]),
    vision("unet", INFERENCE),
    text("pegasus", TRAINING, [512, 512]),
    vision("pointnet", TRAINING),
];

impl Model {
    pub fn named(name: &str) -> Option<&'static Model> {
        MODELS.iter().find(|model| model.name == name)
    }

    pub(super) fn tokens(&self, task: Task) -> Option<u32> {
        self.tokens.map(|tokens| tokens[usize::from(task == Task::Training)])
    }
}
