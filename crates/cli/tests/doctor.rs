//! `ebb doctor` in made-up installations.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};

/// An installation of ebb of its own, with a runtime folder.
struct Installation {
    root: tempfile::TempDir,
}

impl Installation {
    /// `ebb` and the libraries of these products, as links.
    fn new(products: &[&str]) -> Installation {
        let root = common::private_folder();
        let ebb = root.path().join("ebb");
        let built = env!("CARGO_BIN_EXE_ebb");
        fs::hard_link(built, &ebb).or_else(|_| fs::copy(built, &ebb).map(drop)).unwrap();
        for product in products {
            let folder = root.path().join(product);
            fs::create_dir(&folder).unwrap();
            symlink(common::products().join(format!("lib{product}.so")), folder.join("libcuda.so.1"))
                .unwrap();
        }
        Installation { root }
    }

    fn doctor(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
        let at = |name| self.root.path().join(name);
        let mut command = common::installed(&at("ebb"), &at("runtime"));
        command.arg("doctor").args(arguments);
        command.envs(settings.iter().copied()).output().unwrap()
    }
}

fn text(output: &Output) -> String {
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The line of a check and the one below.
fn line<'a>(text: &'a str, status: &str, name: &str) -> (&'a str, &'a str) {
    let mut lines = text.lines();
    let found = lines.find(|line| line.split_whitespace().take(2).eq([status, name]));
    (
        found.unwrap_or_else(|| panic!("no line `{status} {name}` in\n{text}")),
        lines.next().unwrap_or_default(),
    )
}

