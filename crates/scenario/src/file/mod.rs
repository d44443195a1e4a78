//! A scenario file's own words.

mod cross;
mod reader;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use crate::error::Error;
use crate::scenario::Scenario;
use crate::{arrival, slo::Slo, workload};

/// The only schema so far.
pub const SCHEMA: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: Spanned<u32>,
    title: Spanned<String>,
    source: Option<String>,
    about: Option<String>,
    duration: Spanned<String>,
    warmup: Option<Spanned<String>>,
    repetitions: Option<Spanned<u32>>,
    seed: Option<u64>,
    modes: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    soft: SoftTable,
    #[serde(default)]
    tenant: Vec<Spanned<TenantTable>>,
    cross: Option<Spanned<CrossTable>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SoftTable {
    slowdown: Option<Spanned<f64>>,
    duration: Option<Spanned<String>>,
    warmup: Option<Spanned<String>>,
    repetitions: Option<Spanned<u32>>,
    modes: Option<Vec<Spanned<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TenantTable {
    name: Spanned<String>,
    class: Spanned<String>,
    workload: Spanned<workload::Keys>,
    arrival: Option<Spanned<arrival::Keys>>,
    slo: Option<Spanned<Slo>>,
}

/// Every latency tenant beside every best-effort tenant, at every load.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CrossTable {
    arrival: Option<Spanned<arrival::Keys>>,
    slo: Option<Spanned<Slo>>,
    loads: Option<Vec<Spanned<f64>>>,
    latency: Vec<Spanned<LatencyTable>>,
    best_effort: Vec<Spanned<BestEffortTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LatencyTable {
    name: Spanned<String>,
    workload: Spanned<workload::Keys>,
    arrival: Option<Spanned<arrival::Keys>>,
    slo: Option<Spanned<Slo>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BestEffortTable {
    name: Spanned<String>,
    workload: Spanned<workload::Keys>,
}

/// Where a scenario's text comes from, and the files beside it.
#[derive(Clone, Debug)]
pub struct Origin {
    file: PathBuf,
    beside: Beside,
}

#[derive(Clone, Debug)]
enum Beside {
    Folder(PathBuf),
    /// Names and texts.
    Embedded(Vec<(&'static str, &'static str)>),
}

impl Origin {
    /// A file on disk, with its folder.
    pub fn file(path: &Path) -> Origin {
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Origin { file: path.to_owned(), beside: Beside::Folder(folder) }
    }

    /// A text that is called like a file, with nothing beside it.
    pub fn text(name: &str) -> Origin {
        Origin::embedded(name, Vec::new())
    }

    pub(crate) fn embedded(name: &str, beside: Vec<(&'static str, &'static str)>) -> Origin {
        Origin { file: name.into(), beside: Beside::Embedded(beside) }
    }

    /// The file's name without its ending.
    fn name(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn open(&self, name: &str) -> Result<String, String> {
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Err(format!("`{name}` is no name of a file beside this one"));
        }
        match &self.beside {
            Beside::Folder(folder) => fs::read_to_string(folder.join(name))
                .map_err(|error| format!("{name} cannot be read: {error}")),
            Beside::Embedded(files) => {
                let found = files.iter().find(|(file, _)| *file == name);
                found
                    .map(|(_, text)| (*text).to_owned())
                    .ok_or_else(|| format!("there is no {name} beside this file"))
            }
        }
    }
}

/// The scenarios of one file: one, or as many as its cross makes.
pub fn parse(text: &str, origin: &Origin) -> Result<Vec<Scenario>, Error> {
    reader::Reader::new(text, origin).read()
}
