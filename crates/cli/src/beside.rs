//! What is installed together with this program: in folders beside it, as a build leaves it, or in the library
//! folder of an installation.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use installation::search::{DRIVER, MANAGEMENT};

/// `libcuda.so.1` of the software GPU.
pub fn software_driver() -> Result<PathBuf> {
    let candidates = candidates("softcuda")?;
    let Some(found) = candidates.iter().find(|path| path.exists()) else {
        bail!(
            "there is no software GPU at {}; `cargo demo` builds it and runs this, or name a driver with --driver",
            candidates[0].display()
        )
    };
    Ok(found.clone())
}

/// The library that stands in front of the driver, under the name `libcuda.so.1`.
pub fn shim() -> Result<PathBuf> {
    let candidates = candidates("shim")?;
    let Some(found) = candidates.iter().find(|path| path.exists()) else {
        bail!(
            "ebb's own library is not at {}; install ebb again, or build it with `cargo xtask shim`",
            candidates[0].display()
        )
    };
    Ok(found.clone())
}

/// The library that stands in front of NVML, under the name `libnvidia-ml.so.1`. The error says where it was looked for.
pub fn management() -> Result<PathBuf> {
    let candidates = places("nvml", MANAGEMENT)?;
    let Some(found) = candidates.iter().find(|path| path.exists()) else {
        bail!("ebb's own {MANAGEMENT} is not at {}", candidates[0].display())
    };
    Ok(found.clone())
}

fn candidates(product: &str) -> Result<[PathBuf; 2]> {
    places(product, DRIVER)
}

fn places(product: &str, name: &str) -> Result<[PathBuf; 2]> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let folder = program.parent().context("this program's file is in no folder")?;
    // The folder of an installation, rather than a way to it from here: this path is seen by users.
    let prefix = folder.parent().unwrap_or(Path::new("/"));
    let library = |folder: PathBuf| folder.join(product).join(name);
    Ok([library(folder.to_owned()), library(prefix.join("lib/ebb"))])
}
