use std::io;
use std::path::PathBuf;

/// Why a result file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {doing} {path}: {reason}")]
    File { doing: &'static str, path: PathBuf, reason: io::Error },
    #[error("{0} holds neither results.jsonl nor results.jsonl.gz")]
    NoResults(PathBuf),
    #[error("somebody else is writing {0}")]
    Busy(PathBuf),
    #[error("{path}, line {line}: {reason}")]
    Line { path: PathBuf, line: usize, reason: String },
    #[error("{path}, line {line}: schema {found}, but this version of ebb reads schema {expected}")]
    Schema { path: PathBuf, line: usize, found: u64, expected: u32 },
    #[error(
        "{path}, line {line}: measured on {found}, but what was read before on {before}: make a report for each"
    )]
    Device { path: PathBuf, line: usize, found: String, before: String },
    #[error("cannot put the record into words: {0}")]
    Record(serde_json::Error),
    #[error("a factor from 1 to 100 is wanted, such as 1.2")]
    Factor,
}
