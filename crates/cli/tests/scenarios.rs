//! `ebb lab list` and `ebb lab check`, as a user meets them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn lab(arguments: &[&str], folder: &Path) -> Output {
    let ebb = env!("CARGO_BIN_EXE_ebb");
    Command::new(ebb).arg("lab").args(arguments).current_dir(folder).output().expect("it starts")
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it speaks UTF-8");
    (text(&output.stdout), text(&output.stderr))
}

const RIGHT: &str = r#"
schema = 1
title = "a grid by itself"
duration = "1s"

[[tenant]]
name = "grids"
class = "best-effort"
workload = { model = "grid", blocks = 132, block = "1ms" }
"#;

#[test]
fn suites_are_listed_with_what_they_take() {
    let folder = tempfile::tempdir().unwrap();
    let output = lab(&["list"], folder.path());
    assert!(output.status.success());
    let (out, _) = said(&output);
    assert!(out.lines().any(|line| line.starts_with("disb-a ") && line.contains("  2  ")), "{out}");
    let (out, _) = said(&lab(&["list", "disb-a", "--device", "soft"], folder.path()));
    assert!(out.contains("vgg19-inference-eager-b1, uniform 10/s"), "{out}");
    assert!(out.contains("modes: alone, timeslice, mps, mps-priority, streams, ebb-isolated"), "{out}");
    let (out, _) = said(&lab(&["list", "micro", "--workloads"], folder.path()));
    assert!(out.lines().any(|line| line == "grid-13200x100us"), "{out}");
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let folder = tempfile::tempdir().unwrap();
    let output = lab(&["list", "disb-x"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    let (_, error) = said(&output);
    assert!(error.contains("no suite called `disb-x`; known are disb-a, "), "{error}");
    let output = lab(&["list", "--device", "tpu"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    let (_, error) = said(&output);
    assert!(error.contains("`tpu` is not one of gpu, soft"), "{error}");
}

#[test]
fn every_mistake_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("right.toml", RIGHT);
    let output = lab(&["check", "right.toml", "."], folder.path());
    assert_eq!(said(&output), ("right.toml: 1 scenario\n.: 1 scenario\n".to_owned(), String::new()));
    assert!(output.status.success());

    write("wrong.toml", &RIGHT.replace("\"1ms\"", "\"1\"").replace("1s", "0s"));
    write("strange.toml", &RIGHT.replace("132", "0").replace("grids", "Grids"));
    let output = lab(&["check", "wrong.toml", "strange.toml", "none.toml", "right.toml"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    let (out, error) = said(&output);
    assert_eq!(out, "right.toml: 1 scenario\n");
    let told: Vec<_> = error.lines().collect();
    assert_eq!(told.len(), 4, "{error}");
    assert!(told[0].starts_with("wrong.toml:9: `1` is no time"), "{error}");
    assert!(told[1].starts_with("strange.toml:7: `Grids` is no name"), "{error}");
    assert!(told[2].starts_with("strange.toml:9: blocks is 0"), "{error}");
    assert!(told[3].starts_with("ebb: none.toml cannot be read"), "{error}");
}
