//! Why nothing is served.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum Error {
    #[error("{address} cannot be listened on ({source}); name another with `listen` under [metrics]")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Secret(#[from] installation::Error),
    #[error("{}:{line}: {reason}", .path.display())]
    Passwords { path: PathBuf, line: usize, reason: &'static str },
    #[error("{}: {reason}", .path.display())]
    Tls { path: PathBuf, reason: String },
    #[error("the system refuses a thread for the web server ({0})")]
    System(#[from] io::Error),
}
