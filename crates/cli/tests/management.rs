//! What NVIDIA's management library says of memory, to a program under `ebb run`.
//!
//! The library is a small one of ours with numbers of its own, found as NVIDIA's would be.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use common::runtime::Runtime;
use common::{compiled, errors, private_folder, text};

const NAME: &str = "libnvidia-ml.so.1";

struct Site {
    runtime: Runtime,
    folder: tempfile::TempDir,
    program: PathBuf,
    uuid: String,
}

impl Site {
    /// `None` where there is no compiler.
    fn new() -> Option<Site> {
        let (runtime, folder) = (Runtime::new(), private_folder());
        let program = compiled(folder.path(), "sizes.c", &["-pthread"], "sizes")?;
        compiled(folder.path(), "card.c", &["-shared", "-fPIC"], NAME)?;
        std::os::unix::fs::symlink(NAME, folder.path().join("libnvidia-ml.so")).unwrap();
        let mut site = Site { runtime, folder, program, uuid: String::new() };
        site.uuid = text(&site.run(&["--no-daemon"], &[NAME, "uuid"], &[])).trim().to_owned();
        Some(site)
    }

    fn run(&self, options: &[&str], words: &[&str], variables: &[(&str, &str)]) -> Output {
        self.run_by(self.runtime.command(), options, words, variables)
    }

    fn run_by(
        &self,
        mut ebb: Command,
        options: &[&str],
        words: &[&str],
        variables: &[(&str, &str)],
    ) -> Output {
        ebb.args(["run", "--device", "soft"]).args(options).arg("--").arg(&self.program).args(words);
        ebb.env("LD_LIBRARY_PATH", self.folder.path()).env("FAKE_NVML_UUID", &self.uuid);
        ebb.envs(variables.iter().copied()).output().unwrap()
    }

    fn says(&self, options: &[&str], variables: &[(&str, &str)]) -> Said {
        Said(text(&self.run(options, &[NAME], variables)))
    }
}

/// What the program printed.
struct Said(String);

impl Said {
    /// Each thing that it said about this.
    fn all(&self, about: &str) -> Vec<&str> {
        let said = self.0.lines().filter_map(|line| line.strip_prefix(about)?.strip_prefix(' '));
        said.collect()
    }

    fn of(&self, about: &str) -> &str {
        match self.all(about)[..] {
            [said] => said,
            _ => panic!("nothing about {about} in:\n{}", self.0),
        }
    }

    fn is(&self, about: &str, expected: &str) {
        assert_eq!(self.of(about), expected, "{about} in:\n{}", self.0);
    }
}

#[test]
fn a_limit_is_what_nvml_shows_before_and_while_cuda_is_used() {
    let Some(site) = Site::new() else { return };
    for options in [&["--mem", "1Gi"][..], &["--mem", "1Gi", "--no-daemon"]] {
        let said = site.says(options, &[]);
        for (when, total, free, used) in [
            ("before", 1024, 1024, 0),
            ("begun", 1024, 1024, 0),
            ("after", 1024, 724, 300),
            ("freed", 1024, 1024, 0),
        ] {
            said.is(when, &format!("{total} {free} {used}"));
            said.is(&format!("{when}, versioned"), &format!("{total} 0 {free} {used}"));
        }
        said.is("cuda", "1024 724");
    }
}

#[test]
fn all_else_reaches_the_real_library_as_it_was_called() {
    let Some(site) = Site::new() else { return };
    let said = site.says(&["--mem", "1Gi"], &[]);
    assert!(said.of("path").ends_with("/nvml/libnvidia-ml.so.1"), "{}", said.0);
    // Eight threads find the library behind on their way, all at once; the ninth time it is known.
    assert_eq!(said.all("many"), ["4711"; 9]);
    said.is("init", "0");
    said.is("text", "as well as can be");
    // What the real library lacks is answered in NVML's words.
    said.is("lacking", "13");
}

#[test]
fn without_a_limit_nothing_of_it_is_in_the_process() {
    let Some(site) = Site::new() else { return };
    for (options, variables) in [
        (&[][..], &[][..]),
        (&["--mem", "none"], &[("CUDA_DEVICE_MEMORY_LIMIT", "1g")]),
        (&["--no-daemon"], &[("EBB_MEM_LIMIT", "0")]),
    ] {
        let said = site.says(options, variables);
        assert_eq!(said.of("path"), site.folder.path().join(NAME).to_str().unwrap());
        said.is("lacking", "-1");
        for when in ["before", "begun", "after", "freed"] {
            said.is(when, "16384 15000 1384");
            said.is(&format!("{when}, versioned"), "16384 384 15000 1000");
        }
    }
}

