//! What is there already when somebody comes: daemons of earlier runs, idle and busy, and daemons that do not start.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::process::{Child, Stdio};

use common::runtime::{Runtime, wait_for};
use common::{errors, text};
use rustix::process::Pid;

/// A daemon in the foreground, ended with the test.
struct Foreground(Child);

fn daemon(runtime: &Runtime, words: &[&str]) -> Foreground {
    let mut command = runtime.command();
    Foreground(command.arg("daemon").args(words).stderr(Stdio::null()).spawn().unwrap())
}

impl Drop for Foreground {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serves(runtime: &Runtime, daemon: &Foreground) -> bool {
    let pid = runtime.report().map(|report| report["daemon"]["pid"].number());
    pid == Some(i128::from(daemon.0.id()))
}

#[test]
fn an_idle_daemon_of_ebb_run_is_replaced() {
    let runtime = Runtime::new();
    let old = runtime.daemon();
    let new = daemon(&runtime, &["--domain", "shared"]);
    wait_for("the new daemon", || serves(&runtime, &new));
    assert_eq!(runtime.report().unwrap()["daemon"]["domain"].text(), "shared");
    wait_for("the end of the old one", || !lives(old));
}

/// A zombie does not live: nobody here may be there to wait for it.
fn lives(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z'))
}

#[test]
fn a_busy_daemon_is_told_of_and_hands_over() {
    let runtime = Runtime::new();
    let tenant = runtime.tenant("trainer", "best-effort", &[]);
    wait_for("a seat", || runtime.seat(&tenant).is_some());
    let refused = runtime.ebb(&["daemon", "--domain", "shared"]);
    assert_eq!(refused.status.code(), Some(1));
    let message = errors(&refused);
    let named = format!("a daemon runs already in {}", runtime.path().display());
    for part in [&named, &format!("trainer (pid {})", tenant.child.id()), "--replace", "ebb daemon stop"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(message.lines().count(), 1, "{message}");
    let new = daemon(&runtime, &["--replace"]);
    wait_for("the new daemon", || serves(&runtime, &new));
    wait_for("the tenant's seat there", || runtime.seat(&tenant).is_some());
    tenant.end();
}

#[test]
fn a_daemon_that_is_to_stay_is_replaced_on_request_only() {
    let runtime = Runtime::new();
    let old = daemon(&runtime, &[]);
    wait_for("the first daemon", || serves(&runtime, &old));
    let refused = runtime.ebb(&["daemon"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(errors(&refused).contains("was started to stay"), "{}", errors(&refused));
    let new = daemon(&runtime, &["--replace"]);
    wait_for("the second daemon", || serves(&runtime, &new));
}

#[test]
fn a_daemon_ends_when_its_user_says_so() {
    let runtime = Runtime::new();
    let none = runtime.ebb(&["daemon", "stop"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(errors(&none).contains("there is no daemon in"), "{}", errors(&none));
    let tenant = runtime.tenant("trainer", "best-effort", &[]);
    wait_for("a seat", || runtime.seat(&tenant).is_some());
    let said = text(&runtime.ebb(&["daemon", "stop"]));
    assert!(said.starts_with("ended daemon ") && said.contains("trainer (pid "), "{said}");
    assert!(runtime.report().is_none() && !runtime.path().join("ebb.sock").exists());
    runtime.daemon();
    wait_for("the seat at the next one", || runtime.seat(&tenant).is_some());
    tenant.end();
}

#[test]
fn a_daemon_in_the_background_says_why_it_does_not_start() {
    let runtime = Runtime::new();
    fs::create_dir(runtime.path().join("ebb")).unwrap();
    fs::write(runtime.path().join("ebb/ebb.toml"), "schema_version = 1\n[tokens]\n").unwrap();
    let reason = "the daemon does not start: ";
    let alone = runtime.ebb(&["daemon", "--on-demand"]);
    assert_eq!(alone.status.code(), Some(1));
    let run = runtime.ebb(&["run", "--device", "soft", "--", "true"]);
    assert!(run.status.success());
    for output in [alone, run] {
        let message = errors(&output);
        assert!(message.contains("ebb.toml:2: unknown key `tokens`"), "{message}");
        assert_eq!((message.matches(reason).count(), message.lines().count()), (1, 1), "{message}");
    }
}

#[test]
fn a_runtime_folder_may_be_named_from_where_one_stands() {
    let runtime = Runtime::new();
    let (parent, name) = (runtime.path().parent().unwrap(), runtime.path().file_name().unwrap());
    let mut command = runtime.command();
    command.current_dir(parent).env("EBB_RUNTIME_DIR", name);
    let output = command.args(["run", "--device", "soft", "--", "env"]).output().unwrap();
    assert_eq!(errors(&output), "");
    let socket = format!("EBB_SOCKET={}", runtime.path().join("ebb.sock").display());
    assert!(text(&output).lines().any(|line| line == socket), "{}", text(&output));
    assert!(runtime.report().is_some(), "the daemon is in that folder");
}
