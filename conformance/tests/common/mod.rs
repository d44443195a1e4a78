//! The driver that tests run against: the workspace's software GPU, or the one that the environment names.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The path of the library under test; builds the software GPU when no other is named.
pub fn driver() -> PathBuf {
    if let Some(named) = std::env::var_os("EBB_CONFORMANCE_DRIVER") {
        return named.into();
    }
    let binaries = binaries();
    let profile = binaries.file_name().expect("cargo names the folder after the profile").to_string_lossy();
    let profile = if profile == "debug" { "dev" } else { &*profile };
    let target = binaries.parent().expect("the profile's folder lies in the target folder");
    // The tests' own profile and folder, so that what `cargo test --workspace` has built is not built again.
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "softcuda", "--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo started this test, so cargo can be started");
    assert!(status.success(), "cargo build -p softcuda failed");
    binaries.join("libsoftcuda.so")
}

/// Where cargo has put the conformance binary and its neighbours.
pub fn binaries() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_conformance")).parent().expect("a binary lies in a folder")
}
