//! Which driver will stand behind the shim.

use std::ffi::{CStr, OsStr};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use installation::library::Library;
use installation::search::{Surroundings, each_candidate};

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
        Ok(installed().map_or(Driver::Missing, Driver::Installed))
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
    if !library.exports.iter().any(|export| export.name == "cuInit") {
        bail!("{} is no CUDA driver: it does not export cuInit", path.display());
    }
    std::path::absolute(path).context("cannot find the current folder")
}

fn installed() -> Option<PathBuf> {
    let library_path = std::env::var_os("LD_LIBRARY_PATH");
    let cache = std::fs::read("/etc/ld.so.cache").unwrap_or_default();
    let library_path = library_path.as_deref().map(OsStr::as_bytes);
    let surroundings = Surroundings { setting: None, library_path, cache: &cache };
    let mut found = None;
    each_candidate(&surroundings, &mut |_, path: &CStr| {
        let path = Path::new(OsStr::from_bytes(path.to_bytes()));
        if path.exists() && checked(path).is_ok() {
            found = Some(path.to_owned());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    found
}
