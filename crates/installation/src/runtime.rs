//! The runtime folder: where the processes of one user find each other.
//!
//! `EBB_RUNTIME_DIR` if set, else the first that can be used of `$XDG_RUNTIME_DIR/ebb`, `/dev/shm/ebb-UID`, `/tmp/ebb-UID`,
//! `/run/user/UID/ebb` and `$XDG_STATE_HOME/ebb/run` (`~/.local/state/ebb/run`). Memory before disks: a process that counts into
//! a file on a disk may have to wait for the disk. Everything in the folder is trusted by the processes that map it, so a folder that somebody
//! else could write to is refused, and so is a symbolic link, wherever it leads: in `/dev/shm` and `/tmp` anybody can have put it
//! there under our name. The last two are in folders where nobody else can.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::Error;

/// The variable that names the folder.
pub const VARIABLE: &str = "EBB_RUNTIME_DIR";

/// A runtime folder, and what is odd about those that would have come before it.
#[derive(Debug)]
pub struct ChosenFolder {
    pub path: PathBuf,
    /// Folders under our name that are somebody else's, or lead elsewhere. That they are there is worth a word.
    pub passed_over: Vec<Error>,
}

/// The folder of this user, made if it is missing.
pub fn folder() -> Result<PathBuf, Error> {
    choose().map(|chosen| chosen.path)
}

/// The same, with what was passed over.
pub fn choose() -> Result<ChosenFolder, Error> {
    first_usable(&wanted(|name| std::env::var_os(name)), rustix::process::geteuid().as_raw())
}

/// Whether somebody named the folder, and so wants to be among themselves.
pub fn is_named() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty())
}

fn wanted(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set(VARIABLE) {
        // A process that is told of it may stand in another folder.
        return vec![std::path::absolute(&folder).unwrap_or(folder)];
    }
    let uid = rustix::process::geteuid().as_raw();
    let own = ["/dev/shm", "/tmp"].map(|base| Path::new(base).join(format!("ebb-{uid}")));
    let named = set("XDG_RUNTIME_DIR").map(|base| base.join("ebb"));
    // What a login makes, also where nobody has said so to this process. It is not ours to make.
    let login = Some(PathBuf::from(format!("/run/user/{uid}"))).filter(|base| is_own(base, uid));
    let home = || set("HOME").map(|home| home.join(".local/state"));
    let state = set("XDG_STATE_HOME").or_else(home).filter(|base| base.is_absolute());
    let last = [login.map(|base| base.join("ebb")), state.map(|base| base.join("ebb/run"))];
    named.into_iter().chain(own).chain(last.into_iter().flatten()).collect()
}

fn is_own(folder: &Path, me: u32) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|facts| facts.is_dir() && facts.uid() == me)
}

/// The first folder that is ours; if there is none, what is wrong with the first, which is the one a user expects.
fn first_usable(folders: &[PathBuf], me: u32) -> Result<ChosenFolder, Error> {
    let mut refusals = Vec::new();
    for folder in folders {
        match prepare(folder, me) {
            Ok(()) => {
                let odd = |error: &Error| !matches!(error, Error::UnusableFolder { .. });
                let passed_over = refusals.into_iter().filter(odd).collect();
                return Ok(ChosenFolder { path: folder.clone(), passed_over });
            }
            Err(refused) => refusals.push(refused),
        }
    }
    Err(refusals.into_iter().next().expect("there is always a last resort among the folders"))
}

fn prepare(folder: &Path, me: u32) -> Result<(), Error> {
    let unusable = |source| Error::UnusableFolder { path: folder.to_owned(), source };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let facts = match fs::symlink_metadata(folder) {
        Ok(facts) => facts,
        Err(source) => return Err(unusable(made.err().unwrap_or(source))),
    };
    if facts.is_symlink() {
        return Err(Error::LinkFolder { path: folder.to_owned() });
    }
    made.map_err(unusable)?;
    if facts.uid() != me {
        return Err(Error::ForeignFolder { path: folder.to_owned() });
    }
    if facts.mode() & 0o022 != 0 {
        return Err(Error::OpenFolder { path: folder.to_owned() });
    }
    attempt(folder).map_err(unusable)
}

/// Permissions do not tell of a file system that is read-only or full; an attempt does.
fn attempt(folder: &Path) -> io::Result<()> {
    // A file without a name goes with this process, however it goes.
    let nameless = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::open(folder, nameless, Mode::RUSR | Mode::WUSR) {
        Ok(_) => return Ok(()),
        // Not every file system has such files. Kernels that know nothing of them see a folder to be written to.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    // The folder may be looked for by many threads at once, so each attempt has a name of its own.
    let thread = rustix::thread::gettid().as_raw_nonzero();
    let attempt = folder.join(format!("attempt-{}-{thread}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&attempt)?;
    fs::remove_dir(&attempt)
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
        let chosen = first_usable(&[file.join("ebb"), good.clone()], own_uid()).unwrap();
        assert!(chosen.path == good && chosen.passed_over.is_empty(), "{chosen:?}");
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
    fn links_are_never_followed_and_what_is_odd_is_named() {
        let base = tempfile::tempdir().unwrap();
        let path = |name: &str| base.path().join(name);
        fs::create_dir(path("own")).unwrap();
        fs::set_permissions(path("own"), fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(path("own"), path("link")).unwrap();
        std::os::unix::fs::symlink(path("nowhere"), path("dangling")).unwrap();
        fs::create_dir(path("open")).unwrap();
        fs::set_permissions(path("open"), fs::Permissions::from_mode(0o777)).unwrap();
        let folders = ["link", "dangling", "open", "good"].map(path);
        let chosen = first_usable(&folders, own_uid()).unwrap();
        assert_eq!(chosen.path, path("good"));
        let said: Vec<_> = chosen.passed_over.iter().map(Error::to_string).collect();
        assert!(
            said.len() == 3 && said[0].contains("is a symbolic link") && said[1].contains("dangling"),
            "{said:?}"
        );
        assert!(!path("nowhere").exists(), "nothing is made where a link leads");
        assert!(prepare(&path("link"), own_uid()).is_err());
    }

    #[test]
    fn where_both_usual_folders_are_taken_there_is_one_that_nobody_else_can_make() {
        let home = tempfile::tempdir().unwrap();
        let only_home = |name: &str| (name == "HOME").then(|| home.path().as_os_str().to_owned());
        let folders = wanted(only_home);
        assert_eq!(folders.last(), Some(&home.path().join(".local/state/ebb/run")));
        assert!(folders[0].starts_with("/dev/shm") && folders[1].starts_with("/tmp"));
        let state = |name: &str| (name == "XDG_STATE_HOME").then(|| OsString::from("/state"));
        assert_eq!(wanted(state).last(), Some(&PathBuf::from("/state/ebb/run")));
    }

    #[test]
    fn a_setting_is_the_only_folder_and_an_empty_one_is_none() {
        let only = |name: &str| (name == VARIABLE).then(|| OsString::from("/here"));
        assert_eq!(wanted(only), [PathBuf::from("/here")]);
        let empty = |name: &str| Some(OsString::from(if name == "XDG_RUNTIME_DIR" { "/run/me" } else { "" }));
        let folders = wanted(empty);
        assert_eq!(folders[0], PathBuf::from("/run/me/ebb"));
        assert!(folders[1].starts_with("/dev/shm"), "memory comes before disks");
    }

    #[test]
    fn looking_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path(), own_uid()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
