//! What becomes of a command when nobody reads what it prints.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs::OpenOptions;
use std::process::{Output, Stdio};

use common::runtime::Runtime;
use common::{errors, private_folder};

/// Of every verb that prints without a daemon, one that prints more than a line where there is such a one.
const ALONE: [&str; 13] = [
    "version",
    "version -o json",
    "completions bash",
    "man",
    "man --markdown",
    "--help",
    "lab list",
    "lab check disb-a",
    "profile list",
    "profile export -o csv",
    "verdicts",
    "verdicts -o json",
    "policy check",
];

const WITH_DAEMON: [&str; 11] = [
    "status",
    "status -o json",
    "ps",
    "ps -o json",
    "top --once --interval 100ms",
    "policy show",
    "soft show",
    "set train --weight 3",
    "pause train",
    "resume train -o json",
    "doctor --device soft",
];

/// Runs a command whose reader has gone before it prints.
fn unread(runtime: &Runtime, line: &str) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = runtime.command();
    let child = command.args(line.split(' ')).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    child.wait_with_output().unwrap()
}

fn ends_quietly(runtime: &Runtime, line: &str) {
    let (read, unread) = (runtime.ebb(&line.split(' ').collect::<Vec<_>>()), unread(runtime, line));
    assert_eq!(unread.status.code(), read.status.code(), "`ebb {line}`: {}", errors(&unread));
    for word in ["panicked", "pipe"] {
        assert!(!errors(&unread).contains(word), "`ebb {line}`: {}", errors(&unread));
    }
}

#[test]
fn a_command_whose_reader_has_gone_ends_as_it_would_have() {
    let runtime = Runtime::new();
    ALONE.iter().for_each(|line| ends_quietly(&runtime, line));
    let tenant = runtime.tenant("train", "best-effort", &[]);
    WITH_DAEMON.iter().for_each(|line| ends_quietly(&runtime, line));
    let folder = private_folder();
    let bundle = format!("support-bundle --out {}", folder.path().join("x.tar.gz").display());
    ends_quietly(&runtime, &bundle);
    ends_quietly(&runtime, "trace --last 5s --out -");
    tenant.end();
}

#[test]
fn output_that_somebody_wanted_and_did_not_get_is_a_failure() {
    let runtime = Runtime::new();
    let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else {
        eprintln!("skipped: there is no /dev/full");
        return;
    };
    let mut command = runtime.command();
    let child = command.args(["man", "--markdown"]).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = errors(&output);
    assert!(
        said.starts_with("ebb: cannot write to standard output: ") && said.lines().count() == 1,
        "{said}"
    );
}
