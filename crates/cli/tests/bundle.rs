//! `ebb support-bundle`, on a machine with a daemon and a tenant.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use common::json;
use common::runtime::{Runtime, wait_for};
use common::{private_folder, text};

/// Makes a bundle, and gives its files and what was said.
fn bundle(runtime: &Runtime, options: &[&str]) -> (tempfile::TempDir, String) {
    let folder = private_folder();
    let file = folder.path().join("bundle.tar.gz");
    let mut command = runtime.command();
    command.args(["support-bundle", "--out"]).arg(&file).args(options);
    command.env("USER", "ada").env("HOME", runtime.path()).env("EBB_NAME", "hush");
    let said = text(&command.output().unwrap());
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(&file).arg("-C").arg(folder.path());
    assert!(unpack.status().unwrap().success());
    (folder, said)
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join("ebb-support").join(name)).unwrap()
}

#[test]
fn a_bundle_tells_of_the_machine_and_not_of_its_users() {
    let runtime = Runtime::new();
    fs::create_dir(runtime.path().join("ebb")).unwrap();
    let configuration = "schema_version = 1\n[[ceiling]]\ngroup = \"root\"\nclass = \"latency\"\n";
    fs::write(runtime.path().join("ebb/ebb.toml"), configuration).unwrap();
    let tenant = runtime.tenant("quiet-name", "latency", &[]);
    wait_for("it is seated", || runtime.seat(&tenant).is_some());
    let (folder, said) = bundle(&runtime, &[]);
    for name in ["about.txt", "versions.txt", "status.json", "doctor.txt", "daemon.log", "profiles.txt"] {
        assert!(said.contains(name) && !read(folder.path(), name).is_empty(), "{name}: {said}");
    }
    let status = json::parse(&read(folder.path(), "status.json"));
    let process = &status["gpus"].items()[0]["processes"].items()[0];
    assert_eq!((process["name"].text(), process["program"].text()), ("tenant-1", "program-1"));
    assert_eq!(process["pid"].number(), i128::from(tenant.child.id()));
    assert!(read(folder.path(), "configuration.toml").contains("group = \"<hidden>\""));
    assert!(read(folder.path(), "environment.txt").contains("EBB_NAME=<hidden>\n"));
    for file in fs::read_dir(folder.path().join("ebb-support")).unwrap() {
        let (path, mut text) = (file.as_ref().unwrap().path(), String::new());
        text.push_str(&fs::read_to_string(&path).unwrap());
        for word in ["quiet-name", "hush", "--seconds", runtime.path().to_str().unwrap()] {
            assert!(!text.contains(word), "{} has {word}: {text}", path.display());
        }
    }
    let (folder, said) = bundle(&runtime, &["--full"]);
    assert!(read(folder.path(), "status.txt").contains("quiet-name"));
    assert!(read(folder.path(), "environment.txt").contains("EBB_NAME=hush\n"));
    assert!(said.contains("look at it before you give it away"));
}

#[test]
fn a_machine_without_a_daemon_has_a_bundle_too() {
    let runtime = Runtime::new();
    let (folder, said) = bundle(&runtime, &[]);
    assert!(said.contains("no daemon answers"), "{said}");
    assert!(read(folder.path(), "status.txt").starts_with("not here: "));
    assert!(read(folder.path(), "doctor.txt").contains("checks"));
}
