//! The event logs that there are.
//!
//! Those of this user lie in the runtime folder, beside the ledgers. Whoever may look at other users' processes also sees
//! the logs of all who have a seat at the machine's daemon, by what those processes have mapped.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use daemon::traces::{Follower, is_log};
use daemon::{Place, client};
use installation::runtime;

/// Runs inside runs put their folders into each other. Nobody nests them deeper than this by intention.
const DEPTH: u32 = 8;

/// Finds logs, each once.
#[derive(Default)]
pub struct Logs {
    paths: BTreeSet<PathBuf>,
    processes: BTreeSet<u32>,
}

impl Logs {
    /// Those that have come since the last time.
    pub fn new_ones(&mut self) -> Result<Vec<Follower>> {
        let mut found = Vec::new();
        let folder = runtime::folder()?;
        look_through(&folder, DEPTH, &mut |path| {
            if self.paths.contains(path) {
                return;
            }
            // One that is being made is found the next time.
            if let Ok(follower) = Follower::open(path, None) {
                self.paths.insert(path.to_owned());
                self.processes.insert(follower.pid());
                found.push(follower);
            }
        });
        Ok(found)
    }

    /// Those of processes that a daemon knows and that were not found otherwise.
    pub fn seated(&mut self) -> Vec<Follower> {
        let places = Place::candidates().unwrap_or_default();
        let reports = places.iter().filter_map(|place| client::report(place).ok());
        let seats = reports.flat_map(|report| report.gpus).flat_map(|gpu| gpu.processes);
        let mut found = Vec::new();
        for process in seats.filter(|process| !self.processes.contains(&process.pid)) {
            found.extend(Follower::of_process(process.pid, process.user));
        }
        self.processes.extend(found.iter().map(Follower::pid));
        found
    }
}

fn look_through(folder: &Path, depth: u32, each: &mut dyn FnMut(&Path)) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        if is_log(&path) {
            each(&path);
        } else if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            look_through(&path, depth - 1, each);
        }
    }
}
