//! The configuration as people and their scripts meet it: `ebb policy check`, `apply`, `show`, `diff FILE`.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use common::runtime::PATIENCE;
use common::{ebb, errors, json, private_folder, text};

/// A folder with nobody in it. No GPU is needed here, so neither is what `ebb run` preloads.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(private_folder())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn ebb(&self, words: &[&str]) -> std::process::Output {
        ebb(self.path()).args(words).output().unwrap()
    }
}

/// A daemon of one's own, with `text` as its configuration.
struct Site {
    runtime: Place,
    daemon: Child,
}

impl Site {
    fn new(text: &str, options: &[&str]) -> Site {
        let runtime = Place::new();
        fs::create_dir(runtime.path().join("ebb")).unwrap();
        fs::write(runtime.path().join("ebb/ebb.toml"), format!("schema_version = 1\n{text}")).unwrap();
        let mut command = ebb(runtime.path());
        let daemon = command.arg("daemon").args(options).stderr(Stdio::null()).spawn().unwrap();
        let site = Site { runtime, daemon };
        let begun = std::time::Instant::now();
        while !site.runtime.ebb(&["status"]).status.success() {
            assert!(begun.elapsed() < PATIENCE, "the daemon does not come up");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        site
    }

    fn file(&self, text: &str) -> PathBuf {
        let path = self.runtime.path().join("new.toml");
        fs::write(&path, text).unwrap();
        path
    }

    fn policy(&self, verb: &str, file: &Path) -> std::process::Output {
        self.runtime.ebb(&["policy", verb, file.to_str().unwrap()])
    }

    fn applied(&self) -> PathBuf {
        self.runtime.path().join("ebb/conf.d/50-apply.toml")
    }

    fn generation(&self) -> i128 {
        let report = json::parse(&text(&self.runtime.ebb(&["status", "-o", "json"])));
        report["daemon"]["config_generation"].number()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

#[test]
fn a_check_says_every_mistake_with_file_and_line() {
    let runtime = Place::new();
    let folder = runtime.path().join("etc");
    fs::create_dir_all(folder.join("conf.d")).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("ebb.toml", "schema_version = 1\n[token]\nquantum = \"40ms\"\n");
    write("conf.d/10-a.toml", "schema_version = 1\n[token]\nquantun = \"1ms\"\nidle = 3\n");
    write("conf.d/20-b.toml", "[policy]\nkind = \"greedy\"\n");
    let check = |what: &Path, more: &[&str]| {
        runtime.ebb(&[&["policy", "check", what.to_str().unwrap()], more].concat())
    };
    let output = check(&folder, &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    let lines: Vec<_> = said.lines().map(|line| line.rsplit_once("etc/").unwrap().1).collect();
    assert!(lines[0].starts_with("conf.d/10-a.toml:3: unknown key `token.quantun`"), "{said}");
    assert!(lines[1].starts_with("conf.d/10-a.toml:4: this should be a time"), "{said}");
    assert!(lines[2].starts_with("conf.d/20-b.toml:1: schema_version is missing"), "{said}");
    assert!(lines[3].starts_with("conf.d/20-b.toml:2: `greedy` is not one of"), "{said}");
    assert!(lines.len() == 4 && errors(&output).contains("4 mistakes"), "{said}");
    let found = check(&folder, &["-o", "json"]);
    let found = json::parse(&String::from_utf8(found.stdout).unwrap());
    assert_eq!((found["mistakes"].items().len(), found["mistakes"].items()[1]["line"].number()), (4, 4));
    // One file by itself, a folder of files, and nothing at all.
    assert!(text(&check(&folder.join("ebb.toml"), &[])).ends_with("ebb.toml: right\n"));
    assert_eq!(check(&folder.join("conf.d"), &[]).status.code(), Some(1));
    assert_eq!(check(&folder.join("none.toml"), &[]).status.code(), Some(1));
    assert_eq!(text(&runtime.ebb(&["policy", "check"])), "there is no file, and so no mistake\n");
    assert_eq!(runtime.ebb(&["policy", "check", "--loudly"]).status.code(), Some(2));
}

#[test]
fn a_file_is_applied_and_a_wrong_one_changes_nothing() {
    let site = Site::new("[token]\nquantum = \"40ms\"\n", &[]);
    let good = site.file("schema_version = 1\n[token]\nquantum = \"30ms\"\n[policy]\nkind = \"fair\"\n");
    let diff = text(&site.policy("diff", &good));
    assert!(
        diff.contains("policy.kind    not said  fair") && diff.contains("token.quantum  40 ms     30 ms"),
        "{diff}"
    );
    assert_eq!((site.generation(), site.applied().exists()), (1, false), "it was only looked at");
    let said = text(&site.policy("apply", &good));
    assert!(said.starts_with("configuration 2 is in force, with "), "{said}");
    assert_eq!(fs::metadata(site.applied()).unwrap().permissions().mode() & 0o777, 0o644);
    assert!(text(&site.policy("apply", &good)).contains("configuration 2 stays in force"));
    assert_eq!(text(&site.policy("diff", &good)), "it changes nothing\n");
    let before = fs::read(site.applied()).unwrap();
    let bad = site.file("schema_version = 1\n[token]\nquantum = \"30\"\nidel = \"1ms\"\n");
    for verb in ["apply", "diff"] {
        let output = site.policy(verb, &bad);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(said.contains("new.toml:3: ") && said.contains("new.toml:4: unknown key"), "{said}");
    }
    assert_eq!((fs::read(site.applied()).unwrap(), site.generation()), (before, 2));
    let left: Vec<_> = fs::read_dir(site.applied().parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing else is left behind: {left:?}");
    let shown = text(&site.runtime.ebb(&["policy", "show"]));
    assert!(shown.starts_with("configuration 2\n"), "{shown}");
    let line = |key: &str| shown.lines().find(|line| line.trim_start().starts_with(key)).unwrap().to_owned();
    assert!(line("token.quantum").ends_with("50-apply.toml:3"), "{shown}");
    assert!(line("token.grace").ends_with("default"), "{shown}");
    let status = text(&site.runtime.ebb(&["status"]));
    assert!(status.lines().nth(1).unwrap().starts_with("configuration 2, read "), "{status}");
}

#[test]
fn what_was_said_at_the_start_stays_above_the_files_and_a_flag_above_the_environment() {
    let site = Site::new("[policy]\nkind = \"fair\"\n", &["--policy", "strict"]);
    let shown = text(&site.runtime.ebb(&["policy", "show"]));
    assert!(shown.lines().any(|line| line.contains("policy.kind") && line.ends_with("--policy")), "{shown}");
    let gaps = site.file("schema_version = 1\n[policy]\nkind = \"gaps\"\n");
    assert_eq!(text(&site.policy("diff", &gaps)), "it changes nothing\n");
    // The environment is above the files, and below a flag.
    let folder = private_folder();
    fs::write(folder.path().join("other.toml"), "schema_version = 2\n").unwrap();
    let refused = |options: &[&str]| {
        let mut command = ebb(folder.path());
        command.env("EBB_DAEMON_CONFIG", folder.path().join("other.toml"));
        errors(&command.arg("daemon").args(options).output().unwrap())
    };
    assert!(refused(&[]).contains("other.toml:1: schema_version is 2"));
    let flag = refused(&["--config", "no-such.toml"]);
    assert!(flag.contains("no-such.toml") && !flag.contains("other.toml"), "{flag}");
}

#[test]
fn without_a_daemon_nothing_is_applied() {
    let runtime = Place::new();
    let file = runtime.path().join("new.toml");
    fs::write(&file, "schema_version = 1\n").unwrap();
    for words in [&["policy", "apply", file.to_str().unwrap()][..], &["policy", "show"]] {
        let output = runtime.ebb(words);
        assert_eq!(output.status.code(), Some(1));
        assert!(errors(&output).contains("no daemon answers"), "{}", errors(&output));
    }
}

#[test]
fn two_policies_still_need_a_trace() {
    let runtime = Place::new();
    let output = runtime.ebb(&["policy", "diff", "strict", "slo"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("--trace"), "{}", errors(&output));
}
