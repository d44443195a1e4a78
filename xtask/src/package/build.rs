//! The binaries of a package.
//!
//! A release is built against an old libc where `cargo zigbuild` and zig are there, and against this machine's otherwise; which
//! libc a package needs is read from what came out (`elf`), not from what was asked for. It is built in a folder of its own,
//! because the folders of whoever builds are replaced in it by short names, and cargo would build everything anew
//! whenever that changes. A `dev` build is what the tests have, as it is.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{demo, workspace};

/// The crates whose products are installed.
pub const PACKAGES: [&str; 4] = ["cli", "shim", "nvml", "softcuda"];

/// The oldest libc that is aimed at: that of RHEL 8 and Debian 10.
const GLIBC: &str = "2.28";

/// Where the products of a build are.
pub struct Built {
    folder: PathBuf,
    /// What must not be found in them.
    private: Vec<(PathBuf, &'static str)>,
}

pub fn run(profile: &str) -> Result<Built> {
    if profile != "release" {
        demo::build(profile, &PACKAGES)?;
        return Ok(Built { folder: demo::folder_of(profile)?, private: Vec::new() });
    }
    let private = private_folders();
    let target = workspace::target_directory()?.join("package");
    let old = old_libc();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace::root()).arg(if old { "zigbuild" } else { "build" });
    cargo.args(["--release", "--target-dir"]).arg(&target);
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    if old {
        cargo.args(["--target", &format!("{triple}.{GLIBC}")]);
    } else {
        eprintln!(
            "there is no cargo-zigbuild with zig (both are on PyPI): built against this machine's libc"
        );
        cargo.args(["--target", &triple]);
    }
    for package in PACKAGES {
        cargo.args(["--package", package]);
    }
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(&private));
    if !cargo.status().context("cannot run cargo")?.success() {
        bail!("the build failed");
    }
    Ok(Built { folder: target.join(triple).join("release"), private })
}

impl Built {
    /// The bytes of a product, without what only a debugger reads.
    pub fn read(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.folder.join(name);
        let copy = tempfile::NamedTempFile::new()?;
        let mut strip = Command::new("strip");
        strip.arg("--strip-unneeded").arg("-o").arg(copy.path()).arg(&path).stderr(Stdio::null());
        // Who has no binutils has larger packages.
        let from = if strip.status().is_ok_and(|status| status.success()) { copy.path() } else { &path };
        let bytes = fs::read(from).with_context(|| format!("cannot read {}", path.display()))?;
        if let Some((folder, _)) = self.private.iter().find(|(folder, _)| names(&bytes, folder)) {
            bail!("{name} names a folder of this machine, {}", folder.display());
        }
        Ok(bytes)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Folders of whoever builds, and what stands for them in messages of the product.
fn private_folders() -> Vec<(PathBuf, &'static str)> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| home.as_ref().map(|home| home.join(".cargo")));
    let mut folders = vec![(workspace::root().to_owned(), "/ebb")];
    folders.extend(cargo.map(|folder| (folder, "/cargo")));
    // The last that fits is used: the narrower ones come behind.
    folders.extend(home.map(|folder| (folder, "/builder")));
    folders.retain(|(folder, _)| folder.is_absolute() && folder.parent().is_some());
    folders.reverse();
    folders
}

/// For the compiler, with what the user asks for besides.
fn flags(private: &[(PathBuf, &str)]) -> OsString {
    let mut flags: Vec<OsString> = Vec::new();
    let asked = std::env::var("RUSTFLAGS").unwrap_or_default();
    flags.extend(asked.split_whitespace().map(OsString::from));
    for (folder, name) in private {
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(folder);
        flag.push(format!("={name}"));
        flags.push(flag);
    }
    flags.join(std::ffi::OsStr::new("\u{1f}"))
}

fn names(bytes: &[u8], folder: &Path) -> bool {
    let mut name = folder.as_os_str().as_encoded_bytes().to_owned();
    name.push(b'/');
    bytes.windows(name.len()).any(|window| window == name)
}

/// Whether there is what it takes to build against an older libc than this machine's.
fn old_libc() -> bool {
    let answers = |program: &str, words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let zig = || {
        answers("zig", &["version"])
            || answers("python3", &["-m", "ziglang", "version"])
            || std::env::var_os("CARGO_ZIGBUILD_ZIG_PATH").is_some()
    };
    answers("cargo-zigbuild", &["--version"]) && zig()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_found_only_as_the_beginning_of_a_path() {
        let folder = Path::new("/build/me");
        assert!(names(b"\0/build/me/src/x.rs\0", folder));
        assert!(!names(b"/build/mean/src", folder) && !names(b"/build", folder));
    }

    #[test]
    fn folders_are_renamed_from_the_widest_to_the_narrowest() {
        let flags = flags(&[("/h".into(), "/builder"), ("/h/w".into(), "/ebb")]);
        let flags = flags.to_str().unwrap();
        assert!(flags.ends_with("--remap-path-prefix=/h=/builder\u{1f}--remap-path-prefix=/h/w=/ebb"));
    }
}
