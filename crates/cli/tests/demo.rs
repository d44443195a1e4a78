//! `ebb` as a user runs it, over the software GPU built beside it.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use common::json::{self, Value};
use common::{private_folder, text};

fn ebb(runtime: &Path, arguments: &[&str]) -> Output {
    common::ebb(runtime).args(arguments).output().unwrap()
}

#[test]
fn the_demo_measures_eight_phases_under_ebb_run_and_leaves_nothing_behind() {
    let runtime = private_folder();
    common::products();
    let output = text(&ebb(runtime.path(), &["demo", "--seconds", "1", "-o", "json"]));
    let shown = json::parse(&output);
    let names = [
        "latency alone",
        "best-effort alone",
        "together, time-sliced",
        "together, ebb",
        "two best-effort, ebb",
        "launch-bound alone",
        "short blocks alone",
        "in its gaps, ebb",
    ];
    let said: Vec<_> = shown["phases"].items().iter().map(|phase| phase["phase"].clone()).collect();
    assert_eq!(said, names.map(|name| Value::Text(name.to_owned())));
    let mut launches = 0;
    for phase in shown["phases"].items() {
        // An iteration is one launch.
        let launch_bound = phase["scene"] == Value::Text("launch-bound".to_owned());
        let each = if launch_bound { lab::PREPARED_LAUNCHES } else { lab::REQUEST_LAUNCHES };
        let latency = (phase["latency"] != Value::Null).then_some((i128::from(each), &phase["latency"]));
        for (each, tenant) in
            latency.into_iter().chain(phase["best_effort"].items().iter().map(|tenant| (1, tenant)))
        {
            assert_eq!(tenant["done"], tenant["right"], "{output}");
            assert!(tenant["done"].number() > 0, "{output}");
            launches += each * tenant["done"].number();
        }
    }
    let counted = ["tenants", "attached", "seated", "launches"].map(|key| shown[key].number());
    assert_eq!(counted, [19, 19, 11, launches], "{output}");
    // Whether they are kept is a matter of the machine, and not of a test.
    let bars: Vec<_> = shown["bars"].items().iter().map(|bar| bar["name"].clone()).collect();
    let names = ["late_beyond_alone", "of_ideal", "gaps_filled", "launch_bound_p99"];
    assert_eq!(bars, names.map(|name| Value::Text(name.to_owned())));
    let left: Vec<_> =
        std::fs::read_dir(runtime.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    assert_eq!(mentioning(runtime.path()), Vec::<String>::new(), "somebody still runs");
}

/// The command lines of processes that have this folder in their environment.
fn mentioning(runtime: &Path) -> Vec<String> {
    let runtime = runtime.as_os_str().as_encoded_bytes();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.windows(runtime.len()).any(|window| window == runtime) {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&command).replace('\0', " "));
        }
    }
    found
}

#[test]
fn the_table_says_how_it_was_measured() {
    let runtime = private_folder();
    common::products();
    let shown = text(&ebb(runtime.path(), &["demo", "--seconds", "0.5"]));
    for words in [
        "p99/alone",
        "of ideal",
        "slices of 2048 µs, 150 µs for each switch",
        "gaps of launch-bound requests filled",
        "in 3 rounds",
        "Under ebb: 11 of 11",
        "Attached: 19 of 19",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(shown.matches("  right").count(), 8, "{shown}");
}

#[test]
fn without_a_driver_the_demo_says_what_to_do() {
    let runtime = private_folder();
    common::products();
    let output = ebb(runtime.path(), &["demo", "--driver", "/nowhere/libcuda.so.1"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(message.contains("/nowhere/libcuda.so.1"), "{message}");
}

/// A best-effort tenant at work on the card `default`.
fn working_tenant(runtime: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
    command.args(["tenant", "--class", "best-effort", "--seconds", "600", "--seed", "1", "--driver"]);
    command.arg(common::products().join("softcuda/libcuda.so.1")).env("EBB_RUNTIME_DIR", runtime);
    command.env_remove("EBB_SOFTGPU");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    // The pipe stays open, or the tenant's first word would end it.
    std::thread::spawn(move || lines.lines().count());
    writeln!(child.stdin.as_mut().unwrap(), "go").unwrap();
    child
}

fn wait_until(runtime: &Path, what: &str) -> String {
    for _ in 0..500 {
        let shown = text(&ebb(runtime, &["soft", "show", "-o", "json"]));
        if shown.contains(what) {
            return shown;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("`ebb soft show` never said {what}");
}

#[test]
fn killed_tenants_free_the_card_while_others_go_on() {
    let runtime = private_folder();
    let mut survivor = working_tenant(runtime.path());
    for _ in 0..3 {
        let mut victim = working_tenant(runtime.path());
        wait_until(runtime.path(), &format!("\"pid\":{}", victim.id()));
        victim.kill().unwrap();
        victim.wait().unwrap();
    }
    let shown = wait_until(runtime.path(), "\"state\":\"running\"");
    assert_eq!(shown.matches("\"pid\"").count(), 1, "{shown}");
    assert!(shown.contains(&format!("\"pid\":{}", survivor.id())), "{shown}");
    survivor.kill().unwrap();
    survivor.wait().unwrap();
    let shown = text(&ebb(runtime.path(), &["soft", "show", "-o", "json"]));
    assert!(shown.contains("\"memory_used\":0") && shown.contains("\"contexts\":[]"), "{shown}");
}

#[test]
fn settings_are_changed_from_outside() {
    let runtime = private_folder();
    text(&ebb(runtime.path(), &["soft", "set", "--domain", "shared", "--switch-cost", "7"]));
    let shown = text(&ebb(runtime.path(), &["soft", "show", "-o", "json"]));
    assert!(shown.contains("\"domain\":\"shared\"") && shown.contains("\"switch_cost_ns\":7000"), "{shown}");
    let refused = ebb(runtime.path(), &["soft", "set", "--timeslice", "99=1"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no context 99"));
}

#[test]
fn a_runtime_folder_that_cannot_be_used_is_named_in_one_sentence() {
    let folder = private_folder();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = ebb(&file, &["soft", "show"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains("EBB_RUNTIME_DIR"), "{message}");
}

#[test]
fn the_program_describes_itself() {
    let runtime = private_folder();
    assert!(text(&ebb(runtime.path(), &["version"])).starts_with("ebb "));
    assert!(text(&ebb(runtime.path(), &["man"])).contains(".TH ebb 1"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(text(&ebb(runtime.path(), &["completions", shell])).contains("demo"));
    }
}
