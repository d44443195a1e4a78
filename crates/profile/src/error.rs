//! What can go wrong when something is kept.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("the folder {} cannot be used ({source}); `chmod 700` it, or name another with {variable}", .path.display())]
    Folder { path: PathBuf, variable: &'static str, source: io::Error },
    #[error("{} belongs to another user, and is not believed", .path.display())]
    Foreign { path: PathBuf },
    /// Nothing was written; the same batch may be handed over later.
    #[error("somebody else is writing in {}", .path.display())]
    Busy { path: PathBuf },
    #[error("the batch has no room for more; hand it over and begin another")]
    Full,
    #[error("a kernel whose name is empty, longer than {longest} bytes or not printable is not kept")]
    Name { longest: usize },
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { doing, path, source }
    }
}
