//! The Python workers, which are carried inside this program.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

include!(concat!(env!("OUT_DIR"), "/workers.rs"));

/// Puts them into a folder, and says which file is to be run.
pub(crate) fn install(folder: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    WORKERS.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))?;
    Ok(folder.join("worker.py"))
}
