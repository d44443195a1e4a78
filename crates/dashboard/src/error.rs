//! Why there is no dashboard as it was wanted.

use std::path::PathBuf;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum Error {
    #[error(transparent)]
    Token(#[from] installation::Error),
    #[error("the secret in {} is no text", .path.display())]
    NoText { path: PathBuf },
    #[error("the secret in {} is shorter than {least} characters", .path.display())]
    Short { path: PathBuf, least: usize },
}
