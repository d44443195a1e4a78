//! `ebb sim` and `ebb policy diff`, as a user meets them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str = r#"
schema = 1
title = "Short requests beside long grids"
duration = "1s"
warmup = "200ms"
repetitions = 1

[[tenant]]
name = "requests"
class = "latency"
workload = { model = "burst", launches = 10, blocks = 132, block = "20us" }
arrival = { process = "poisson", rate = 150 }

[[tenant]]
name = "grids"
class = "best-effort"
workload = { model = "grid", blocks = 1056, block = "1ms" }
"#;

fn ebb(arguments: &[&str], folder: &Path) -> Output {
    let ebb = env!("CARGO_BIN_EXE_ebb");
    Command::new(ebb).args(arguments).current_dir(folder).output().expect("it starts")
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it speaks UTF-8");
    (text(&output.stdout), text(&output.stderr))
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is a place for it");
    fs::write(folder.path().join("short.toml"), SCENARIO).expect("it is ours");
    folder
}

#[test]
fn a_scenario_is_played_the_same_every_time_and_says_how_fast() {
    let folder = folder();
    let play =
        || ebb(&["sim", "short.toml", "--policy", "slo,timeslice", "--domain", "shared"], folder.path());
    let (first, second) = (play(), play());
    assert!(first.status.success());
    let (out, error) = said(&first);
    assert!(out.contains("slo-shared") && out.contains("timeslice") && out.contains("grids"), "{out}");
    assert!(error.contains("simulated seconds per second"), "{error}");
    assert_eq!(out, said(&second).0);
    let other =
        said(&ebb(&["sim", "short.toml", "--policy", "slo", "--seed", "9", "-o", "json"], folder.path())).0;
    let json: serde_json::Value = serde_json::from_str(&other).unwrap();
    assert_eq!(json["scenarios"][0]["modes"][1]["mode"], "slo-isolated");
}

#[test]
fn results_are_kept_and_replayed_and_reported() {
    let folder = folder();
    let output = ebb(
        &["sim", "sweep", "short.toml", "--policy", "switch", "--load", "0.1,0.3", "--out", "kept"],
        folder.path(),
    );
    assert!(output.status.success(), "{}", said(&output).1);
    let page = fs::read_to_string(folder.path().join("kept/report.html")).unwrap();
    assert!(page.contains("at load 0.3") && page.contains("simulated"), "the report names what was played");
    assert!(ebb(&["lab", "report", "kept", "--out", "again.html"], folder.path()).status.success());
    let output = ebb(&["policy", "diff", "switch", "mps-priority", "--trace", "kept"], folder.path());
    let (out, error) = said(&output);
    assert!(output.status.success(), "{error}");
    assert!(out.contains("iterations/s") && out.contains("points"), "{out}");
}

#[test]
fn a_fleet_is_counted() {
    let folder = folder();
    let small = [
        "sim",
        "fleet",
        "--services",
        "20",
        "--jobs",
        "10",
        "--policy",
        "switch",
        "--slo",
        "2",
        "--placements",
    ];
    let (out, error) = said(&ebb(&small, folder.path()));
    let answer = out.lines().find(|line| line.contains("switch") && line.contains("2x alone"));
    let figures: Vec<&str> = answer.unwrap_or_else(|| panic!("{out}{error}")).split_whitespace().collect();
    let gpus: u32 = figures[3].parse().unwrap();
    assert!(gpus < 30 && figures[4] == "30", "{out}");
    assert!(out.contains(" with "), "{out}");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let folder = folder();
    let told = |arguments: &[&str]| {
        let output = ebb(arguments, folder.path());
        assert!(!output.status.success());
        said(&output).1
    };
    fs::write(folder.path().join("wrong.toml"), SCENARIO.replace("rate = 150", "rate = -1")).unwrap();
    assert!(told(&["sim", "wrong.toml"]).contains("wrong.toml:12: "));
    fs::write(folder.path().join("fleet.toml"), "schema = 1\nslo = [0.5]\n").unwrap();
    assert!(told(&["sim", "fleet", "fleet.toml"]).contains("fleet.toml:2: slo is a list of multiples"));
    assert!(
        told(&["sim", "short.toml", "--policy", "greedy"])
            .contains("`greedy` is no policy; known are strict")
    );
    assert!(told(&["sim", "short.toml", "--set", "quiet=soon"]).contains("--set quiet=soon"));
    assert!(told(&["sim"]).contains("SCENARIO"));
    assert!(told(&["policy", "diff", "slo", "slo", "--trace", "nowhere"]).contains("nothing to compare"));
    assert!(told(&["policy", "diff", "slo", "strict", "--trace", "nowhere"]).contains("nowhere"));
}
