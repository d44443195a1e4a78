//! Which driver will stand behind the shim.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use installation::driver::Search;
use installation::library::Library;
use model::Domain;
use softgpu::card::Card;

use super::environment::Setting;
use crate::arguments::{Device, RunOptions};
use crate::beside;

pub const VARIABLE: &str = "EBB_DRIVER";
/// What only the software GPU's driver exports.
const SOFTWARE: &str = "ebb_softgpu_control";

/// Which software card is meant, and which where nobody says.
const CARD: &str = "EBB_SOFTGPU";
const DEFAULT_CARD: &str = "default";

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

/// Whether a driver is the software GPU's.
pub fn is_software(path: &Path) -> bool {
    Library::read(path).is_ok_and(|library| library.exports.iter().any(|export| export.name == SOFTWARE))
}

/// Has a software card run all contexts at once, as MPS has a real one do. One that is made later is told by the variable.
pub fn share_card() -> Result<Setting> {
    let name = std::env::var(CARD).ok().filter(|name| !name.is_empty());
    let card =
        Card::attach(name.as_deref().unwrap_or(DEFAULT_CARD)).context("the software GPU cannot be shared")?;
    card.set_domain(Domain::Shared);
    Ok(("EBB_SOFTGPU_DOMAIN", Domain::Shared.to_string().into()))
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
