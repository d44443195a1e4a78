//! The run folder: where the processes of one command leave their ledgers.
//!
//! It is private to its user, lies in the runtime folder, and goes when the command has ended. The folder of a run
//! that was killed goes with the next run: its name carries the process and the time that process began, and the
//! lock inside is free once its owner is dead, also when that owner lives in another container of this machine.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use telemetry::Reading;

use super::process;

const PREFIX: &str = "run-";
const LOCK: &str = "lock";
/// Runs inside runs put their folders into each other. Nobody nests them deeper than this by intention.
const DEPTH: u32 = 8;

/// The runtime folder of this user, made if missing: `EBB_RUNTIME_DIR` if set, else the first that can be used of
/// `$XDG_RUNTIME_DIR/ebb`, `/dev/shm/ebb-UID` and `/tmp/ebb-UID`. Memory before disks: a process that counts into a
/// file on a disk may have to wait for the disk.
pub fn runtime_folder() -> Result<PathBuf> {
    first_usable(&wanted(|name| std::env::var_os(name)), rustix::process::geteuid().as_raw())
}

fn wanted(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("EBB_RUNTIME_DIR") {
        return vec![folder];
    }
    let uid = rustix::process::geteuid().as_raw();
    let own = ["/dev/shm", "/tmp"].map(|base| Path::new(base).join(format!("ebb-{uid}")));
    set("XDG_RUNTIME_DIR").map(|base| base.join("ebb")).into_iter().chain(own).collect()
}

/// The first folder that is ours; if there is none, what is wrong with the first, which is the one a user expects.
fn first_usable(folders: &[PathBuf], me: u32) -> Result<PathBuf> {
    let mut first = None;
    for folder in folders {
        match prepare(folder, me) {
            Ok(()) => return Ok(folder.clone()),
            Err(refused) => first = first.or(Some(refused)),
        }
    }
    Err(first.expect("there is always a last resort among the folders"))
}

fn prepare(folder: &Path, me: u32) -> Result<()> {
    let name = folder.display();
    let unusable = || unusable(folder);
    DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(unusable)?;
    let facts = fs::metadata(folder).with_context(unusable)?;
    if facts.uid() != me {
        bail!("the folder {name} belongs to another user; name another with EBB_RUNTIME_DIR");
    }
    if facts.mode() & 0o022 != 0 {
        bail!(
            "the folder {name} may be changed by others; `chmod 700` it or name another with EBB_RUNTIME_DIR"
        );
    }
    // Permissions do not tell of a file system that is read-only or full; an attempt does.
    let attempt = folder.join(format!("{PREFIX}attempt-{}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&attempt).with_context(unusable)?;
    fs::remove_dir(&attempt).with_context(unusable)
}

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
        let runtime = runtime_folder()?;
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
        Ok(RunFolder { path, _lock: lock, nested })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the ledgers say, oldest first, and a sentence for each that cannot be read.
    pub fn readings(&self) -> (Vec<Reading>, Vec<String>) {
        let (mut readings, mut remarks) = (Vec::new(), Vec::new());
        read_ledgers(&self.path, DEPTH, &mut |result| match result {
            Ok(reading) => readings.push(reading),
            Err(error) => remarks.push(error.to_string()),
        });
        readings.sort_by_key(|reading| (reading.started, reading.pid));
        (readings, remarks)
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

fn read_ledgers(folder: &Path, depth: u32, each: &mut dyn FnMut(Result<Reading, telemetry::Error>)) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "ledger") {
            each(Reading::open(&path));
        } else if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            read_ledgers(&path, depth - 1, each);
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
    use std::os::unix::fs::PermissionsExt as _;

    fn own_uid() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn the_next_folder_is_taken_where_the_first_cannot_be_used() {
        let base = tempfile::tempdir().unwrap();
        let (file, good) = (base.path().join("file"), base.path().join("good"));
        fs::write(&file, "").unwrap();
        assert_eq!(first_usable(&[file.join("ebb"), good.clone()], own_uid()).unwrap(), good);
        assert_eq!(fs::metadata(&good).unwrap().mode() & 0o777, 0o700);
        let message = first_usable(&[file.join("ebb")], own_uid()).unwrap_err().to_string();
        assert!(message.contains("EBB_RUNTIME_DIR"), "{message}");
    }

    #[test]
    fn folders_of_others_and_folders_open_to_others_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let foreign = prepare(&path, own_uid() + 1).unwrap_err().to_string();
        assert!(foreign.contains("another user"), "{foreign}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let open = prepare(&path, own_uid()).unwrap_err().to_string();
        assert!(open.contains("chmod 700"), "{open}");
    }

    #[test]
    fn a_setting_is_the_only_folder_and_an_empty_one_is_none() {
        let only = |name: &str| (name == "EBB_RUNTIME_DIR").then(|| OsString::from("/here"));
        assert_eq!(wanted(only), [PathBuf::from("/here")]);
        let empty = |name: &str| Some(OsString::from(if name == "XDG_RUNTIME_DIR" { "/run/me" } else { "" }));
        let folders = wanted(empty);
        assert_eq!(folders[0], PathBuf::from("/run/me/ebb"));
        assert!(folders[1].starts_with("/dev/shm"), "memory comes before disks");
    }

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
