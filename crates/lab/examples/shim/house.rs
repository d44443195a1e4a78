//! A daemon for us alone, in a folder of its own, and what it says about a process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use model::{Class, Nanos};
use serde_json::Value;
use tempfile::TempDir;

use crate::Result;

const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// Dropped, it ends the daemon; its folder goes after it.
pub struct House {
    ebb: PathBuf,
    daemon: Child,
    folder: TempDir,
}

/// What the daemon says about a process that has a seat.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    pub class: Class,
    /// For how long it has held the token.
    pub held: Option<Nanos>,
    /// Bursts that have ended.
    pub bursts: u64,
}

impl House {
    pub fn open(ebb: &Path) -> Result<House> {
        let folder = tempfile::tempdir()?;
        let daemon = command(ebb, folder.path()).arg("daemon").stderr(Stdio::null()).spawn()?;
        let house = House { ebb: ebb.to_owned(), daemon, folder };
        wait_for("the daemon does not answer", || house.status().ok())?;
        Ok(house)
    }

    pub fn ebb(&self) -> Command {
        command(&self.ebb, self.folder.path())
    }

    fn status(&self) -> Result<Value> {
        let output = self.ebb().args(["status", "-o", "json"]).stderr(Stdio::null()).output()?;
        if !output.status.success() {
            return Err(format!("`ebb status` ended with {}", output.status).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// A process once it has its seat, and the token if it needs one.
    pub fn seated(&self, pid: u32, class: Class) -> Result<Sight> {
        wait_for("the process has no seat, or no token", || {
            let sight = self.sight(pid).ok().flatten()?;
            (sight.class == class && (class == Class::Latency || sight.held.is_some())).then_some(sight)
        })
    }

    pub fn sight(&self, pid: u32) -> Result<Option<Sight>> {
        let status = self.status()?;
        let gpus = status["gpus"].as_array().into_iter().flatten();
        Ok(gpus.filter_map(|gpu| sight(gpu, pid)).next())
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn sight(gpu: &Value, pid: u32) -> Option<Sight> {
    let process = gpu["processes"].as_array()?.iter().find(|process| process["pid"] == pid)?;
    let token = &gpu["token"];
    Some(Sight {
        class: process["class"].as_str()?.parse().ok()?,
        held: token["held_ns"].as_u64().filter(|_| token["pid"] == pid).map(Nanos),
        bursts: process["counters"]["bursts"].as_u64()?,
    })
}

/// `ebb` with this runtime folder and nothing else of ours in its environment.
fn command(ebb: &Path, folder: &Path) -> Command {
    let mut command = Command::new(ebb);
    for (name, _) in std::env::vars_os() {
        let ours = name.as_encoded_bytes().starts_with(b"EBB_");
        if ours || name == "LD_PRELOAD" {
            command.env_remove(name);
        }
    }
    command.env("EBB_RUNTIME_DIR", folder).env("XDG_CONFIG_HOME", folder);
    command
}

fn wait_for<T>(otherwise: &str, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if began.elapsed() > PATIENCE {
            return Err(otherwise.into());
        }
        sleep(LOOK);
    }
}
