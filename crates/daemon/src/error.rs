//! Why the daemon does not run, and why it does not answer.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::configuration::Mistake;

#[derive(Debug, Error)]
pub enum Error {
    #[error(transparent)]
    Folder(#[from] installation::Error),
    #[error("{} cannot be made ({source}); see who owns the folder and whether it can be written to", .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the folder {} belongs to another user or may be changed by others; `chown` and `chmod 755` it", .path.display())]
    OpenFolder { path: PathBuf },
    #[error("{} is there and is no socket; move it away", .path.display())]
    NoSocket { path: PathBuf },
    #[error("the service manager has opened {} as another kind of socket than this version needs; use its own units", .path.display())]
    OtherSocket { path: PathBuf },
    #[error("the path {} is too long for a socket; name a shorter folder with EBB_RUNTIME_DIR", .path.display())]
    LongPath { path: PathBuf },
    #[error("a daemon runs already in {} and does not answer; end its process, which holds daemon.lock there", .folder.display())]
    Taken { folder: PathBuf },
    #[error("a daemon runs already in {} and {said}; `ebb daemon --replace` takes its place and its tenants, `ebb daemon stop` ends it", .folder.display())]
    Busy { folder: PathBuf, said: String },
    /// All mistakes on one line.
    #[error("{0}")]
    Configuration(String),
    #[error("the shared domain needs MPS, and it cannot be had: {0}")]
    Mps(#[from] mps::Error),
    #[error("the system refuses what a daemon needs ({0}); see the limits of this process")]
    System(#[from] io::Error),
    #[error("no daemon answers at {}; `ebb run` starts one, or start `ebb daemon` yourself", .socket.display())]
    NoDaemon { socket: PathBuf },
    #[error("{} may not be used by you; ask who owns it for access", .socket.display())]
    Forbidden { socket: PathBuf },
    #[error("the daemon at {} does not answer as it should ({reason}); it may be of another version", .socket.display())]
    Unclear { socket: PathBuf, reason: String },
    #[error(transparent)]
    Events(telemetry::Error),
    /// What the daemon says about a request that it does not grant.
    #[error("{0}")]
    Refused(String),
    #[error("the daemon was started and did not answer within {seconds} s{}; try `ebb daemon`", .said.as_ref().map(|said| format!(": {said}")).unwrap_or_default())]
    Silent { seconds: u64, said: Option<String> },
    #[error("the daemon does not start: {}", .said.as_deref().unwrap_or("it ended without a word; try `ebb daemon`"))]
    NotStarted { said: Option<String> },
}

impl Error {
    pub(crate) fn configuration(mistakes: Vec<Mistake>) -> Error {
        let all: Vec<_> = mistakes.iter().map(Mistake::to_string).collect();
        Error::Configuration(all.join("; "))
    }
}
