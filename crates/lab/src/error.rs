//! What can go wrong in an experiment.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::modes::Absence;

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
    /// One worker could not be started, failed or fell silent; a campaign goes on without it.
    #[error("{name}: {reason}")]
    Worker { name: String, reason: String },
    #[error("ended before its time, as it was told")]
    Stopped,
    #[error("the time was up")]
    TimeUp,
    /// One run came to nothing.
    #[error("{reason}")]
    Run { tenant: Option<String>, reason: String },
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} holds results of {before}, which do not mix with those of {now}; name another folder", .path.display())]
    OtherDevice { path: PathBuf, before: String, now: String },
    #[error(
        "an SLO of so many times its p99 alone cannot be told for {tenant} of {scenario}, which was never run alone for so \
         long; run the mode `alone` too, or first with the same --out"
    )]
    NeverAlone { scenario: String, tenant: String },
    #[error(transparent)]
    Absent(Absence),
    #[error(transparent)]
    Results(#[from] results::Error),
    #[error(transparent)]
    Scenario(#[from] scenario::Error),
    /// A player cannot do what its specification or an order says.
    #[error("{0}")]
    Player(String),
}
