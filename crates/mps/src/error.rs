//! Why there is no service.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::control::{CONTROL, Foreign};

#[derive(Debug, Error)]
pub enum Error {
    #[error(
        "there is no {CONTROL} on this machine; it comes with NVIDIA's driver (package nvidia-compute-utils on Debian and \
         Ubuntu, nvidia-driver-cuda on Fedora and RHEL), and a container needs the driver capability `compute,utility`"
    )]
    NoControl,
    #[error("MPS is already running, started by someone else ({0})")]
    Foreign(Foreign),
    #[error("{} is too long a name for sockets; EBB_RUNTIME_DIR names another", .0.display())]
    LongFolder(PathBuf),
    #[error("{} cannot be made: {source}", .path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("there is no shell to end MPS with: {0}")]
    NoShell(io::Error),
    #[error("{CONTROL} does not answer: {reason}{}", .said.as_ref().map(|said| format!("; it said: {said}")).unwrap_or_default())]
    Silent { reason: String, said: Option<String> },
}
