//! The report: what the ledgers of a command's processes say together.

mod json;
mod text;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use telemetry::{Counter, KernelReading, Reading, UnwrittenLedger};

pub use export::readable;
pub use text::cut;

use super::supervise::End;
use super::watch::{AttachedProcess, Bypass};
use crate::arguments::{Output, ReportOption};

/// Whether ebb can have seen what the command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    Clear,
    /// No, for this reason.
    Blind(String),
}

/// Everything that is known when a command has ended.
pub struct Report {
    pub command: Vec<String>,
    pub end: End,
    pub lasted: Duration,
    pub readings: Vec<Reading>,
    /// Processes that used CUDA and could not leave a ledger.
    pub unwritten: Vec<UnwrittenLedger>,
    /// Processes that were seen with the driver behind ebb.
    pub attached: Vec<AttachedProcess>,
    pub round: Vec<Bypass>,
    pub sight: Sight,
    /// Ledgers that could not be read.
    pub remarks: Vec<String>,
    /// Where ledgers were to be left.
    pub folder: PathBuf,
}

impl Report {
    fn total(&self, counter: Counter) -> u64 {
        self.readings.iter().map(|reading| reading.count(counter)).fold(0, u64::saturating_add)
    }

    /// The kernels of all processes, most launched first. The same kernel of the same module is one.
    fn kernels(&self) -> Vec<KernelReading> {
        let mut kernels: HashMap<(&str, u128), KernelReading> = HashMap::new();
        for kernel in self.readings.iter().flat_map(|reading| &reading.kernels) {
            kernels
                .entry((&kernel.name, kernel.module_hash))
                .and_modify(|sum| {
                    sum.launches = sum.launches.saturating_add(kernel.launches);
                    sum.in_graphs = sum.in_graphs.saturating_add(kernel.in_graphs);
                    sum.blocks = sum.blocks.saturating_add(kernel.blocks);
                    // The strictest is the one with the highest number, and the one that a next run begins with.
                    sum.verdict = sum.verdict.max(kernel.verdict);
                    sum.guarded = sum.guarded.saturating_add(kernel.guarded);
                    sum.cut = sum.cut.saturating_add(kernel.cut);
                    sum.samples = sum.samples.saturating_add(kernel.samples);
                    sum.sampled_ns = sum.sampled_ns.saturating_add(kernel.sampled_ns);
                    sum.block_ns = sum.block_ns.max(kernel.block_ns);
                    sum.certificate_ns = sum.certificate_ns.max(kernel.certificate_ns);
                })
                .or_insert_with(|| kernel.clone());
        }
        let mut kernels: Vec<_> = kernels.into_values().collect();
        kernels.sort_by(|a, b| {
            let order = b.total().cmp(&a.total()).then_with(|| a.name.cmp(&b.name));
            order.then_with(|| a.module_hash.cmp(&b.module_hash))
        });
        kernels
    }

    /// Whether CUDA was used, where that is known.
    fn used(&self) -> Option<bool> {
        if !self.readings.is_empty() || !self.round.is_empty() || !self.unwritten.is_empty() {
            return Some(true);
        }
        (self.sight == Sight::Clear && self.attached.is_empty()).then_some(false)
    }

    /// Processes that reached the driver through ebb although nobody left anything in the folder. Only then is something amiss:
    /// one that only asks how many GPUs there are counts nothing, and in a container processes have other numbers.
    fn silent(&self) -> &[AttachedProcess] {
        if self.readings.is_empty() && self.unwritten.is_empty() { &self.attached } else { &[] }
    }

    /// What a reader must know about the figures, in sentences.
    fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        match (&self.sight, self.used()) {
            (Sight::Blind(reason), Some(_)) => {
                sentences.push(format!("There may be more than was counted: {reason}."));
            }
            (Sight::Blind(reason), None) => sentences.push(format!("There are no figures: {reason}.")),
            (Sight::Clear, Some(false)) => sentences.push("CUDA was never used by this command.".to_owned()),
            (Sight::Clear, _) => {}
        }
        for missing in &self.unwritten {
            sentences.push(format!(
                "Process {} used CUDA and is not counted: its ledger could not be written to {} ({}). Make room there, or \
                 name another folder with EBB_RUNTIME_DIR.",
                missing.pid,
                self.folder.display(),
                missing.reason()
            ));
        }
        for AttachedProcess { pid, program } in self.silent() {
            sentences.push(format!(
                "Process {pid} ({program}) reached the driver through ebb and left no ledger: it did no work on a GPU, or it \
                 could not write to {} (as another user, or in a container that has no such folder).",
                self.folder.display()
            ));
        }
        for Bypass { pid, program, library } in &self.round {
            sentences.push(format!(
                "Process {pid} ({program}) reached the driver round ebb: it mapped {} and not ebb's library. Its \
                 environment may have been cleaned (sudo, env -i, a container), or it is statically linked; \
                 `ebb doctor -- COMMAND` says more.",
                library.display()
            ));
        }
        for reading in &self.readings {
            for note in &reading.notes {
                sentences.push(format!("Process {}: {}.", reading.pid, note.sentence()));
            }
            if !reading.detail.is_empty() {
                sentences.push(format!("Process {} says: {}.", reading.pid, reading.detail));
            }
        }
        sentences.extend(self.remarks.iter().map(|remark| format!("Not counted: {remark}.")));
        // Paths are chosen by others as well.
        sentences.iter().map(|sentence| model::text::on_one_line(sentence)).collect()
    }
}

/// Where a report goes, open since before the command began.
pub struct Target {
    form: Output,
    /// Standard error if there is none.
    file: Option<Destination>,
}

struct Destination {
    file: File,
    name: String,
    stream: bool,
}

impl Target {
    pub fn open(option: &ReportOption) -> Result<Target> {
        let Some(path) = &option.file else { return Ok(Target { form: option.form, file: None }) };
        // What stands in the file stays there until there is something better. A name of a stream may lead to a file
        // that others write to, and theirs stays for good.
        let stream = path.starts_with("/dev") || path.starts_with("/proc");
        let file = File::options().write(true).append(stream).create(true).truncate(false).open(path);
        let name = path.display().to_string();
        let file =
            file.with_context(|| format!("the report cannot be written to {name}; name another file"))?;
        Ok(Target { form: option.form, file: Some(Destination { file, name, stream }) })
    }

    pub fn write(self, report: &Report) -> Result<()> {
        let text = match self.form {
            Output::Text => text::write(report),
            Output::Json => format!("{}\n", json::write(report)),
        };
        let Some(Destination { mut file, name, stream }) = self.file else {
            // Nobody may be listening any more.
            let _ = io::stderr().write_all(text.as_bytes());
            return Ok(());
        };
        if !stream {
            // A named pipe has no length to set.
            let _ = file.set_len(0);
        }
        file.write_all(text.as_bytes()).with_context(|| format!("the report could not be written to {name}"))
    }
}

#[cfg(test)]
mod tests;
