//! The run folder: where the processes of one command leave their ledgers.
//!
//! It is private to its user, lies in the runtime folder, and goes when the command has ended. The folder of a run
//! that was killed goes with the next run: its name carries the process and the time that process began, and the
//! lock inside is free once its owner is dead, also when that owner lives in another container of this machine.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use installation::runtime;
use telemetry::{Reading, UnwrittenLedger};

use super::process;

const PREFIX: &str = "run-";
const LOCK: &str = "lock";
/// Runs inside runs put their folders into each other. Nobody nests them deeper than this by intention.
const DEPTH: u32 = 8;

fn unusable(folder: &Path) -> String {
    format!("the folder {} cannot be used, name another with EBB_RUNTIME_DIR", folder.display())
}

/// The folder of one run, removed with everything in it when this value goes.
pub struct RunFolder {
    path: PathBuf,
    /// Held while the run lives.
    _lock: File,
    /// Lies in the folder of a run around this one, whose report wants to read it too.
    nested: bool,
}

impl RunFolder {
    pub fn create() -> Result<RunFolder> {
        let outer = std::env::var_os("EBB_RUN").map(PathBuf::from).filter(|folder| folder.is_absolute());
        if let Some(folder) = outer.and_then(|outer| RunFolder::create_in(&outer, true).ok()) {
            return Ok(folder);
        }
        let runtime = runtime::folder()?;
        remove_dead(&runtime);
        RunFolder::create_in(&runtime, false)
    }

    fn create_in(parent: &Path, nested: bool) -> Result<RunFolder> {
        let pid = std::process::id();
        let began = process::began(pid).unwrap_or_default();
        let path = parent.join(format!("{PREFIX}{pid}-{began}"));
        let unusable = || unusable(&path);
        // What lies there under our name was left by a process that is no more.
        if let Err(error) = fs::remove_dir_all(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error).with_context(unusable);
        }
        DirBuilder::new().mode(0o700).create(&path).with_context(unusable)?;
        let lock = File::create(path.join(LOCK)).and_then(|file| file.lock().map(|()| file));
        let lock = lock.with_context(unusable)?;
        // Where there is no room for this there will be none for ledgers either.
        UnwrittenLedger::prepare(&path).with_context(unusable).inspect_err(|_| {
            let _ = fs::remove_dir_all(&path);
        })?;
        Ok(RunFolder { path, _lock: lock, nested })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the ledgers say, oldest first, and a sentence for each that cannot be read.
    pub fn readings(&self) -> (Vec<Reading>, Vec<String>) {
        let (mut readings, mut remarks) = (Vec::new(), Vec::new());
        each_ledger(&self.path, &mut |path| match Reading::open(path) {
            Ok(reading) => readings.push(reading),
            Err(error) => remarks.push(error.to_string()),
        });
        readings.sort_by_key(|reading| (reading.started, reading.pid));
        (readings, remarks)
    }

    /// The processes that used CUDA and could not leave a ledger.
    pub fn unwritten(&self) -> Vec<UnwrittenLedger> {
        let mut all = Vec::new();
        each_folder(&self.path, DEPTH, &mut |folder| all.extend(UnwrittenLedger::read_all(folder)));
        all
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if !self.nested {
            // What cannot be removed now does no harm, and the next run tries again.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Shows every ledger in a folder and in the folders in it.
pub fn each_ledger(folder: &Path, each: &mut dyn FnMut(&Path)) {
    each_folder(folder, DEPTH, &mut |folder| {
        let files = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        files.filter(|path| Reading::is_called_so(path)).for_each(|path| each(&path));
    });
}

fn each_folder(folder: &Path, depth: u32, each: &mut dyn FnMut(&Path)) {
    each(folder);
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            each_folder(&entry.path(), depth - 1, each);
        }
    }
}

/// Removes the folders of runs that were killed.
fn remove_dead(runtime: &Path) {
    for entry in runtime.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| {
            let (pid, began) = name.strip_prefix(PREFIX)?.split_once('-')?;
            Some((pid.parse::<u32>().ok()?, began.parse::<u64>().ok()?))
        });
        let dead = |(pid, began)| process::began(pid) != Some(began) && lock_is_free(&entry.path());
        if owner.is_some_and(dead) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether the owner of a run folder let go of its lock, which only death makes it do.
fn lock_is_free(folder: &Path) -> bool {
    File::open(folder.join(LOCK)).map_or(true, |file| file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_the_dead_are_removed() {
        let runtime = tempfile::tempdir().unwrap();
        let alive = RunFolder::create_in(runtime.path(), false).unwrap();
        let dead = runtime.path().join(format!("{PREFIX}{}-1", std::process::id()));
        let elsewhere = runtime.path().join(format!("{PREFIX}4194305-7"));
        let other = runtime.path().join("softgpu-default");
        for folder in [&dead, &elsewhere, &other] {
            fs::create_dir(folder).unwrap();
        }
        let lock = File::create(elsewhere.join(LOCK)).unwrap();
        lock.lock().unwrap();
        remove_dead(runtime.path());
        assert!(alive.path().exists() && other.exists() && elsewhere.exists() && !dead.exists());
        drop(lock);
        remove_dead(runtime.path());
        assert!(!elsewhere.exists());
    }
}
