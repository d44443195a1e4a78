//! Where things lie.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand};

/// The repository, found from this crate's own place in it.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies one folder below the root")
}

/// What cargo knows of the workspace and of everything in its lock file.
pub fn metadata() -> Result<Metadata> {
    MetadataCommand::new().current_dir(root()).exec().context("cargo metadata failed")
}

/// Where cargo builds: `target/`, unless the user has said otherwise.
pub fn target_directory() -> Result<PathBuf> {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec();
    Ok(metadata.context("cargo metadata failed")?.target_directory.into_std_path_buf())
}
