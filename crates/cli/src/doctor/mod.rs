//! `ebb doctor`: what would keep ebb from working here, and how to mend it.
//!
//! Every check is one line, and a line that is not well is followed by what to do about it. The machine stays as it was.
//! What may crash, such as a broken driver, is tried in a process of its own (`ask`); what can be proved, such as
//! that the loader takes the shim, is proved by doing it.
//!
//! * `check`: a line and how it is printed
//! * `driver`: is there one, does it answer, do we know it
//! * `attach`: does the shim get in front of it, with all its names
//! * `sharing`: the daemon, and how tenants will be stopped; `domain`: how they share
//! * `around`: MPS, containers, other preloads
//! * `command`: can it be preloaded into

mod around;
pub mod ask;
mod attach;
mod check;
mod command;
mod company;
mod domain;
mod driver;
mod sharing;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use installation::{Library, Machine};
use lab::Probe;

use crate::arguments::{Device, DoctorOptions, Output};
use check::Check;

/// What every name in the list of checks stands for.
pub const CHECKS: &str = "\
Checks:
  shim           ebb's own library lies beside ebb, for this architecture
  driver         a libcuda.so.1 is found behind it
  answers        that driver loads and starts, in a process of its own
  version        it is neither much older nor newer than what ebb was made for
  kernel-module  the library and the kernel module are of one version
  gpu            there is a GPU, and its device nodes can be opened
  exports        every function the driver exports is in the shim too; what is not is named
  folder         the runtime folder can be written to
  preload        the loader takes the shim: tried, and proved by its ledger
  other-preloads nobody else stands in for the driver
  daemon         a daemon answers, or can be started
  domain         how tenants share a GPU, and what that needs
  switch         how best-effort tenants will be stopped with this driver
  mps            NVIDIA's Multi-Process Service runs or not
  company        who else is on the GPU: other users, other daemons of ebb
  container      a container, if any, has been given the driver
  command        the given command can be preloaded into

Status 0: nothing failed (with --strict: and there is no warning); 1: something did.";

pub fn run(options: &DoctorOptions) -> ExitCode {
    let checks = checks(options);
    match options.output {
        Output::Text => print!("{}", check::text(&checks)),
        Output::Json => check::print_json(&checks, options.strict),
    }
    if check::well(&checks, options.strict) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// All checks as they are printed.
pub fn page(options: &DoctorOptions) -> String {
    check::text(&checks(options))
}

/// The hidden verb: a driver's answers, for the parent to read.
pub fn probe(driver: &Path) -> Result<()> {
    print!("{}", lab::probe(driver)?);
    Ok(())
}

fn checks(options: &DoctorOptions) -> Vec<Check> {
    let machine = Machine::here();
    let mut checks = Vec::new();
    let shim = attach::shim(&mut checks);
    let driver = driver::find(options, &mut checks);
    let probe = driver.as_ref().and_then(|driver| driver::answers(driver, &mut checks));
    checks.extend(probe.as_ref().and_then(|probe| driver::version(probe.version)));
    checks.extend(hardware(options, &machine, driver.as_ref(), probe.as_ref()));
    checks.extend(shim.as_ref().zip(driver.as_ref()).map(|(shim, driver)| attach::exports(driver, shim)));
    checks.push(attach::folder());
    let alone = probe.is_some();
    checks.extend(shim.as_ref().map(|shim| attach::preload(shim, options, driver.as_ref(), alone)));
    checks.push(sharing::daemon());
    checks.push(domain::check(options, probe.as_ref().map_or(&[], |probe| &probe.gpus)));
    checks.extend(sharing::switch(options, driver.as_ref()));
    checks.push(around::preloads(&machine, shim.as_ref()));
    checks.push(around::mps(&machine));
    checks.push(company::check(options));
    checks.push(around::container(&machine, driver.is_some()));
    checks.extend(options.command.first().map(|name| command::check(name)));
    checks
}

/// What only a real GPU needs.
fn hardware(
    options: &DoctorOptions,
    machine: &Machine,
    driver: Option<&Library>,
    probe: Option<&Probe>,
) -> Vec<Check> {
    let gpus = probe.map_or(&[][..], |probe| &probe.gpus);
    if options.device == Some(Device::Soft) {
        return if gpus.is_empty() { Vec::new() } else { vec![driver::seen(gpus)] };
    }
    let module = machine.kernel_module();
    let version = driver.and_then(Library::version);
    let kernel = driver::kernel_module(version, module.as_deref(), !gpus.is_empty());
    kernel.into_iter().chain([driver::gpu(gpus, &machine.devices(), module.is_some())]).collect()
}
