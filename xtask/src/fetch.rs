//! Fetches what is NVIDIA's and therefore never committed: headers for `gen`, the compiler for `kernels` and `donors`, the
//! disassembler for `twins`.
//!
//! Everything comes from PyPI as wheels, pinned by version and by hash, and is unpacked under `.cache/` in the
//! repository. A folder there is named after its pins and appears by a rename, so that a folder which exists
//! is whole and is the right one: a changed pin gives another name, an interrupted fetch leaves nothing behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// One wheel on PyPI.
struct Pin {
    name: &'static str,
    version: &'static str,
    sha256: &'static str,
}

const fn pin(name: &'static str, version: &'static str, sha256: &'static str) -> Pin {
    Pin { name, version, sha256 }
}

/// A set of wheels unpacked into one folder.
pub struct Bundle {
    /// First half of the folder's name; the second names the pins.
    name: &'static str,
    pins: &'static [Pin],
    /// What pip should take these wheels to be for. Headers are the same everywhere, programs are not.
    platform: &'static str,
}

/// The newest headers: the driver's types and entries are read from these.
pub const HEADERS: Bundle = Bundle {
    name: "cuda-headers",
    platform: "manylinux2014_x86_64",
    pins: &[
        pin(
            "nvidia-cuda-runtime",
            "13.4.92",
            "9641f797da20ce1dd8e779b6e96d08cf9ba564cec8e8225458811ee26423f3a5",
        ),
        pin(
            "nvidia-cuda-profiler-api",
            "13.4.92",
            "b6a29bfebcb18cd045e667a0cfc882258e4a78bb6b73b868a36f7f0d069e6c5c",
        ),
    ],
};

/// The compiler for our kernels. It is older than the headers on purpose: it writes PTX ISA 9.0, which a
/// driver of the 580 line, the first to speak CUDA 13, still accepts.
pub const TOOLKIT: Bundle = Bundle {
    name: "cuda-toolkit",
    platform: "manylinux2014_x86_64",
    pins: &[
        pin(
            "nvidia-cuda-nvcc",
            "13.0.88",
            "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
        ),
        pin("nvidia-nvvm", "13.0.88", "c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0"),
        pin(
            "nvidia-cuda-runtime",
            "13.0.96",
            "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
        ),
        pin("nvidia-cuda-crt", "13.0.88", "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4"),
        pin(
            "nvidia-cuda-cccl",
            "13.0.85",
            "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649",
        ),
    ],
};

/// Machine code as text, for checks of what the guard writes. It is newer than the compiler, as no older one is on PyPI.
pub const DISASSEMBLER: Bundle = Bundle {
    name: "cuda-disassembler",
    platform: "manylinux2014_x86_64",
    pins: &[pin(
        "nvidia-cuda-nvdisasm",
        "13.4.92",
        "f35a5b6ddb64b6758c22c0b078c5b6ff6d54f7c240cd74bf131ab5bf13b6c3fe",
    )],
};

/// The C front end which bindgen loads, so that nobody has to install one.
pub const LIBCLANG: Bundle = Bundle {
    name: "libclang",
    platform: "manylinux2010_x86_64",
    pins: &[pin("libclang", "18.1.1", "c533091d8a3bbf7460a00cb6c1a71da93bffe148f172c7d03b1c31fbf8aa2a0b")],
};

/// Something outside the repository could not be had. `check` tells it from a fault inside.
#[derive(Debug)]
pub struct Unavailable(pub String);

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

/// `cargo xtask fetch-cuda`
pub fn everything() -> Result<()> {
    for bundle in [&HEADERS, &TOOLKIT, &DISASSEMBLER, &LIBCLANG] {
        println!("{}", fetch(bundle)?.display());
    }
    Ok(())
}