#[test]
fn on_the_software_gpu_all_is_well() {
    let installation = Installation::new(&["shim", "softcuda"]);
    let output = installation.doctor(&["--device", "soft", "--", "sh", "-c", "true"], &[]);
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    for name in ["shim", "driver", "answers", "version", "gpu", "exports", "folder", "preload", "command"] {
        line(&text, "ok", name);
    }
    let (preload, _) = line(&text, "ok", "preload");
    assert!(preload.contains("softcuda"), "{preload}");
    let left = fs::read_dir(installation.root.path().join("runtime")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    // The card stays for whoever comes next, as after every program.
    let left: Vec<_> =
        left.iter().filter(|name| !name.to_string_lossy().starts_with("softgpu-default.")).collect();
    assert!(left.is_empty(), "{left:?} was left behind");
}

#[test]
fn without_a_driver_it_says_so_and_fails() {
    let installation = Installation::new(&["shim"]);
    let output = installation.doctor(&["--driver", "/nowhere/libcuda.so.1"], &[]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let (driver, fix) = line(&text, "failed", "driver");
    assert!(driver.contains("there is no file /nowhere/libcuda.so.1") && fix.contains("fix: "), "{text}");
    // The shim still gets into programs, and tells them that there is no GPU.
    line(&text, "ok", "preload");
}

/// A driver in C with the functions that are asked for, of which `cuInit` is given.
fn driver_in_c(installation: &Installation, init: &str) -> Option<PathBuf> {
    let at = |name| installation.root.path().join(name);
    let functions = ["cuGetErrorName", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGetName"];
    let functions = functions.into_iter().chain(["cuDeviceTotalMem_v2", "cuDeviceGetAttribute"]);
    let mut text = format!("int cuInit(unsigned flags) {{ {init} }}\n");
    text.extend(functions.map(|name| format!("int {name}(void) {{ return 999; }}\n")));
    fs::write(at("driver.c"), text).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(at("driver.so")).arg(at("driver.c"));
    let compiled = compiler.status().is_ok_and(|status| status.success());
    if !compiled {
        eprintln!("skipped: there is no C compiler");
    }
    compiled.then(|| at("driver.so"))
}

#[test]
fn a_driver_that_refuses_everything_or_crashes_is_one_failed_line() {
    let refuses = ("return 999;", "cuInit answers an unknown error (999)", "ok");
    let crashes = ("__builtin_trap();", "crashed with signal", "warning");
    for (init, sentence, preload) in [refuses, crashes] {
        let installation = Installation::new(&["shim"]);
        let Some(driver) = driver_in_c(&installation, init) else { return };
        let output = installation.doctor(&["--driver", driver.to_str().unwrap()], &[]);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        let (answers, fix) = line(&text, "failed", "answers");
        assert!(answers.contains(sentence) && fix.contains("fix: "), "{text}");
        line(&text, preload, "preload");
    }
}

#[test]
fn a_driver_that_is_no_library_is_named() {
    let installation = Installation::new(&["shim"]);
    let file = installation.root.path().join("libcuda.so.1");
    fs::write(&file, "INPUT(libcuda.so)").unwrap();
    let text = text(&installation.doctor(&[], &[("EBB_DRIVER", file.to_str().unwrap())]));
    let (driver, _) = line(&text, "failed", "driver");
    assert!(driver.contains("ELF"), "{driver}");
}

#[test]
fn the_shim_is_never_taken_for_the_driver() {
    let installation = Installation::new(&["shim", "softcuda"]);
    let at = |product| installation.root.path().join(product).join("libcuda.so.1");
    let text_of = |output| text(&output);
    let named = text_of(installation.doctor(&["--driver", at("shim").to_str().unwrap()], &[]));
    assert!(line(&named, "failed", "driver").0.contains("is ebb's own library"), "{named}");
    let folders = ["shim", "softcuda"].map(|product| at(product).parent().unwrap().display().to_string());
    let found = text_of(installation.doctor(&[], &[("LD_LIBRARY_PATH", &folders.join(":"))]));
    assert!(
        line(&found, "ok", "driver").0.contains("softcuda/libcuda.so.1 through LD_LIBRARY_PATH"),
        "{found}"
    );
    assert!(line(&found, "ok", "preload").0.contains("softcuda/libcuda.so.1"), "{found}");
}

#[test]
fn an_installation_without_the_shim_is_told_where_it_should_be() {
    let installation = Installation::new(&["softcuda"]);
    let output = installation.doctor(&["--device", "soft"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = text(&output);
    assert!(line(&text, "failed", "shim").0.contains("shim/libcuda.so.1"), "{text}");
}

#[test]
fn another_library_in_the_shims_place_is_known() {
    let installation = Installation::new(&["softcuda"]);
    let place = installation.root.path().join("shim");
    fs::create_dir(&place).unwrap();
    symlink(common::products().join("libsoftcuda.so"), place.join("libcuda.so.1")).unwrap();
    let text = text(&installation.doctor(&["--device", "soft"], &[]));
    assert!(line(&text, "failed", "shim").0.contains("is not ebb's library"), "{text}");
}

#[test]
fn a_folder_that_cannot_be_used_fails() {
    let installation = Installation::new(&["shim", "softcuda"]);
    let file = installation.root.path().join("file");
    fs::write(&file, "").unwrap();
    let settings = [("EBB_RUNTIME_DIR", file.to_str().unwrap())];
    let output = installation.doctor(&["--device", "soft"], &settings);
    assert_eq!(output.status.code(), Some(1));
    let text = text(&output);
    assert!(line(&text, "failed", "folder").1.contains("EBB_RUNTIME_DIR"), "{text}");
}

#[test]
fn warnings_fail_only_where_it_is_strict() {
    let installation = Installation::new(&["shim", "softcuda"]);
    let settings = [("EBB_DISABLE", "1")];
    let output = installation.doctor(&["--device", "soft"], &settings);
    assert!(output.status.success(), "{}", text(&output));
    line(&text(&output), "warning", "preload");
    let strict = installation.doctor(&["--device", "soft", "--strict"], &settings);
    assert_eq!(strict.status.code(), Some(1));
}

#[test]
fn json_carries_the_same_list() {
    let installation = Installation::new(&["shim", "softcuda"]);
    let output = installation.doctor(&["--device", "soft", "-o", "json", "--", "no-such-command"], &[]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("{\"ok\":false,\"checks\":[{\"name\":\"shim\",\"status\":\"ok\","), "{text}");
    assert!(
        text.contains(
            "{\"name\":\"command\",\"status\":\"failed\",\"found\":\"there is no command no-such-command"
        ),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
}
