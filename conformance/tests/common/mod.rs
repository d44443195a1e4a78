//! The libraries that tests run against: built here, or named by the environment. Not every test uses all of it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The path of the library under test; builds the software GPU when no other is named.
#[allow(dead_code)]
pub fn driver() -> PathBuf {
    match std::env::var_os("EBB_CONFORMANCE_DRIVER") {
        Some(named) => named.into(),
        None => built("softcuda"),
    }
}

/// A library of this workspace, in the tests' own profile and folder, so that what `cargo test --workspace` has built
/// is not built again.
pub fn built(package: &str) -> PathBuf {
    let target = binaries().parent().expect("the profile's folder lies in the target folder");
    built_in(target, package, &[])
}

/// The same with other features, in a folder of its own so that neither takes the place of the other.
#[allow(dead_code)]
pub fn built_with(package: &str, features: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{package}-{features}"));
    built_in(&target, package, &["--features", features])
}

fn built_in(target: &Path, package: &str, more: &[&str]) -> PathBuf {
    let folder = binaries().file_name().expect("cargo names the folder after the profile");
    let profile = folder.to_string_lossy();
    let profile = if profile == "debug" { "dev" } else { &*profile };
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", package, "--profile", profile])
        .args(more)
        .arg("--target-dir")
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo started this test, so cargo can be started");
    assert!(status.success(), "cargo build -p {package} failed");
    target.join(folder).join(format!("lib{package}.so"))
}

/// Where cargo has put the conformance binary and its neighbours.
pub fn binaries() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_conformance")).parent().expect("a binary lies in a folder")
}
