//! The control program, and services that are not ours.

use std::fmt;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use installation::Machine;
use installation::machine::Mps as Seen;

use crate::{Error, PIPES};

pub const CONTROL: &str = "nvidia-cuda-mps-control";

/// Where the program lies when it is not on the path, as in containers that are given the driver.
const PLACES: [&str; 4] = ["/usr/local/nvidia/bin", "/usr/bin", "/usr/local/bin", "/opt/nvidia/bin"];

/// How somebody else's service shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    Process(u32),
    Folder(PathBuf),
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Foreign::Process(pid) => write!(f, "process {pid}"),
            Foreign::Folder(folder) => write!(f, "it answers in {}", folder.display()),
        }
    }
}

/// The program that starts control daemons and speaks to them.
pub fn find() -> Result<PathBuf, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(PLACES.map(PathBuf::from));
    let found = places.map(|place| place.join(CONTROL)).find(|program| program.is_file());
    found.ok_or(Error::NoControl)
}

/// A service that runs on this machine, as far as it can be seen.
pub fn foreign() -> Option<Foreign> {
    judge(&Machine::here().mps(std::env::var_os(PIPES).as_deref()))
}

/// One that was killed leaves its socket behind, which refuses calls.
fn judge(seen: &Seen) -> Option<Foreign> {
    if let Some(pid) = seen.processes.first() {
        return Some(Foreign::Process(*pid));
    }
    seen.pipes.clone().filter(|folder| answers(&folder.join("control"))).map(Foreign::Folder)
}

fn answers(socket: &Path) -> bool {
    match UnixStream::connect(socket) {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_of_somebody_else_is_seen_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let seen = |processes, pipes| Seen { processes, pipes };
        assert_eq!(judge(&seen(vec![71], None)).unwrap().to_string(), "process 71");
        let listener = std::os::unix::net::UnixListener::bind(folder.path().join("control")).unwrap();
        let pipes = Some(folder.path().to_owned());
        assert_eq!(judge(&seen(vec![], pipes.clone())), Some(Foreign::Folder(folder.path().to_owned())));
        drop(listener);
        assert_eq!(judge(&seen(vec![], pipes)), None, "what the dead leave behind is no service");
        assert_eq!(judge(&seen(vec![], None)), None);
    }
}
