//! The ledgers that there are.
//!
//! Those of a run with a report lie in its folder. Tenants of a shared GPU have theirs in one folder for all, where they
//! stay when the process has ended: the last of them can still be looked at, older ones go.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use daemon::report::Report;
use installation::runtime;
use telemetry::Reading;

use crate::run::{folder, process};

/// The variable by which tenants are told where to leave their ledgers.
pub const VARIABLE: &str = "EBB_LEDGERS";

const FOLDER: &str = "ledgers";
/// So many ledgers of processes that have ended are kept. A ledger is about half a megabyte, and so are the events beside it.
const ENDED: usize = 16;

/// A process and what its ledger says.
pub struct Found {
    pub reading: Reading,
    pub is_alive: bool,
    /// What the daemon says of it, if one seats it.
    pub seat: Option<Seat>,
}

/// How a process shares its GPU, and so what verdicts on its kernels mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    pub domain: String,
    pub rung: String,
    pub reason: String,
}

/// Adds what a daemon's report says of each process that lives.
pub fn seat(found: &mut [Found], report: &Report) {
    for found in found.iter_mut().filter(|found| found.is_alive) {
        let pid = found.reading.pid;
        found.seat = report.gpus.iter().find_map(|gpu| {
            let process = gpu.processes.iter().find(|process| process.pid == pid)?;
            let (rung, reason) = (process.rung.clone(), process.reason.clone());
            Some(Seat { domain: gpu.domain.clone(), rung, reason })
        });
    }
}

/// The folder for ledgers of tenants, made if it is missing. Old ledgers go.
pub fn folder() -> Result<PathBuf> {
    let folder = runtime::folder()?.join(FOLDER);
    fs::create_dir_all(&folder)?;
    sweep(&folder, ENDED);
    Ok(folder)
}

/// All ledgers of this user, newest first.
pub fn all() -> Result<Vec<Found>> {
    let mut found = Vec::new();
    folder::each_ledger(&runtime::folder()?, &mut |path| {
        // What cannot be read is being made, or of another version.
        if let Ok(reading) = Reading::open(path) {
            found.push(Found { is_alive: is_alive(path), reading, seat: None });
        }
    });
    found.sort_by_key(|found| Reverse(found.reading.started));
    Ok(found)
}

/// Whether the process of a ledger lives: one of its number that had begun when the ledger was.
pub fn is_alive(ledger: &Path) -> bool {
    let name = ledger.file_stem().and_then(|name| name.to_str());
    let number = name.and_then(|name| name.split_once('-')).and_then(|(pid, _)| pid.parse::<u32>().ok());
    let made = fs::metadata(ledger).and_then(|facts| facts.created().or_else(|_| facts.modified()));
    let (Some(pid), Ok(made)) = (number, made) else { return false };
    process::age(pid).is_some_and(|age| made.elapsed().unwrap_or_default() <= age)
}

/// Removes the ledgers of processes that have ended, but for the newest.
fn sweep(folder: &Path, keep: usize) {
    let mut ended = Vec::new();
    folder::each_ledger(folder, &mut |path| {
        if !is_alive(path) {
            let changed = fs::metadata(path).and_then(|facts| facts.modified()).ok();
            ended.push((Reverse(changed), path.to_owned()));
        }
    });
    ended.sort();
    for (_, path) in ended.into_iter().skip(keep) {
        let _ = fs::remove_file(path.with_extension("events"));
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn ledgers_of_the_living_and_the_last_of_the_dead_stay() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, age: u64| {
            let path = folder.path().join(name);
            fs::write(&path, "").unwrap();
            let when = SystemTime::now() - Duration::from_secs(age);
            fs::File::options().write(true).open(&path).unwrap().set_modified(when).unwrap();
            path
        };
        let own = file(&format!("{}-1.ledger", std::process::id()), 0);
        let dead = [100, 300, 200].map(|age| file(&format!("4194399-{age}.ledger"), age));
        let events = dead[1].with_extension("events");
        fs::write(&events, "").unwrap();
        sweep(folder.path(), 1);
        assert!(!events.exists(), "what lies beside a ledger goes with it");
        assert!(own.exists() && dead[0].exists() && !dead[1].exists() && !dead[2].exists());
    }
}
