//! ebb's domains: a daemon of the campaign's own for each and for each policy, and workers under `ebb run`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use model::{Class, Domain, Kind, Nanos};
use serde_json::Value;

use super::{Absence, Environment, Service, Surroundings};

/// MPS takes some of it.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Ebb {
    program: PathBuf,
    runtime: PathBuf,
    domain: Domain,
    _daemon: Service,
}

impl Ebb {
    /// `folder` is for the daemon and what it says, and on the software GPU for the cards. A `real` GPU is shared by MPS,
    /// which the daemon starts.
    pub fn start(
        program: &Path,
        folder: &Path,
        domain: Domain,
        policy: Option<Kind>,
        real: bool,
    ) -> Result<Ebb, Absence> {
        // Nothing of how this user has set up ebb: a ceiling in a configuration would be measured, not ebb.
        let configuration = folder.join("ebb.toml");
        std::fs::write(&configuration, settings(domain, real))
            .map_err(|error| Absence(format!("{}: {error}", configuration.display())))?;
        let words = [program.as_os_str(), "daemon".as_ref(), "--config".as_ref(), configuration.as_os_str()];
        let policy = policy.iter().flat_map(|kind| ["--policy", kind.name()]).map(OsString::from);
        let words: Vec<OsString> = words.iter().map(OsString::from).chain(policy).collect();
        let environment = vec![(RUNTIME.into(), Some(folder.into()))];
        let mut daemon = Service::start("ebb's daemon", &words, &environment, &folder.join("daemon.log"))?;
        daemon.await_up(PATIENCE, || ask(program, folder).is_some())?;
        Ok(Ebb { program: program.to_owned(), runtime: folder.to_owned(), domain, _daemon: daemon })
    }
}

const RUNTIME: &str = "EBB_RUNTIME_DIR";

/// Every setting but the domain as it is without a file.
fn settings(domain: Domain, real: bool) -> String {
    let mps = real && domain == Domain::Shared;
    format!("schema_version = 1\ndomain = \"{domain}\"\nmps = {mps}\n")
}

impl Surroundings for Ebb {
    fn command(&self, class: Class, name: &str, words: Vec<OsString>) -> Vec<OsString> {
        let class = class.to_string();
        let front = ["run", "--class", &class, "--name", name, "--"].map(OsString::from);
        [self.program.clone().into()].into_iter().chain(front).chain(words).collect()
    }

    fn environment(&self, _class: Class) -> Environment {
        vec![(RUNTIME.into(), Some(self.runtime.clone().into()))]
    }

    fn promise(&self, name: &str, slo: Option<Nanos>) -> Result<(), Absence> {
        let slo = slo.map_or_else(|| "none".to_owned(), |slo| format!("{}ns", slo.0));
        let output = words(&self.program, &self.runtime, &["set", name, "--slo-p99", &slo]).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(Absence(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
            Err(error) => Err(Absence(error.to_string())),
        }
    }

    fn status(&self) -> Option<Value> {
        ask(&self.program, &self.runtime)
    }

    /// In the shared domain a tenant's fault is everybody's.
    fn is_fragile(&self) -> bool {
        self.domain == Domain::Shared
    }
}

/// What `ebb status` says; nothing while no daemon answers.
fn ask(program: &Path, runtime: &Path) -> Option<Value> {
    let output = words(program, runtime, &["status", "-o", "json"]).output().ok()?;
    if output.status.success() { serde_json::from_slice(&output.stdout).ok() } else { None }
}

/// A word with the daemon, which answers soon or never.
fn words(program: &Path, runtime: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.arg("5").arg(program).args(words).env(RUNTIME, runtime).stdin(Stdio::null());
    command
}
