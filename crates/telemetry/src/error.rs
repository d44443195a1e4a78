//! What can go wrong with a ledger.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be made, given its room, or mapped. No heap here: this one is met inside host programs.
    #[error("a ledger or an event log cannot be made: {0}")]
    Make(rustix::io::Errno),
    #[error("the name of a ledger does not fit")]
    NameTooLong,
    #[error("cannot read {path}: {reason}")]
    Read { path: PathBuf, reason: std::io::Error },
    #[error("{path} is not {what}: {reason}")]
    Not { path: PathBuf, what: &'static str, reason: &'static str },
}
