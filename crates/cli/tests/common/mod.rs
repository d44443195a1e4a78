//! What the tests of `ebb` share: the libraries it is installed with, built and put beside it.

#![allow(dead_code, reason = "every test file uses a part of this")]

pub mod json;
pub mod runtime;
pub mod users;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The folder with `ebb`, its shim and its software GPU.
pub fn products() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_BIN_EXE_ebb")).parent().unwrap();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "softcuda", "--package", "shim", "--package", "nvml"]);
        build.current_dir(env!("CARGO_MANIFEST_DIR")).arg("--target-dir").arg(folder.parent().unwrap());
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success(), "the libraries do not build");
        for (product, name) in
            [("softcuda", "libcuda.so"), ("shim", "libcuda.so"), ("nvml", "libnvidia-ml.so")]
        {
            let (place, versioned) = (folder.join(product), format!("{name}.1"));
            fs::create_dir_all(&place).unwrap();
            link(&place.join(&versioned), &format!("../lib{product}.so"));
            link(&place.join(name), &versioned);
        }
        folder.to_owned()
    })
}

/// Other tests make the same links at the same time.
fn link(path: &Path, to: &str) {
    if fs::read_link(path).is_ok_and(|old| old == Path::new(to)) {
        return;
    }
    match std::os::unix::fs::symlink(to, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => panic!("{}: {error}", path.display()),
        _ => {}
    }
}

/// A C program or library from the tests' own sources; `None`, with a message, where there is no compiler.
pub fn compiled(folder: &Path, source: &str, options: &[&str], name: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let program = folder.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(options).arg("-o").arg(&program).arg(source).arg("-ldl");
    let compiled = compiler.status().is_ok_and(|status| status.success());
    if !compiled {
        eprintln!("skipped: there is no C compiler");
    }
    compiled.then_some(program)
}

/// A program that launches one kernel again and again, for so many seconds.
pub fn tenant(seconds: &str) -> [&str; 9] {
    let ebb = env!("CARGO_BIN_EXE_ebb");
    [ebb, "tenant", "--driver", "libcuda.so.1", "--class", "best-effort", "--seconds", seconds, "--seed=1"]
}

/// `ebb` with a runtime folder of its own and nothing of ours in its environment.
pub fn ebb(runtime: &Path) -> Command {
    installed(Path::new(env!("CARGO_BIN_EXE_ebb")), runtime)
}

/// The same for an `ebb` installed elsewhere.
pub fn installed(ebb: &Path, runtime: &Path) -> Command {
    let mut command = Command::new(ebb);
    command.env("EBB_RUNTIME_DIR", runtime).env("XDG_CONFIG_HOME", runtime);
    command.env("EBB_PROFILES", runtime.join("profiles")).env("EBB_GUARD_CACHE", runtime.join("guard"));
    for name in
        ["EBB_SOFTGPU", "EBB_SOFTGPU_DIR", "EBB_DRIVER", "EBB_RUN", "EBB_DISABLE", "EBB_LOG", "LD_PRELOAD"]
    {
        command.env_remove(name);
    }
    for name in ["EVENTS", "GUARD", "LEDGERS", "SAMPLE"] {
        command.env_remove(format!("EBB_{name}"));
    }
    for name in
        ["SOCKET", "TENANT", "NAME", "CLASS", "WEIGHT", "PRIORITY", "SLO_P99", "ON_DAEMON_LOSS", "MEM_LIMIT"]
    {
        command.env_remove(format!("EBB_{name}"));
    }
    for number in ["", "_0"] {
        command.env_remove(format!("CUDA_DEVICE_MEMORY_LIMIT{number}"));
    }
    command
}

pub fn private_folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("ebb-test").tempdir().unwrap()
}

pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a command that must succeed printed.
pub fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", errors(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}
