//! A workload as it is written, in scenario files and in what a worker is given.
//!
//! Every key may be there or not, and which ones make sense depends on the model; so this is read first, and judged
//! afterwards, with errors that say what is allowed.

use model::Nanos;
use serde::{Deserialize, Serialize};

use super::models::{Form, MODELS, Model, Task};
use super::{Burst, Grid, Torch, Workload};
use crate::only::only;
use crate::span;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<Task>,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<Form>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    launches: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<u32>,
    #[serde(default, with = "span::optional", skip_serializing_if = "Option::is_none")]
    block: Option<Nanos>,
    #[serde(default, with = "span::optional", skip_serializing_if = "Option::is_none")]
    gap: Option<Nanos>,
}

/// Lengths and sizes beyond these are slips of the hand.
const MOST_BATCH: u32 = 4096;
const MOST_TOKENS: u32 = 131_072;
const MOST_LAUNCHES: u32 = 100_000;
const MOST_BLOCKS: u32 = 10_000_000;
const LONGEST_BLOCK: Nanos = Nanos::from_millis(1_000);

impl Keys {
    fn judge(self) -> Result<Workload, String> {
        if let Some(model) = Model::named(&self.model) {
            return self.torch(model);
        }
        match self.model.as_str() {
            "stencil" => self.only(&[]).map(|()| Workload::Stencil),
            "traversal" => self.only(&[]).map(|()| Workload::Traversal),
            "burst" => self.burst(),
            "grid" => self.grid(),
            unknown => {
                let torch = MODELS.map(|model| model.name).join(", ");
                Err(format!(
                    "`{unknown}` is no model; known are {torch}, stencil, traversal, and the synthetic burst and grid"
                ))
            }
        }
    }

    fn torch(self, model: &'static Model) -> Result<Workload, String> {
        let task = self.task.unwrap_or(model.tasks[0]);
        if !model.tasks.contains(&task) {
            return Err(format!("{} can do only {}, not {}", model.name, model.tasks[0].name(), task.name()));
        }
        let form = self.form.unwrap_or(Form::Eager);
        if task == Task::Training && form == Form::Graph {
            return Err("a training is eager or compile; graph is for inference".to_owned());
        }
        let mut allowed = vec!["task", "form", "batch"];
        allowed.extend(model.tokens.map(|_| "tokens"));
        allowed.extend(model.generates.then_some(["prompt", "output"]).into_iter().flatten());
        self.only(&allowed)?;
        let length = |key, given: Option<u32>, plain| within(key, given.unwrap_or(plain), MOST_TOKENS);
        Ok(Workload::Torch(Torch {
            model,
            task,
            form,
            batch: within("batch", self.batch.unwrap_or(1), MOST_BATCH)?,
            tokens: model.tokens(task).map(|plain| length("tokens", self.tokens, plain)).transpose()?,
            prompt: model.generates.then(|| length("prompt", self.prompt, 512)).transpose()?,
            output: model.generates.then(|| length("output", self.output, 32)).transpose()?,
        }))
    }

    fn burst(self) -> Result<Workload, String> {
        self.only(&["launches", "blocks", "block", "gap"])?;
        let gap = self.gap.unwrap_or(Nanos::ZERO);
        if gap > LONGEST_BLOCK {
            return Err(format!("a gap of {gap} is longer than {LONGEST_BLOCK}"));
        }
        Ok(Workload::Burst(Burst {
            launches: within("launches", wanted("launches", self.launches)?, MOST_LAUNCHES)?,
            blocks: within("blocks", wanted("blocks", self.blocks)?, MOST_BLOCKS)?,
            block: length_of_block(self.block)?,
            gap,
        }))
    }

    fn grid(self) -> Result<Workload, String> {
        self.only(&["blocks", "block"])?;
        let blocks = within("blocks", wanted("blocks", self.blocks)?, MOST_BLOCKS)?;
        Ok(Workload::Grid(Grid { blocks, block: length_of_block(self.block)? }))
    }

    /// No key but these is there.
    fn only(&self, allowed: &[&str]) -> Result<(), String> {
        let given = [
            ("task", self.task.is_some()),
            ("form", self.form.is_some()),
            ("batch", self.batch.is_some()),
            ("tokens", self.tokens.is_some()),
            ("prompt", self.prompt.is_some()),
            ("output", self.output.is_some()),
            ("launches", self.launches.is_some()),
            ("blocks", self.blocks.is_some()),
            ("block", self.block.is_some()),
            ("gap", self.gap.is_some()),
        ];
        only(allowed, &given, &self.model, "model")
    }
}

fn wanted<T>(key: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("`{key}` is missing"))
}

fn within(key: &str, value: u32, most: u32) -> Result<u32, String> {
    if (1..=most).contains(&value) {
        Ok(value)
    } else {
        Err(format!("{key} is {value}, not between 1 and {most}"))
    }
}

fn length_of_block(block: Option<Nanos>) -> Result<Nanos, String> {
    let block = wanted("block", block)?;
    let allowed = Nanos(1)..=LONGEST_BLOCK;
    let wrong = || format!("a block of {block} is not between 1 ns and {LONGEST_BLOCK}");
    allowed.contains(&block).then_some(block).ok_or_else(wrong)
}

impl TryFrom<Keys> for Workload {
    type Error = String;

    fn try_from(keys: Keys) -> Result<Workload, String> {
        keys.judge()
    }
}

impl From<Workload> for Keys {
    fn from(workload: Workload) -> Keys {
        let named = |model: &str| Keys { model: model.to_owned(), ..Keys::default() };
        match workload {
            Workload::Torch(Torch { model, task, form, batch, tokens, prompt, output }) => Keys {
                task: Some(task),
                form: Some(form),
                batch: Some(batch),
                tokens,
                prompt,
                output,
                ..named(model.name)
            },
            Workload::Stencil => named("stencil"),
            Workload::Traversal => named("traversal"),
            Workload::Burst(Burst { launches, blocks, block, gap }) => Keys {
                launches: Some(launches),
                blocks: Some(blocks),
                block: Some(block),
                gap: Some(gap),
                ..named("burst")
            },
            Workload::Grid(Grid { blocks, block }) => {
                Keys { blocks: Some(blocks), block: Some(block), ..named("grid") }
            }
        }
    }
}
