//! The daemon's files: two sockets, a lock and a log in one folder.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use installation::runtime;

use crate::{Error, Scope};

/// The folder of the machine's daemon.
const MACHINE: &str = "/run/ebb";

const LOCK: &str = "daemon.lock";

/// What a log may grow to before the next daemon begins it anew.
const LONGEST_LOG: u64 = 1 << 20;

/// Where a daemon lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    folder: PathBuf,
}

impl Place {
    pub fn at(folder: &Path) -> Place {
        Place { folder: folder.to_owned() }
    }

    /// Where the daemon of a scope lives; the folder is made if it is missing.
    pub fn prepare(scope: Scope) -> Result<Place, Error> {
        match scope {
            Scope::User => Ok(Place { folder: runtime::folder()? }),
            Scope::Machine => {
                let folder = machine();
                // Everybody must be able to walk through; the sockets have modes of their own.
                let made = DirBuilder::new().recursive(true).mode(0o755).create(&folder);
                let refused = |source| Error::File { path: folder.clone(), source };
                made.map_err(refused)?;
                let facts = fs::metadata(&folder).map_err(refused)?;
                let own = facts.uid() == rustix::process::geteuid().as_raw();
                if !own || facts.mode() & 0o022 != 0 {
                    return Err(Error::OpenFolder { path: folder });
                }
                Ok(Place { folder })
            }
        }
    }

    /// Where the machine's daemon lives, if there is one.
    pub fn machine() -> Place {
        Place { folder: machine() }
    }

    /// Where the user's own daemon lives.
    pub fn own() -> Result<Place, Error> {
        Ok(Place { folder: runtime::folder()? })
    }

    /// Where a daemon may be found, the machine's first. Who names a runtime folder wants the daemon in it and no other. One
    /// for whom there is no folder, because somebody else has taken its name, still has the machine's daemon.
    pub fn candidates() -> Result<Vec<Place>, Error> {
        if runtime::is_named() {
            return Ok(vec![Place::own()?]);
        }
        Ok([Place::machine()].into_iter().chain(Place::own().ok()).collect())
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the MPS of the shared domain is.
    pub fn mps(&self) -> PathBuf {
        self.folder.join("mps")
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join("ebb.sock")
    }

    pub fn admin_socket(&self) -> PathBuf {
        self.folder.join("admin.sock")
    }

    pub fn log(&self) -> PathBuf {
        self.folder.join("daemon.log")
    }

    /// The place of a daemon whose socket is known.
    pub fn of_socket(socket: &OsStr) -> Option<Place> {
        let socket = Path::new(socket);
        let folder = socket.parent().filter(|_| socket.is_absolute())?;
        Some(Place { folder: folder.to_owned() })
    }

    /// The log, to be appended to.
    pub fn open_log(&self) -> Result<File, Error> {
        let path = self.log();
        let refused = |source| Error::File { path: path.clone(), source };
        if fs::metadata(&path).is_ok_and(|facts| facts.len() > LONGEST_LOG) {
            fs::remove_file(&path).map_err(refused)?;
        }
        OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(refused)
    }

    /// Whether somebody holds the lock. Makes nothing.
    pub fn is_taken(&self) -> bool {
        let lock = File::open(self.folder.join(LOCK));
        lock.is_ok_and(|file| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
    }

    /// The lock that one daemon holds for its life; `None` while another does.
    pub fn lock(&self) -> Result<Option<File>, Error> {
        let path = self.folder.join(LOCK);
        let refused = |source| Error::File { path: path.clone(), source };
        let mut options = OpenOptions::new();
        let file =
            options.create(true).truncate(false).write(true).mode(0o600).open(&path).map_err(refused)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(source)) => Err(refused(source)),
        }
    }
}

fn machine() -> PathBuf {
    // For tests, which cannot have the machine's own folder.
    std::env::var_os("EBB_MACHINE_DIR")
        .filter(|value| !value.is_empty())
        .map_or(MACHINE.into(), PathBuf::from)
}

/// Which file a path leads to.
pub(crate) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let facts = fs::symlink_metadata(path)?;
    Ok((facts.dev(), facts.ino()))
}

/// Whether a path fits into a socket's address, with the zero that ends it.
pub(crate) fn fits(path: &Path) -> bool {
    path.as_os_str().as_bytes().len() < 108
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_daemon_has_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::at(folder.path());
        let lock = place.lock().unwrap();
        assert!(lock.is_some() && place.lock().unwrap().is_none());
        drop(lock);
        assert!(place.lock().unwrap().is_some());
    }

    #[test]
    fn a_long_log_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::at(folder.path());
        fs::write(place.log(), vec![b'x'; (LONGEST_LOG + 1) as usize]).unwrap();
        assert_eq!(place.open_log().unwrap().metadata().unwrap().len(), 0);
        assert_eq!(place.open_log().unwrap().metadata().unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_socket_tells_where_its_daemon_lives() {
        let place = Place::of_socket(OsStr::new("/run/ebb/ebb.sock")).unwrap();
        assert_eq!(place.admin_socket(), Path::new("/run/ebb/admin.sock"));
        assert_eq!(Place::of_socket(OsStr::new("ebb.sock")), None);
    }
}
