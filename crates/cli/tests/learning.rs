//! What tenants learn of their kernels, from one run to the next.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::json::{self, Value};
use common::{errors, private_folder, tenant, text};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        common::products();
        Place(private_folder())
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("profiles")
    }

    fn ebb(&self, words: &[&str]) -> Command {
        let mut command = common::ebb(self.0.path());
        command.args(words).env("EBB_PROFILES", self.folder()).env("EBB_GUARD_CACHE", "off");
        command
    }

    /// Runs the program with every launch guarded, and what is set here; what the report says.
    fn run(&self, variables: &[(&str, &str)]) -> Value {
        let report = self.0.path().join("report.json");
        let option = format!("--report=json:{}", report.display());
        let mut command = self.ebb(&["run", "--device", "soft", "--no-daemon", &option]);
        command.arg("--").args(tenant("0.3")).env("EBB_GUARD", "now").envs(variables.iter().copied());
        text(&command.output().unwrap());
        json::parse(&fs::read_to_string(report).unwrap())
    }

    /// All that is known of kernels.
    fn known(&self) -> Vec<Value> {
        let kept = json::parse(&text(&self.ebb(&["profile", "list", "-o", "json"]).output().unwrap()));
        kept["platforms"].items().iter().flat_map(|platform| platform["kernels"].items().to_vec()).collect()
    }

    /// What is known of the one kernel when it was launched in that way. There may be more: on a busy machine a launch that would be
    /// guarded is held instead.
    fn only(&self, rung: &str) -> Value {
        let known = self.known();
        assert!(known.iter().all(|record| record["name"] == known[0]["name"]), "{known:?}");
        let meant: Vec<&Value> = known.iter().filter(|record| record["rung"].text() == rung).collect();
        assert_eq!(meant.len(), 1, "{known:?}");
        meant[0].clone()
    }

    /// Its launches, in whichever way.
    fn launches(&self) -> i128 {
        self.known().iter().map(|record| record["launches"].number()).sum()
    }

    fn file(&self) -> PathBuf {
        let files = fs::read_dir(self.folder()).unwrap().map(|entry| entry.unwrap().path());
        { files }.find(|path| is_profile(path)).unwrap()
    }
}

fn is_profile(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "profile")
}

#[test]
fn what_one_run_has_learned_the_next_one_knows_and_adds_to() {
    let place = Place::new();
    let first = place.run(&[]);
    let (known, launches) = (place.only("guard"), place.launches());
    assert_eq!(known["name"].text(), first["kernels"].items()[0]["name"].text());
    assert_eq!(launches, first["kernels"].items()[0]["launches"].number());
    let timed = known["duration"]["seen"].number();
    assert!((1..=known["launches"].number()).contains(&timed), "{known:?}");
    assert!(known["block_time"]["p50_ns"].number() > 0 && known["certificate_ns"].number() > 20_000);

    // Nothing is timed, so whatever is promised was known before.
    let second = place.run(&[("EBB_SAMPLE", "0")]);
    let kernel = &second["kernels"].items()[0];
    assert_eq!((kernel["samples"].number(), kernel["guarded"].number() > 0), (0, true));
    assert_eq!(kernel["certificate_ns"].number(), known["certificate_ns"].number());
    assert_eq!(place.launches(), launches);
    let stranger = place.run(&[("EBB_SAMPLE", "0"), ("EBB_PROFILES", "off")]);
    assert_eq!(stranger["kernels"].items()[0]["certificate_ns"], Value::Null);

    let third = place.run(&[]);
    let more = third["kernels"].items()[0]["launches"].number();
    assert_eq!(place.launches(), launches + more);
    assert!(place.only("guard")["duration"]["seen"].number() > timed);
}

#[test]
fn programs_that_nobody_guards_are_timed_on_demand() {
    let place = Place::new();
    place.run(&[("EBB_GUARD", "off")]);
    assert!(place.known().is_empty());
    let report = place.run(&[("EBB_GUARD", "off"), ("EBB_SAMPLE", "1")]);
    let known = place.only("none");
    assert_eq!(known["launches"].number(), report["kernels"].items()[0]["launches"].number());
}

#[test]
fn a_profile_that_is_no_good_is_set_aside_by_the_first_who_meets_it() {
    let place = Place::new();
    place.run(&[]);
    fs::write(place.file(), [0x55; 300_000]).unwrap();
    const NOTE: &str = "profile_set_aside";
    let noted = |report: Value| {
        let notes = |process: &Value| process["notes"].items().iter().any(|note| note.text() == NOTE);
        report["processes"].items().iter().any(notes)
    };
    assert!(noted(place.run(&[])));
    assert!(place.launches() > 0, "learned anew");
    assert!(!noted(place.run(&[])), "said once");
    let aside = fs::read_dir(place.folder()).unwrap().flatten();
    assert_eq!(aside.filter(|entry| !is_profile(&entry.path()) && entry.file_name() != "lock").count(), 1);
}

#[test]
fn whoever_is_killed_leaves_what_it_had_written_down() {
    let place = Place::new();
    let mut command = place.ebb(&["run", "--device", "soft", "--no-daemon"]);
    command.arg("--").args(tenant("60")).env("EBB_GUARD", "now").stdin(Stdio::null()).stdout(Stdio::null());
    // Several, so that somebody may be killed in the middle of writing.
    let mut running: Vec<_> = (0..3).map(|_| command.spawn().unwrap()).collect();
    let until = Instant::now() + Duration::from_secs(50);
    while place.known().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    for child in &mut running {
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success(), "it did not end by itself");
    }
    let listed = place.ebb(&["profile", "list"]).output().unwrap();
    assert_eq!(errors(&listed), "");
    let before = place.launches();
    assert!(before > 0);
    let report = place.run(&[]);
    let more = report["kernels"].items()[0]["launches"].number();
    assert_eq!(place.launches(), before + more);
}
