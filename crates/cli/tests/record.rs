//! `ebb lab record`, with a worker that only says its lines.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use common::{errors, private_folder, text};

const READY: &str =
    r#"{"say":"ready","tenants":[{"gpu_us":1.0,"load_s":0.1}],"versions":{},"gpu":{"name":"x","sms":132}}"#;

/// In the place of Python: says that it is ready, and when it is asked, whatever stands in a file named like the workload's
/// specification.
fn fake_python(folder: &Path) -> PathBuf {
    let path = folder.join("python");
    let script = format!(
        "#!/bin/sh\n[ -f \"$1\" ] || exit 3\necho '{READY}'\nread order\ncat \"{}/$(basename \"$2\")\" || exit 4\nread more\n",
        folder.display()
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn answer(folder: &Path, asked: &str, recorded: &str, kernels: &str) {
    let profile = format!(
        r#"{{"schema":1,"workload":"{recorded}","recorded":{{"gpu":"a card"}},"sms":132,"parts":[{{"name":"request","times":1,"host_us":9.5,"kernels":{kernels}}}]}}"#
    );
    let line = format!("{{\"say\":\"recorded\",\"tenant\":0,\"profile\":{profile}}}\n");
    fs::write(folder.join(format!("{asked}.json")), line).unwrap();
}

#[test]
fn a_profile_is_written_and_one_that_fails_does_not_stop_the_others() {
    let folder = private_folder();
    let python = fake_python(folder.path());
    answer(folder.path(), "vgg19-inference-eager-b1", "vgg19-inference-eager-b1", "[[0,132,256,8,3.5]]");
    answer(folder.path(), "resnet50-training-eager-b8", "resnet50-training-eager-b8", "[[0,0,256,8,3.5]]");
    answer(folder.path(), "yolo-inference-eager-b1", "vgg19-inference-eager-b1", "[[0,132,256,8,3.5]]");
    answer(folder.path(), "stencil", "stencil", "[[0,1,32,1,1]]");
    let words = [
        "yolo-inference-eager-b1",
        "resnet50-training-eager-b8",
        "{ model = \"vgg19\" }",
        "unet-inference-eager-b1",
        "stencil",
    ];
    let out = folder.path().join("out");
    let mut command = common::ebb(folder.path());
    command.args(["lab", "record"]).args(words).arg("--out").arg(&out).arg("--python").arg(&python);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = errors(&output);
    for reason in [
        "yolo-inference-eager-b1: the worker recorded vgg19-inference-eager-b1",
        "blocks is 0",
        "unet-inference-eager-b1: ended with status",
        "3 of 5 could not be recorded",
    ] {
        assert!(told.contains(reason), "{reason}: {told}");
    }
    let mut files: Vec<_> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["stencil.json", "vgg19-inference-eager-b1.json"]);
    let profile = scenario::profile::Profile::in_folder(&out, "vgg19-inference-eager-b1").unwrap().unwrap();
    assert_eq!(profile.recorded["gpu"], "a card");
    assert_eq!(profile.recorded["command"], "ebb lab record vgg19-inference-eager-b1");
    assert_eq!(profile.parts[0].kernels.len(), 1);
}

#[test]
fn nothing_is_recorded_on_the_software_gpu_nor_of_what_is_unknown() {
    let folder = private_folder();
    let record = |arguments: &[&str]| {
        let mut command = common::ebb(folder.path());
        command.args(["lab", "record", "--out"]).arg(folder.path().join("out")).args(arguments);
        command.output().unwrap()
    };
    let refused = record(&["--device", "soft", "vgg19-inference-eager-b1"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(errors(&refused).contains("nothing to learn"), "{}", errors(&refused));
    let unknown = record(&["vgg99-inference-eager-b1"]);
    assert!(errors(&unknown).contains("names no workload"), "{}", errors(&unknown));
    assert!(!folder.path().join("out").exists());
    let help = text(&common::ebb(folder.path()).args(["lab", "record", "--help"]).output().unwrap());
    assert!(help.contains("list --workloads"), "{help}");
}
