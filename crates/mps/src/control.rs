//! The control program, and services that are not ours.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

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

/// The same, but for one in this folder: it is ours, or was left for us.
pub fn foreign_to(folder: &Path) -> Option<Foreign> {
    let own = [PIPES.as_bytes(), b"=", folder.join("pipe").as_os_str().as_bytes()].concat();
    let mut seen = Machine::here().mps(std::env::var_os(PIPES).as_deref());
    seen.processes.retain(|pid| !is_told(*pid, &own));
    judge(&seen)
}

/// Whether a process has this in its environment.
fn is_told(pid: u32, variable: &[u8]) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|told| told == variable)
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

    #[test]
    fn a_process_is_known_by_its_environment() {
        let child = std::process::Command::new("sleep").arg("60").env(PIPES, "/some/folder/pipe").spawn();
        let mut child = child.unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        // One that has only just begun has no environment yet.
        while !is_told(child.id(), b"CUDA_MPS_PIPE_DIRECTORY=/some/folder/pipe") {
            assert!(std::time::Instant::now() < deadline, "it is in its environment");
            std::thread::yield_now();
        }
        assert!(!is_told(child.id(), b"CUDA_MPS_PIPE_DIRECTORY=/some/folder"));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
