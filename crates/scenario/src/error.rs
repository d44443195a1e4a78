//! What can be wrong with scenarios and suites.

use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// One mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub file: String,
    pub line: usize,
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mistake { file, line, message } = self;
        write!(f, "{file}:{line}: {message}")
    }
}

#[derive(Debug, Error)]
pub enum Error {
    /// All that is wrong, so that nobody mends a file mistake by mistake.
    #[error("{}", listed(.0))]
    Wrong(Vec<Mistake>),
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("there is no suite called `{name}`; known are {known}, or give the path of a folder or a file")]
    UnknownSuite { name: String, known: String },
    #[error("{} has no scenario files (*.toml)", .path.display())]
    Empty { path: PathBuf },
    #[error("the profile {origin}: {reason}")]
    Profile { origin: String, reason: String },
    #[error(
        "there is no profile of {workload}; on a machine with a GPU and PyTorch `ebb lab record {workload} --out DIR` \
         makes one"
    )]
    NoProfile { workload: String },
}

fn listed(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n")
}
