//! ebb's isolated domain: a daemon of the campaign's own, and workers under `ebb run`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use model::Class;
use serde_json::Value;

use super::{Absence, Environment, Service, Surroundings};

const PATIENCE: Duration = Duration::from_secs(10);

pub struct Ebb {
    program: PathBuf,
    runtime: PathBuf,
    _daemon: Service,
}

impl Ebb {
    /// `folder` is for what the daemon says.
    pub fn start(program: &Path, runtime: &Path, folder: &Path) -> Result<Ebb, Absence> {
        // Nothing of how this user has set up ebb: a ceiling in a configuration would be measured, not ebb.
        let configuration = folder.join("ebb.toml");
        std::fs::write(&configuration, CONFIGURATION)
            .map_err(|error| Absence(format!("{}: {error}", configuration.display())))?;
        let words = [program.as_os_str(), "daemon".as_ref(), "--config".as_ref(), configuration.as_os_str()];
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let environment = vec![(RUNTIME.into(), Some(runtime.into()))];
        let mut daemon = Service::start("ebb's daemon", &words, &environment, &folder.join("daemon.log"))?;
        daemon.await_up(PATIENCE, || ask(program, runtime).is_some())?;
        Ok(Ebb { program: program.to_owned(), runtime: runtime.to_owned(), _daemon: daemon })
    }
}

const RUNTIME: &str = "EBB_RUNTIME_DIR";
/// Every setting as it is without a file.
const CONFIGURATION: &str = "schema_version = 1\n";

impl Surroundings for Ebb {
    fn command(&self, class: Class, name: &str, words: Vec<OsString>) -> Vec<OsString> {
        let class = class.to_string();
        let front = ["run", "--class", &class, "--name", name, "--"].map(OsString::from);
        [self.program.clone().into()].into_iter().chain(front).chain(words).collect()
    }

    fn environment(&self, _class: Class) -> Environment {
        vec![(RUNTIME.into(), Some(self.runtime.clone().into()))]
    }

    fn status(&self) -> Option<Value> {
        ask(&self.program, &self.runtime)
    }
}

/// What `ebb status` says; nothing while no daemon answers.
fn ask(program: &Path, runtime: &Path) -> Option<Value> {
    let mut command = Command::new("timeout");
    command
        .arg("5")
        .arg(program)
        .args(["status", "-o", "json"])
        .env(RUNTIME, runtime)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = command.output().ok()?;
    if output.status.success() { serde_json::from_slice(&output.stdout).ok() } else { None }
}
