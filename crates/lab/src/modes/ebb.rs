//! ebb's domains: a daemon of the campaign's own for each, and workers under `ebb run`.
//!
//! All policies of a domain have one daemon, which is told which is next, as a person would change it: so they share workers, and the
//! best-effort tenants of two daemons never meet on one GPU, where neither would wait for the other's turn and both stand still.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use model::{Class, Domain, Kind, Nanos};
use serde_json::Value;

use super::{Absence, Environment, Service, Surroundings};

/// MPS takes some of it.
const PATIENCE: Duration = Duration::from_secs(20);
/// A daemon looks at its files many times a second.
const PATIENCE_TO_READ: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

pub struct Ebb {
    program: PathBuf,
    runtime: PathBuf,
    domain: Domain,
    real: bool,
    policy: Cell<Option<Kind>>,
    _daemon: Service,
}

impl Ebb {
    /// `folder` is for the daemon and what it says, and on the software GPU for the cards. A `real` GPU is shared by MPS,
    /// which the daemon starts.
    pub fn start(program: &Path, folder: &Path, domain: Domain, real: bool) -> Result<Ebb, Absence> {
        // Nothing of how this user has set up ebb: a ceiling in a configuration would be measured, not ebb.
        write_down(folder, domain, real, None)?;
        let configuration = configuration(folder);
        let words = [program.as_os_str(), "daemon".as_ref(), "--config".as_ref(), configuration.as_os_str()];
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let environment = vec![(RUNTIME.into(), Some(folder.into()))];
        let mut daemon = Service::start("ebb's daemon", &words, &environment, &folder.join("daemon.log"))?;
        daemon.await_up(PATIENCE, || ask(program, folder).is_some())?;
        Ok(Ebb {
            program: program.to_owned(),
            runtime: folder.to_owned(),
            domain,
            real,
            policy: Cell::new(None),
            _daemon: daemon,
        })
    }

    /// Whether the daemon goes by a policy; by its own choice, if none is named.
    fn goes_by(&self, policy: Option<Kind>) -> bool {
        let wanted = policy.unwrap_or_default().name();
        let gpus = self.status().and_then(|status| status["gpus"].as_array().cloned()).unwrap_or_default();
        gpus.iter().all(|gpu| gpu["policy"]["kind"] == wanted)
    }
}

const RUNTIME: &str = "EBB_RUNTIME_DIR";

fn configuration(folder: &Path) -> PathBuf {
    folder.join("ebb.toml")
}

/// Every setting but the domain and the policy as it is without a file. A daemon that reads it finds all of it or what was there before.
fn write_down(folder: &Path, domain: Domain, real: bool, policy: Option<Kind>) -> Result<(), Absence> {
    let mps = real && domain == Domain::Shared;
    let kind = policy.map_or_else(String::new, |kind| format!("[policy]\nkind = \"{}\"\n", kind.name()));
    let text = format!("schema_version = 1\ndomain = \"{domain}\"\nmps = {mps}\n{kind}");
    let (new, place) = (folder.join("ebb.toml.new"), configuration(folder));
    std::fs::write(&new, text)
        .and_then(|()| std::fs::rename(&new, &place))
        .map_err(|error| Absence(format!("{}: {error}", place.display())))
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

    fn govern(&self, policy: Option<Kind>) -> Result<(), Absence> {
        if self.policy.get() == policy {
            return Ok(());
        }
        write_down(&self.runtime, self.domain, self.real, policy)?;
        let began = Instant::now();
        while !self.goes_by(policy) {
            if began.elapsed() > PATIENCE_TO_READ {
                return Err(Absence(format!("{} is not in force", policy.unwrap_or_default().name())));
            }
            std::thread::sleep(LOOK);
        }
        self.policy.set(policy);
        Ok(())
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
