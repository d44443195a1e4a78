//! What a program says it has done, as text in a file: a word for the kind of line, then its fields, tabs between.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use telemetry::{Counter, Note};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub counts: BTreeMap<Counter, u64>,
    pub notes: BTreeSet<Note>,
    pub kernels: BTreeMap<KernelName, KernelTally>,
}

/// A kernel is another one in another image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelName {
    pub name: String,
    /// What the program calls the code it has loaded; same code, same word.
    pub image: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTally {
    pub parameter_bytes: u32,
    pub parameter_count: u32,
    pub launches: u64,
    pub in_graphs: u64,
    pub blocks: u64,
}

impl Tally {
    pub fn count(&self, counter: Counter) -> u64 {
        self.counts.get(&counter).copied().unwrap_or(0)
    }

    /// Complete or not at all: somebody may be waiting for it.
    pub fn write(&self, path: &Path) -> Result<()> {
        let unfinished = path.with_extension("unfinished");
        std::fs::write(&unfinished, self.text())?;
        Ok(std::fs::rename(unfinished, path)?)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |words: &[&dyn std::fmt::Display]| {
            let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            writeln!(text, "{}", words.join("\t")).expect("a string takes all that is written");
        };
        self.counts.iter().for_each(|(counter, count)| line(&[&"count", &counter.name(), count]));
        self.notes.iter().for_each(|note| line(&[&"note", &note.name()]));
        for (KernelName { name, image }, kernel) in &self.kernels {
            let KernelTally { parameter_bytes, parameter_count, launches, in_graphs, blocks } = kernel;
            line(&[&"kernel", name, image, parameter_bytes, parameter_count, launches, in_graphs, blocks]);
        }
        text
    }

    pub fn read(path: &Path) -> Result<Tally> {
        let mut tally = Tally::default();
        for line in std::fs::read_to_string(path)?.lines() {
            match &line.split('\t').collect::<Vec<_>>()[..] {
                ["count", name, count] => {
                    let counter = Counter::ALL.iter().find(|counter| counter.name() == *name);
                    tally.counts.insert(*counter.context("no such counter")?, count.parse()?);
                }
                ["note", name] => {
                    let note = Note::ALL.into_iter().find(|note| note.name() == *name);
                    tally.notes.insert(note.context("no such note")?);
                }
                ["kernel", name, image, bytes, count, launches, in_graphs, blocks] => {
                    let kernel = KernelTally {
                        parameter_bytes: bytes.parse()?,
                        parameter_count: count.parse()?,
                        launches: launches.parse()?,
                        in_graphs: in_graphs.parse()?,
                        blocks: blocks.parse()?,
                    };
                    let name = KernelName { name: (*name).to_owned(), image: (*image).to_owned() };
                    tally.kernels.insert(name, kernel);
                }
                _ => bail!("{}: what is {line:?}?", path.display()),
            }
        }
        Ok(tally)
    }
}
