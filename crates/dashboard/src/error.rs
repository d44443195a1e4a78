//! Why there is no dashboard as it was wanted.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum Error {
    #[error("{} cannot be read ({source})", .path.display())]
    Token { path: PathBuf, source: io::Error },
    #[error("the secret in {} is shorter than {least} characters", .path.display())]
    Short { path: PathBuf, least: usize },
}