/// Gives the folder of the unpacked bundle, downloading it the first time.
pub fn fetch(bundle: &Bundle) -> Result<PathBuf> {
    let cache = workspace::root().join(".cache");
    let root = cache.join(folder_name(bundle));
    if root.is_dir() {
        return Ok(root);
    }
    fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let scratch = tempfile::tempdir_in(&cache)?;
    let wheels = scratch.path().join("wheels");
    let files = scratch.path().join("files");
    download(bundle, scratch.path(), &wheels)?;
    unpack(&wheels, &files)?;
    for programs in ["nvidia/cu13/bin", "nvidia/cu13/nvvm/bin"] {
        make_executable(&files.join(programs))?;
    }
    // Losing a race against another fetch is as good as winning it.
    if let Err(error) = fs::rename(&files, &root)
        && !root.is_dir()
    {
        return Err(error).with_context(|| format!("cannot put {} in place", root.display()));
    }
    Ok(root)
}

/// The name carries the beginning of every hash, so it changes with any pin.
fn folder_name(bundle: &Bundle) -> String {
    bundle.pins.iter().fold(bundle.name.to_owned(), |name, pin| name + "-" + &pin.sha256[..8])
}

fn download(bundle: &Bundle, scratch: &Path, wheels: &Path) -> Result<()> {
    let requirements = scratch.join("requirements.txt");
    let lines: String = bundle
        .pins
        .iter()
        .map(|pin| format!("{}=={} --hash=sha256:{}\n", pin.name, pin.version, pin.sha256))
        .collect();
    fs::write(&requirements, lines)?;
    eprintln!("fetching {} from PyPI (once)", bundle.name);
    let output = Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .args(["--only-binary", ":all:", "--require-hashes", "--platform", bundle.platform, "--retries", "2"])
        .arg("--dest")
        .arg(wheels)
        .arg("--requirement")
        .arg(&requirements)
        .output();
    let log = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(_) => "this needs python3 with pip, and python3 is not to be found".into(),
    };
    if log.contains("DO NOT MATCH THE HASHES") {
        bail!("what PyPI gives for {} is not what is pinned:\n{}", bundle.name, log.trim());
    }
    bail!(Unavailable(format!("cannot fetch {} from PyPI: {}", bundle.name, reason(&log))))
}

/// pip says a lot when it fails; the last line which calls itself an error is the one which matters.
fn reason(log: &str) -> String {
    if log.contains("No module named pip") {
        return "python3 is there but pip is not (try your package manager's python3-pip)".into();
    }
    let unreachable =
        ["Failed to establish a new connection", "Temporary failure in name", "No matching distr"];
    if unreachable.iter().any(|sign| log.contains(sign)) {
        return "PyPI cannot be reached, or does not have these wheels for this machine".into();
    }
    let last = log.lines().rev().find_map(|line| line.trim().strip_prefix("ERROR: "));
    last.or_else(|| log.lines().last()).unwrap_or("pip gave no reason").to_owned()
}

fn unpack(wheels: &Path, files: &Path) -> Result<()> {
    for entry in fs::read_dir(wheels)? {
        let wheel = entry?.path();
        let status = Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(files).status()?;
        if !status.success() {
            bail!("cannot unpack {}", wheel.display());
        }
    }
    Ok(())
}

/// Unpacking with zipfile loses the executable bits.
fn make_executable(folder: &Path) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_file() {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_named_after_its_pins() {
        assert_eq!(folder_name(&LIBCLANG), "libclang-c533091d");
        assert_eq!(folder_name(&HEADERS), "cuda-headers-9641f797-b6a29bfe");
    }

    #[test]
    fn failures_of_pip_become_one_sentence() {
        assert!(reason("/usr/bin/python3: No module named pip").contains("pip is not"));
        assert!(
            reason("WARNING: Failed to establish a new connection\nERROR: x").contains("cannot be reached")
        );
        assert_eq!(
            reason("ERROR: first\nERROR: THESE PACKAGES DO NOT MATCH\n    detail"),
            "THESE PACKAGES DO NOT MATCH"
        );
    }
}