#[test]
fn what_schedulers_say_is_shown_too() {
    const ALL: (&str, &str) = ("CUDA_DEVICE_MEMORY_LIMIT", "2027m");
    const FIRST: (&str, &str) = ("CUDA_DEVICE_MEMORY_LIMIT_0", "1g");
    let Some(site) = Site::new() else { return };
    for (variables, total) in [(&[ALL][..], 2027), (&[ALL, FIRST], 1024), (&[FIRST], 1024)] {
        let said = site.says(&["--no-daemon"], variables);
        said.is("before", &format!("{total} {total} 0"));
        said.is("after", &format!("{total} {} 300", total - 300));
    }
}

#[test]
fn a_limit_is_never_shown_as_more_than_the_card_has() {
    let Some(site) = Site::new() else { return };
    let said = site.says(&["--mem", "1Ti"], &[]);
    said.is("before", "16384 15000 1384");
    said.is("before, versioned", "16384 0 15000 1384");
}

#[test]
fn a_gpu_that_cuda_does_not_have_is_shown_with_what_holds_for_all() {
    let Some(site) = Site::new() else { return };
    let other = ("FAKE_NVML_UUID", "GPU-00000000-1111-2222-3333-444444444444");
    let said = site.says(&["--mem", "1Gi"], &[other]);
    ["before", "begun", "after"].iter().for_each(|when| said.is(when, "1024 1024 0"));
    let said = site.says(&["--mem", "1Gi"], &[("FAKE_NVML_UUID", "nonsense")]);
    ["before", "begun", "after"].iter().for_each(|when| said.is(when, "16384 15000 1384"));
}

#[test]
fn the_name_without_a_version_is_the_same_library() {
    let Some(site) = Site::new() else { return };
    let said = Said(text(&site.run(&["--mem", "1Gi"], &["libnvidia-ml.so"], &[])));
    assert!(said.of("path").ends_with("/nvml/libnvidia-ml.so.1"), "{}", said.0);
    said.is("before", "1024 1024 0");
}

#[test]
fn both_names_are_answered_where_a_package_has_put_them() {
    let Some(site) = Site::new() else { return };
    // The second has a character in its path that the loader takes for the end of one.
    for root in ["prefix", "pre:fix"].map(|root| site.folder.path().join(root)) {
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_ebb"), root.join("bin/ebb")).unwrap();
        for (product, name) in [
            ("shim", "libcuda.so.1"),
            ("softcuda", "libcuda.so.1"),
            ("nvml", NAME),
            ("nvml", "libnvidia-ml.so"),
        ] {
            let place = root.join("lib/ebb").join(product);
            fs::create_dir_all(&place).unwrap();
            fs::copy(common::products().join(format!("lib{product}.so")), place.join(name)).unwrap();
        }
        for name in [NAME, "libnvidia-ml.so"] {
            let ebb = common::installed(&root.join("bin/ebb"), site.runtime.path());
            let said = Said(text(&site.run_by(ebb, &["--mem", "1Gi", "--no-daemon"], &[name], &[])));
            assert!(!said.of("path").ends_with(site.folder.path().join(NAME).to_str().unwrap()));
            said.is("before", "1024 1024 0");
            said.is("after", "1024 724 300");
        }
    }
}

#[test]
fn where_there_is_no_real_library_nvml_says_so() {
    let Some(site) = Site::new() else { return };
    fs::remove_file(site.folder.path().join(NAME)).unwrap();
    let said = site.says(&["--mem", "1Gi"], &[]);
    if said.of("init") != "12" {
        println!("skipped: this machine has a library of its own");
        return;
    }
    said.is("lacking", "12");
    assert!(said.of("text").contains("was not found"), "{}", said.0);
}

#[test]
fn where_ours_is_missing_the_command_runs_and_sees_the_card() {
    let Some(site) = Site::new() else { return };
    let place = site.folder.path().join("bin");
    fs::create_dir_all(&place).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_ebb"), place.join("ebb")).unwrap();
    for product in ["shim", "softcuda"] {
        std::os::unix::fs::symlink(common::products().join(product), place.join(product)).unwrap();
    }
    for (option, remarks) in [("--no-daemon", 1), ("--quiet", 0)] {
        let ebb = common::installed(&place.join("ebb"), site.runtime.path());
        let output = site.run_by(ebb, &["--mem", "1Gi", option], &[NAME], &[]);
        assert_eq!(errors(&output).matches("NVML will show the whole card").count(), remarks);
        let said = Said(text(&output));
        said.is("after", "16384 15000 1384");
        said.is("cuda", "1024 724");
    }
}
