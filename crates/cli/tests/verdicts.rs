//! `ebb verdicts`, and what is kept about kernels from one run to the next.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::json::{self, Value};
use common::{errors, private_folder, tenant, text};

/// Folders of its own for all that `ebb` writes.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        common::products();
        let place = Place(private_folder());
        fs::create_dir(place.ledgers()).unwrap();
        place
    }

    fn runtime(&self) -> &Path {
        self.0.path()
    }

    fn ledgers(&self) -> PathBuf {
        self.runtime().join("ledgers")
    }

    fn cache(&self) -> PathBuf {
        self.runtime().join("cache")
    }

    fn ebb(&self, words: &[&str]) -> Command {
        let mut command = common::ebb(self.runtime());
        command.args(words).env("EBB_GUARD_CACHE", self.cache());
        command
    }

    /// A tenant that launches one kernel again and again, every launch guarded if it can be; the kernel in the report.
    fn kernel(&self) -> Value {
        self.kernel_of(|command| command.arg("--").args(tenant("0.3")).env("EBB_GUARD", "now"))
    }

    /// The kernel in the report of a run whose last words and variables are added here.
    fn kernel_of(&self, add: impl FnOnce(&mut Command) -> &mut Command) -> Value {
        let report = self.runtime().join("report.json");
        let option = format!("--report=json:{}", report.display());
        let mut command = self.ebb(&["run", "--device", "soft", "--no-daemon", &option]);
        text(&add(&mut command).output().unwrap());
        let report = json::parse(&fs::read_to_string(report).unwrap());
        report["kernels"].items()[0].clone()
    }

    fn twins(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.cache()).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|end| end == "twin")).collect()
    }
}

#[test]
fn a_kernel_has_a_verdict_and_its_twin_is_kept_until_it_is_forgotten() {
    let place = Place::new();
    for _ in 0..2 {
        let kernel = place.kernel();
        assert_eq!(kernel["verdict"].text(), "guard");
        assert!(kernel["guarded"].number() > 0);
        assert!(kernel["guarded"].number() <= kernel["launches"].number());
        assert_eq!(place.twins().len(), 1, "the second run finds what the first has made");
    }
    let said = text(&place.ebb(&["verdicts", "--forget"]).output().unwrap());
    assert!(said.starts_with("1 file forgotten"), "{said}");
    assert!(place.twins().is_empty());
}

#[test]
fn what_was_found_out_the_hard_way_is_remembered() {
    let place = Place::new();
    let name = place.kernel()["name"].text().to_owned();
    let twin = place.twins().remove(0);
    let key = twin.file_name().unwrap().to_str().unwrap().split('-').next().unwrap().to_owned();
    let line = format!("{key} waits-for-others 1763222400 {name}\n");
    fs::write(place.cache().join("demotions"), line).unwrap();
    let kernel = place.kernel();
    assert_eq!((kernel["verdict"].text(), kernel["reason"].text()), ("refuse", "waits-for-others"));
    assert_eq!(kernel["guarded"].number(), 0);
}

#[test]
fn with_verify_a_kernel_is_held_against_its_original() {
    let place = Place::new();
    let kernel = place.kernel_of(|command| command.args(["--verify", "--"]).args(tenant("1")));
    assert_eq!((kernel["verdict"].text(), kernel["trial"].text()), ("guard", "verified"));
    assert!(kernel["trial_cuts"].number() > 0);
    assert!(kernel["guarded"].number() > 0, "what was verified is used");
}

#[test]
fn damaged_twins_are_made_again() {
    let place = Place::new();
    place.kernel();
    fs::write(&place.twins()[0], "ebbtwin2 and no more").unwrap();
    assert_eq!(place.kernel()["verdict"].text(), "guard");
    assert!(fs::metadata(&place.twins()[0]).unwrap().len() > 100);
}

#[test]
fn processes_that_have_ended_are_shown_on_demand() {
    let place = Place::new();
    let nothing = text(&place.ebb(&["verdicts"]).output().unwrap());
    assert!(nothing.starts_with("Nothing under ebb"), "{nothing}");

    let mut command = place.ebb(&["run", "--device", "soft", "--no-daemon", "--"]);
    command.args(tenant("0.3")).env("EBB_GUARD", "now").env("EBB_LEDGERS", place.ledgers());
    text(&command.output().unwrap());

    let nothing = text(&place.ebb(&["verdicts"]).output().unwrap());
    assert!(nothing.starts_with("Nothing under ebb"), "{nothing}");
    let page = text(&place.ebb(&["verdicts", "--all"]).output().unwrap());
    assert!(page.contains("(ended)") && page.contains("  guard  "), "{page}");

    let all = json::parse(&text(&place.ebb(&["verdicts", "--all", "--output", "json"]).output().unwrap()));
    let process = &all["processes"].items()[0];
    assert_eq!(process["totals"].items()[0]["verdict"].text(), "guard");
    let pid = process["pid"].number().to_string();
    assert_eq!(text(&place.ebb(&["verdicts", &pid]).output().unwrap()), page);

    let unknown = place.ebb(&["verdicts", "4194399"]).output().unwrap();
    assert!(!unknown.status.success());
    assert!(errors(&unknown).contains("has no ledger"), "{}", errors(&unknown));
}
