//! What can go wrong in an experiment.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum Error {
    #[error("cannot open the driver {}: {reason}", .path.display())]
    Open { path: PathBuf, reason: String },
    #[error("the driver {} has no function {name}", .path.display())]
    Missing { path: PathBuf, name: &'static str },
    #[error("{call} answered {name} ({code}); with EBB_LOG=1 the software GPU says why")]
    Driver { call: &'static str, code: u32, name: String },
    #[error("cannot start a tenant: {0}")]
    Start(io::Error),
    #[error("the {tenant} tenant ended early: {reason}")]
    Tenant { tenant: &'static str, reason: String },
    #[error("a tenant reported `{0}`, which is not understood")]
    Protocol(String),
}
