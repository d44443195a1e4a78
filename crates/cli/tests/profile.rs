//! `ebb profile`: what is kept of kernels, as a user meets it.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use common::{errors, json, private_folder, text};
use model::{Dim3, Geometry, Kernel, ModuleHash, Nanos, Rung};
use profile::{Batch, Platform, Record, Store};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(private_folder())
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("profiles")
    }

    /// Keeps that a kernel of this name was launched on a GPU of this name.
    fn learn(&self, gpu: &str, kernel: &str) {
        let geometry = Geometry { grid: Dim3::new(8, 1, 1), block: Dim3::new(32, 1, 1), shared_bytes: 0 };
        let kernel = Kernel { module: ModuleHash(1), name: kernel, geometry, rung: Rung::Guard };
        let duration = [Nanos::from_micros(20)].into_iter().collect();
        let mut batch = Batch::new();
        batch.add(&kernel, None, &Record { duration, launches: 3, ..Record::default() }).unwrap();
        Store::new(self.folder()).append(&Platform::new(gpu, "580.1", "0.1.0"), &batch).unwrap();
    }

    fn ebb(&self, words: &[&str]) -> Output {
        let mut command = common::ebb(self.0.path());
        command.arg("profile").args(words);
        command.env("EBB_PROFILES", self.folder()).env("EBB_GUARD_CACHE", self.0.path().join("guard"));
        command.output().unwrap()
    }

    fn complaint(&self, words: &[&str]) -> String {
        let output = self.ebb(words);
        assert!(!output.status.success() && output.stdout.is_empty(), "{words:?}");
        errors(&output)
    }
}

#[test]
fn what_was_learned_is_listed_shown_and_exported_until_it_is_cleared() {
    let place = Place::new();
    place.learn("NVIDIA H200", "gemm");
    place.learn("NVIDIA L4", "scan");
    let list = text(&place.ebb(&["list"]));
    assert!(
        list.contains("NVIDIA H200, driver 580.1, ebb 0.1.0: 1 kernel") && list.contains("scan"),
        "{list}"
    );
    let one = text(&place.ebb(&["list", "--gpu", "h200"]));
    assert!(one.contains("gemm") && !one.contains("scan"), "{one}");
    assert!(text(&place.ebb(&["show", "scan"])).contains("launches    3, 1 of them timed"));
    let export = json::parse(&text(&place.ebb(&["export"])));
    assert_eq!(export["platforms"].items()[0]["kernels"].items()[0]["launches"].number(), 3);
    let table = text(&place.ebb(&["export", "-o", "csv"]));
    let widths: Vec<_> = table.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(widths, [widths[0]; 3]);
    assert!(text(&place.ebb(&["clear", "--yes"])).starts_with("2 profiles thrown away in"));
    assert!(text(&place.ebb(&["list"])).starts_with("Nothing is known"));
    assert_eq!(json::parse(&text(&place.ebb(&["list", "-o", "json"])))["platforms"].items().len(), 0);
    assert!(text(&place.ebb(&["clear", "-y"])).starts_with("0 profiles"));
}

#[test]
fn nothing_is_cleared_unless_somebody_says_so() {
    let place = Place::new();
    place.learn("NVIDIA H200", "gemm");
    let complaint = place.complaint(&["clear"]);
    assert!(complaint.contains("--yes"), "{complaint}");
    assert!(text(&place.ebb(&["list"])).contains("gemm"));
}

#[test]
fn mistakes_are_answered_with_what_would_help() {
    let place = Place::new();
    place.learn("NVIDIA H200", "gemm");
    place.learn("NVIDIA H200", "gemm2");
    let none = place.complaint(&["show", "conv"]);
    assert!(none.contains("`conv`") && none.contains("`ebb profile list`"), "{none}");
    let several = place.complaint(&["show", "gem"]);
    assert!(several.contains("fits 2 kernels") && several.contains("gemm2"), "{several}");
    assert!(text(&place.ebb(&["show", "gemm"])).starts_with("gemm\n"), "a whole name fits itself");
    let other = place.complaint(&["list", "--gpu", "A100"]);
    assert!(other.contains("`A100`") && other.contains("NVIDIA H200"), "{other}");
    let mut off = common::ebb(place.0.path());
    let off = off.args(["profile", "list"]).env("EBB_PROFILES", "off").output().unwrap();
    assert!(!off.status.success() && errors(&off).contains("EBB_PROFILES is off"), "{}", errors(&off));
}

#[test]
fn a_profile_that_is_no_good_is_set_aside_and_said_once() {
    let place = Place::new();
    place.learn("NVIDIA H200", "gemm");
    place.learn("NVIDIA L4", "scan");
    let found = Store::new(place.folder()).platforms().unwrap();
    let damaged = &found[0].path;
    let mut bytes = fs::read(damaged).unwrap();
    bytes.resize(bytes.len() + (1 << 20), 0x55);
    fs::write(damaged, bytes).unwrap();
    let first = place.ebb(&["list"]);
    assert!(
        errors(&first).contains("most of it is damaged") && errors(&first).contains(".corrupt-1"),
        "{}",
        errors(&first)
    );
    assert!(text(&first).contains("scan") && !text(&first).contains("gemm"));
    let second = place.ebb(&["list"]);
    assert_eq!(errors(&second), "");
    assert!(text(&second).contains("scan"));
}

#[test]
fn what_the_guard_found_out_is_shown_beside_the_kernel() {
    let place = Place::new();
    place.learn("NVIDIA H200", "gemm");
    fs::create_dir(place.0.path().join("guard")).unwrap();
    let line = format!("{:032x} waits-for-others 1700000000 gemm\n", 5);
    fs::write(place.0.path().join("guard/demotions"), line).unwrap();
    let shown = text(&place.ebb(&["show", "gemm"]));
    assert!(shown.contains("found out by the guard") && shown.contains("waits-for-others"), "{shown}");
}
