//! Which driver will stand behind the shim.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use installation::driver::Search;
use installation::library::Library;

use crate::arguments::{Device, RunOptions};
use crate::beside;

pub const VARIABLE: &str = "EBB_DRIVER";

/// The driver of a run.
#[derive(Debug, PartialEq, Eq)]
pub enum Driver {
    /// Somebody named it; the shim is told.
    Named(PathBuf),
    /// The machine's own, which the shim finds as we did.
    Installed(PathBuf),
    /// There is none, so there is nothing to stand in front of.
    Missing,
}

impl Driver {
    /// By option, by variable, or by search, in this order.
    pub fn choose(options: &RunOptions) -> Result<Driver> {
        if options.device == Some(Device::Soft) {
            return Ok(Driver::Named(beside::software_driver()?));
        }
        if let Some(path) = &options.driver {
            return Ok(Driver::Named(checked(path).context("--driver cannot be used")?));
        }
        if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            let context = || format!("the variable {VARIABLE} cannot be used");
            return Ok(Driver::Named(checked(Path::new(&path)).with_context(context)?));
        }
        let found = Search::here(None).found;
        Ok(found.map_or(Driver::Missing, |(_, library)| Driver::Installed(library.path)))
    }

    pub fn path(&self) -> Option<&Path> {
        match self {
            Driver::Named(path) | Driver::Installed(path) => Some(path),
            Driver::Missing => None,
        }
    }
}

/// The absolute path of a library that can be a driver.
fn checked(path: &Path) -> Result<PathBuf> {
    let library = Library::read(path)?;
    if library.is_shim() {
        bail!("{} is ebb's own library; name the driver that should stand behind it", path.display());
    }
    if !library.is_driver() {
        bail!("{} is no CUDA driver: it does not export cuInit", path.display());
    }
    std::path::absolute(path).context("cannot find the current folder")
}
