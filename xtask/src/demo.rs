//! `cargo demo`, `cargo xtask bench`, `shim` and `softcuda`: build what a user needs, put it where a program finds it.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// A library that stands in a folder called like its package, under the name that programs ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// In front of a driver.
    Shim,
    /// In front of NVIDIA's management library, where the shim has a limit of memory to keep.
    Nvml,
    /// Instead of a driver.
    Softcuda,
}

impl Stand {
    fn package(self) -> &'static str {
        match self {
            Stand::Shim => "shim",
            Stand::Nvml => "nvml",
            Stand::Softcuda => "softcuda",
        }
    }

    /// Without its version.
    fn name(self) -> &'static str {
        match self {
            Stand::Shim | Stand::Softcuda => "libcuda.so",
            Stand::Nvml => "libnvidia-ml.so",
        }
    }
}

/// Builds the product and becomes `ebb` with the given verb.
pub fn run(verb: &[&str], arguments: &[String]) -> Result<()> {
    let stands = [Stand::Shim, Stand::Nvml, Stand::Softcuda];
    let packages: Vec<&str> = stands.into_iter().map(Stand::package).chain(["cli"]).collect();
    build("release", &packages)?;
    let folder = folder_of("release")?;
    for stand in stands {
        link(&folder, stand)?;
    }
    let ebb = folder.join("ebb");
    let error = Command::new(&ebb).args(verb).args(arguments).exec();
    Err(error).with_context(|| format!("cannot start {}", ebb.display()))
}

/// Builds one library and prints its folder, for `LD_LIBRARY_PATH` or for `ebb` beside it. What stands in front of NVML
/// comes with the shim, without which it says nothing.
pub fn folder(stand: Stand, profile: &str) -> Result<()> {
    build(profile, &[stand.package()])?;
    if stand == Stand::Shim {
        build(profile, &[Stand::Nvml.package()])?;
        link(&folder_of(profile)?, Stand::Nvml)?;
    }
    println!("{}", link(&folder_of(profile)?, stand)?.display());
    Ok(())
}

/// Builds `ebb`, the shim, the driver that does nothing and the software GPU's, and measures what the shim adds to the driver.
pub fn bench_shim(arguments: &[String]) -> Result<()> {
    build("release", &["cli", "nullcuda", Stand::Softcuda.package(), Stand::Shim.package()])?;
    let folder = folder_of("release")?;
    link(&folder, Stand::Shim)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace::root());
    command.args(["run", "--quiet", "--release", "--package", "lab", "--example", "shim", "--"]);
    let files = ["ebb", "libnullcuda.so", "libsoftcuda.so", "libshim.so"];
    command.args(files.map(|file| folder.join(file))).args(arguments);
    Err(command.exec()).context("cannot run cargo")
}

pub fn build(profile: &str, packages: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace::root()).args(["build", "--profile", profile]);
    for package in packages {
        command.args(["--package", package]);
    }
    if !command.status().context("cannot run cargo")?.success() {
        bail!("the build failed");
    }
    Ok(())
}

/// Where a profile's products lie. Cargo calls the folder of `dev` by its old name.
pub fn folder_of(profile: &str) -> Result<PathBuf> {
    let name = if profile == "dev" { "debug" } else { profile };
    Ok(workspace::target_directory()?.join(name))
}

/// Gives the library the names under which programs look for it, in a folder of their own.
fn link(folder: &Path, stand: Stand) -> Result<PathBuf> {
    let place = folder.join(stand.package());
    fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
    let library = format!("../lib{}.so", stand.package());
    let (plain, versioned) = (stand.name(), format!("{}.1", stand.name()));
    for (name, to) in [(versioned.as_str(), library.as_str()), (plain, versioned.as_str())] {
        put_link(&place.join(name), Path::new(to))?;
    }
    Ok(place)
}

/// Leaves a right link alone, so that two builds at once do not see it vanish.
fn put_link(path: &Path, to: &Path) -> Result<()> {
    if fs::read_link(path).is_ok_and(|old| old == to) {
        return Ok(());
    }
    if path.symlink_metadata().is_ok() {
        fs::remove_file(path)?;
    }
    symlink(to, path).with_context(|| format!("cannot create {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_gets_the_names_that_programs_ask_for() {
        let folder = tempfile::tempdir().unwrap();
        for (stand, library, plain) in [
            (Stand::Softcuda, "libsoftcuda.so", "libcuda.so"),
            (Stand::Shim, "libshim.so", "libcuda.so"),
            (Stand::Nvml, "libnvml.so", "libnvidia-ml.so"),
        ] {
            fs::write(folder.path().join(library), library).unwrap();
            for _ in 0..2 {
                let place = link(folder.path(), stand).unwrap();
                for name in [plain.to_owned(), format!("{plain}.1")] {
                    assert_eq!(fs::read_to_string(place.join(name)).unwrap(), library);
                }
            }
        }
    }

    #[test]
    fn a_wrong_link_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link");
        symlink("elsewhere", &path).unwrap();
        put_link(&path, Path::new("here")).unwrap();
        assert_eq!(fs::read_link(&path).unwrap(), Path::new("here"));
    }
}
