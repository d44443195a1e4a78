//! What a campaign runs on, looked at before anything starts: who wants figures of a GPU should hear at once that there
//! is none.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use installation::Machine;
use installation::driver::Search;
use lab::campaign::Entry;
use lab::modes::Site;
use results::record;
use scenario::{Device, Worker};
use softgpu::card::Defaults;

use super::super::arguments::RunOptions;
use crate::beside;
use crate::doctor::ask::{Answer, Question};

/// What was found.
pub struct Ground {
    pub device: record::Device,
    software_driver: Option<PathBuf>,
}

const GIB: f64 = (1u64 << 30) as f64;

pub fn look(options: &RunOptions, entries: &[Entry]) -> Result<Ground> {
    match options.device {
        Device::Soft => software(entries),
        Device::Gpu => {
            let found = gpu()?;
            python(options, entries)?;
            Ok(found)
        }
    }
}

impl Ground {
    pub fn site(&self, folder: &Path, options: &RunOptions) -> Result<Site> {
        Ok(Site {
            device: options.device,
            program: std::env::current_exe().context("cannot find this program's own file")?,
            software_driver: self.software_driver.clone(),
            folder: folder.to_owned(),
            rivals: options.rivals.iter().cloned().collect(),
        })
    }
}

fn software(entries: &[Entry]) -> Result<Ground> {
    let driver = beside::software_driver()?;
    // Without it there would be no tenants of ebb, and the mode is what it is all about.
    beside::shim()?;
    let Defaults { sms, memory_bytes, .. } = Defaults::default();
    let slowdown = entries.iter().map(|entry| entry.scenario.slowdown).fold(1.0, f64::max);
    let device = record::Device {
        kind: Device::Soft.to_string(),
        name: "software GPU".to_owned(),
        driver: format!("ebb {}", env!("CARGO_PKG_VERSION")),
        sms,
        memory_gib: memory_bytes as f64 / GIB,
        slowdown,
    };
    Ok(Ground { device, software_driver: Some(driver) })
}

fn gpu() -> Result<Ground> {
    const INSTEAD: &str = "`--device soft` runs the same scenarios on the software GPU";
    let Some((_, library)) = Search::here(None).found else {
        bail!("there is no NVIDIA driver on this machine; {INSTEAD}");
    };
    let question = Question { driver: library.path.as_os_str(), set: Vec::new(), unset: &[] };
    let probe = match question.ask()?.1 {
        Answer::Probe(probe) => probe,
        Answer::Refused(reason) => bail!("the driver {} cannot be used: {reason}", library.path.display()),
        Answer::Crashed { signal } => {
            bail!("the driver {} crashes (signal {signal}); `ebb doctor` says more", library.path.display())
        }
        Answer::Silent => bail!("the driver {} does not answer; {INSTEAD}", library.path.display()),
    };
    let Some(gpu) = probe.gpus.first() else {
        bail!("the driver sees no GPU ({}); {INSTEAD}", probe.init_name);
    };
    let device = record::Device {
        kind: Device::Gpu.to_string(),
        name: gpu.name.clone(),
        driver: Machine::here().kernel_module().unwrap_or_else(|| "unknown".to_owned()),
        // A worker will tell.
        sms: 0,
        memory_gib: (gpu.memory_bytes as f64 / GIB * 10.0).round() / 10.0,
        slowdown: 1.0,
    };
    Ok(Ground { device, software_driver: None })
}

/// Whether the Python that was named has what the scenarios need. Nothing is imported, which would take seconds.
fn python(options: &RunOptions, entries: &[Entry]) -> Result<()> {
    let workers: Vec<Worker> = entries
        .iter()
        .filter(|entry| entry.chosen)
        .flat_map(|entry| entry.scenario.tenants.iter().map(|tenant| tenant.workload.worker()))
        .collect();
    for (worker, module) in [(Worker::Torch, "torch"), (Worker::Cupy, "cupy")] {
        if workers.contains(&worker) {
            has_module(&options.python, module)?;
        }
    }
    Ok(())
}

fn has_module(python: &OsStr, module: &str) -> Result<()> {
    let question =
        format!("import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)");
    let mut command = Command::new(python);
    command.arg("-c").arg(question).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().with_context(|| {
        format!("{} cannot be started; name a Python that has PyTorch with --python", python.display())
    })?;
    ensure!(
        status.success(),
        "{} has no module {module}, which these scenarios need; name another with --python",
        python.display()
    );
    Ok(())
}

/// Of this program: what its sources were when it was built.
pub fn build() -> record::Build {
    record::Build {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: Some(env!("EBB_COMMIT")).filter(|commit| !commit.is_empty()).map(str::to_owned),
        dirty: env!("EBB_DIRTY") == "true",
    }
}
