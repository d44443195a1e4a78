//! The quick start, typed as it stands there.
//!
//! Every line of every `sh` block of `docs/quickstart.md` is run, in order, but for blocks behind a remark that says `not tried`
//! and why. The software GPU is the machine's driver here, so that the part for a card can be tried too.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use common::runtime::{Runtime, wait_for};
use common::{errors, installed, products, text};

/// The blocks that are to be tried, as commands in order.
fn commands(page: &str) -> Vec<String> {
    let (mut found, mut inside, mut spared) = (Vec::new(), false, false);
    for line in page.lines() {
        match line {
            "```sh" => inside = true,
            "```" if inside => (inside, spared) = (false, false),
            _ if inside && !spared && !line.is_empty() => found.push(line.to_owned()),
            _ if line.starts_with("<!-- not tried:") => spared = true,
            _ => {}
        }
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A shell in the repository, which finds `ebb` and whose machine has the software GPU.
fn shell(runtime: &Runtime, line: &str) -> Command {
    let mut command = installed(Path::new("/bin/sh"), runtime.path());
    let others = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{others}", products().display()));
    command.env("EBB_DRIVER", products().join("softcuda/libcuda.so.1"));
    command.current_dir(root()).args(["-c", line]);
    command
}

/// Types a line. What follows an `&` may take its time to come up, so a command is repeated until it succeeds.
fn succeed(runtime: &Runtime, line: &str) -> Output {
    let mut last = None;
    wait_for(line, || {
        let output = shell(runtime, line).output().unwrap();
        let done = output.status.success();
        if !done {
            eprintln!("{line}: {}", errors(&output));
        }
        last = Some(output);
        done
    });
    last.unwrap()
}

/// What was started behind an `&`. Dropped, it is ended.
struct Background(Child);

impl Background {
    fn start(runtime: &Runtime, line: &str) -> Background {
        let mut command = shell(runtime, &format!("exec {line}"));
        Background(command.stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn has_python() -> bool {
    Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn every_command_of_the_quick_start_works() {
    if !has_python() {
        eprintln!("skipped: there is no python3, which the example is written in");
        return;
    }
    let page = std::fs::read_to_string(root().join("docs/quickstart.md")).unwrap();
    let commands = commands(&page);
    assert!(commands.len() >= 12, "the page was not read as it is meant: {commands:?}");
    let runtime = Runtime::new();
    let (mut reports, mut background) = (0, Vec::new());
    for line in &commands {
        if let Some(line) = line.strip_suffix('&') {
            background.push(Background::start(&runtime, line));
            continue;
        }
        let output = succeed(&runtime, line);
        if line.contains("--report") {
            reports += 1;
            assert!(errors(&output).contains("processes attached  1"), "{}", errors(&output));
            assert!(text(&output).contains("every block ran once"), "{}", text(&output));
        }
        if line.starts_with("ebb ps") {
            wait_for("both tenants are listed", || {
                let listed = text(&succeed(&runtime, line));
                ["train", "serve"].iter().all(|name| listed.contains(name))
            });
        }
    }
    assert_eq!(background.len(), 2, "one that trains and one that serves");
    assert_eq!(reports, 2, "once without a GPU and once with one");
}

#[test]
fn blocks_that_cannot_be_tried_are_left_out_and_no_others() {
    let page = "a\n```sh\none\n```\n<!-- not tried: why -->\n```sh\ntwo\n```\n```text\nthree\n```\n```sh\nfour\n```\n";
    assert_eq!(commands(page), ["one", "four"]);
}
