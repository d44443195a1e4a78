//! A command's name becomes a file, as `execvp` does it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::Error;

/// What `execvp` of glibc uses where there is no `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The file which would be executed.
pub(super) fn find(command: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Error> {
    if command.as_bytes().contains(&b'/') {
        let file = PathBuf::from(command);
        return executable(&file).map(|()| file);
    }
    let missing = Error::NoCommand { command: command.to_string_lossy().into_owned() };
    if command.is_empty() {
        return Err(missing);
    }
    // A file that may not be executed is passed over, and named only if no other is found.
    let mut refused = None;
    for folder in path.unwrap_or(OsStr::new(DEFAULT_PATH)).as_bytes().split(|&byte| byte == b':') {
        // An empty entry means the current folder, and joined to a name it does.
        let file = Path::new(OsStr::from_bytes(folder)).join(command);
        match executable(&file) {
            Ok(()) => return Ok(file),
            Err(error @ Error::NotExecutable { .. }) => refused = refused.or(Some(error)),
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or(missing))
}

pub(super) fn executable(file: &Path) -> Result<(), Error> {
    let path = || file.to_owned();
    let Ok(metadata) = file.metadata() else { return Err(Error::NoFile { path: path() }) };
    if metadata.is_dir() {
        return Err(Error::Folder { path: path() });
    }
    rustix::fs::access(file, Access::EXEC_OK).map_err(|_| Error::NotExecutable { path: path() })
}
