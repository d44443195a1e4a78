//! Folders without room, or that cannot be written: what is said then, and that nothing dies of it.
//!
//! A small file system is mounted in a namespace of the test's own, which some machines do not allow.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::{errors, private_folder};

/// A shell in which mounts are its own.
fn in_own_namespace(script: &str, words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "/bin/sh", "-c", script, "sh"]).args(words);
    command
}

fn mounts_are_allowed(folder: &Path) -> bool {
    let folder = folder.to_str().unwrap();
    let tried = in_own_namespace("mount -t tmpfs -o size=64k tmpfs \"$1\"", &[folder]).output();
    let allowed = tried.is_ok_and(|output| output.status.success());
    if !allowed {
        eprintln!("skipped: nothing can be mounted here");
    }
    allowed
}

const MOUNTED: &str = "mount -t tmpfs -o size=64k,mode=0700 tmpfs \"$1\" && shift && exec \"$@\"";

/// A tenant under `ebb run` with a report, after a script in a namespace of its own.
fn tenant(script: &str, full: &Path, runtime: &Path, cards: &Path, before: &[&str]) -> Output {
    common::products();
    let ebb = env!("CARGO_BIN_EXE_ebb");
    let mut words =
        vec![full.to_str().unwrap(), ebb, "run", "--device", "soft", "--no-daemon", "--report", "--"];
    words.extend(before);
    words.extend([
        ebb,
        "tenant",
        "--driver",
        "libcuda.so.1",
        "--class",
        "latency",
        "--seconds",
        "1",
        "--seed",
        "1",
    ]);
    let mut command = in_own_namespace(script, &words);
    let plain = common::ebb(runtime);
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("EBB_SOFTGPU_DIR", cards).env("EBB_LOG", "1").stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_report_says_that_a_ledger_had_no_room() {
    let (runtime, cards) = (private_folder(), private_folder());
    if !mounts_are_allowed(runtime.path()) {
        return;
    }
    let output = tenant(MOUNTED, runtime.path(), runtime.path(), cards.path(), &[]);
    let said = errors(&output);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("CUDA was never used"), "{said}");
    let missing = "used CUDA and is not counted: its ledger could not be written to ";
    assert!(said.contains(missing) && said.contains("(No space left on device"), "{said}");
}

#[test]
fn a_report_says_that_nothing_could_be_left_in_a_folder() {
    let (runtime, cards) = (private_folder(), private_folder());
    if !mounts_are_allowed(runtime.path()) {
        return;
    }
    // The command cannot write where ebb could.
    let closed = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"";
    let before = ["/bin/sh", "-c", closed, runtime.path().to_str().unwrap()];
    let output = tenant("shift && exec \"$@\"", runtime.path(), runtime.path(), cards.path(), &before);
    let said = errors(&output);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("CUDA was never used"), "{said}");
    assert!(said.contains("reached the driver through ebb and left no ledger"), "{said}");
}

#[test]
fn a_software_gpu_without_room_is_an_error_and_no_signal() {
    let (runtime, cards) = (private_folder(), private_folder());
    if !mounts_are_allowed(cards.path()) {
        return;
    }
    let output = tenant(MOUNTED, cards.path(), runtime.path(), cards.path(), &[]);
    let said = errors(&output);
    assert!(!said.contains("ended by signal"), "{said}");
    assert!(
        said.contains("there is no room for the card file ") && said.contains("EBB_SOFTGPU_DIR"),
        "{said}"
    );
    assert_eq!(std::fs::read_dir(cards.path()).unwrap().count(), 0, "it was the mounted one");
}
