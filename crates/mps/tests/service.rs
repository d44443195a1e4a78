//! The life of a service, with a stand-in for NVIDIA's control program.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mps::{Access, Event, Service};

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/nvidia-cuda-mps-control")
}

fn start(folder: &Path) -> Service {
    Service::start(&program(), folder, Access::Owner).unwrap()
}

fn control(folder: &Path) -> u32 {
    fs::read_to_string(folder.join("pipe/nvidia-cuda-mps-control.pid")).unwrap().trim().parse().unwrap()
}

/// The dead that nobody has asked for have no words.
fn lives(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| !words.is_empty())
}

fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

fn write(path: &Path, line: &str) {
    writeln!(OpenOptions::new().create(true).append(true).open(path).unwrap(), "{line}").unwrap();
}

#[test]
fn it_runs_in_a_private_folder_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("mps");
    let mut service = start(&folder);
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(service.variables()[0], (mps::PIPES, folder.join("pipe").into()));
    let pid = control(&folder);
    assert!(lives(pid) && service.look().is_empty() && service.is_well());
    drop(service);
    assert!(!lives(pid) && !folder.exists());
}

#[test]
fn a_service_of_somebody_else_is_not_touched() {
    let place = tempfile::tempdir().unwrap();
    let theirs = start(&place.path().join("theirs"));
    let other = control(&place.path().join("theirs"));
    let ours = start(&place.path().join("ours"));
    // Even where a number of theirs has come to stand in a file of ours.
    fs::write(ours.pipes().join("servers"), format!("{other}\n")).unwrap();
    drop(ours);
    assert!(lives(other));
    drop(theirs);
    assert!(!lives(other));
}

#[test]
fn faults_and_ends_are_told_once() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("mps");
    let mut service = start(&folder);
    write(&folder.join("log/server.log"), "[now Server 41] Client process 71 encountered a fatal GPU error.");
    write(&folder.join("log/control.log"), "[now Control 40] Server 41 exited with status 1");
    let fault = Event::Fault("Client process 71 encountered a fatal GPU error.".to_owned());
    let gone = Event::ServerGone("Server 41 exited with status 1".to_owned());
    assert_eq!(service.look(), [fault, gone]);
    assert_eq!(service.look(), []);
    kill("-KILL", control(&folder));
    soon("its death is noticed", || service.look() == [Event::ControlGone]);
    assert_eq!(service.look(), []);
}

#[test]
fn a_server_in_fault_is_not_well() {
    let place = tempfile::tempdir().unwrap();
    let service = start(&place.path().join("mps"));
    fs::write(service.pipes().join("servers"), "41\n").unwrap();
    fs::write(service.pipes().join("state"), "FAULT\n").unwrap();
    assert!(!service.is_well());
    fs::write(service.pipes().join("state"), "ACTIVE\n").unwrap();
    assert!(service.is_well());
}

#[test]
fn what_was_left_by_the_killed_is_ended_by_the_next() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("mps");
    for part in ["pipe", "log"] {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
    // As somebody leaves it who was killed together with its warden.
    let mut command = Command::new(program());
    command.arg("-d").env(mps::PIPES, folder.join("pipe")).env(mps::LOGS, folder.join("log"));
    assert!(command.stdin(Stdio::null()).status().unwrap().success());
    soon("it is up", || folder.join("pipe/nvidia-cuda-mps-control.pid").exists());
    let old = control(&folder);
    let service = start(&folder);
    assert!(!lives(old) && lives(control(&folder)));
    drop(service);
    assert!(!folder.exists());
}

fn keep(folder: &Path) -> Service {
    Service::keep(&program(), folder, Access::Owner).unwrap()
}

/// Whom the stand-in names as its clients.
fn serve(service: &Service, clients: &str) {
    fs::write(service.pipes().join("servers"), "41\n").unwrap();
    fs::write(service.pipes().join("clients"), clients).unwrap();
}

#[test]
fn one_that_is_kept_outlasts_its_owner_while_it_has_clients() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("mps");
    let service = keep(&folder);
    let (pid, pipes) = (control(&folder), service.pipes());
    serve(&service, "71\n72\n");
    drop(service);
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(lives(pid));
    fs::write(pipes.join("clients"), "").unwrap();
    soon("it ends with its last client", || !lives(pid) && !folder.exists());
}

#[test]
fn the_next_owner_takes_it_over_with_its_clients() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("mps");
    let first = keep(&folder);
    let pid = control(&folder);
    serve(&first, "71\n");
    write(&folder.join("log/server.log"), "[now Server 41] Client process 7 encountered a fatal GPU error.");
    drop(first);
    let mut second = keep(&folder);
    assert_eq!(control(&folder), pid);
    assert!(second.look().is_empty(), "what happened before was told before");
    // The warden of the first has nothing to say any more.
    fs::write(second.pipes().join("clients"), "").unwrap();
    std::thread::sleep(Duration::from_millis(2_500));
    assert!(lives(pid) && folder.exists());
    drop(second);
    assert!(!lives(pid) && !folder.exists());
}

#[test]
fn one_that_does_not_serve_or_was_for_others_is_not_taken_over() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("mps");
    let first = keep(&folder);
    let old = control(&folder);
    serve(&first, "71\n");
    fs::write(first.pipes().join("state"), "FAULT\n").unwrap();
    drop(first);
    let second = keep(&folder);
    assert!(!lives(old) && lives(control(&folder)), "it was in a fault");
    let old = control(&folder);
    serve(&second, "71\n");
    drop(second);
    let third = Service::keep(&program(), &folder, Access::Everybody).unwrap();
    assert!(!lives(old) && lives(control(&folder)), "it was for its owner alone");
    serve(&third, "71\n");
    third.end();
    assert!(!folder.exists(), "and ended it is, whoever is there");
}

#[test]
fn a_long_folder_is_refused_before_anything_is_made() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("x".repeat(80));
    let refused = Service::start(&program(), &folder, Access::Owner).unwrap_err().to_string();
    assert!(refused.contains("EBB_RUNTIME_DIR"), "{refused}");
    assert!(!folder.exists());
}

#[test]
fn one_that_does_not_come_up_is_said_and_cleared() {
    let place = tempfile::tempdir().unwrap();
    let (folder, broken) = (place.path().join("mps"), place.path().join("nvidia-cuda-mps-control"));
    fs::write(
        &broken,
        "#!/bin/sh\n[ \"$1\" = -d ] && echo 'no GPU' >> \"$CUDA_MPS_LOG_DIRECTORY/control.log\"\nexit 1\n",
    )
    .unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let refused = Service::start(&broken, &folder, Access::Owner).unwrap_err().to_string();
    assert!(refused.contains("does not answer") && refused.contains("no GPU"), "{refused}");
    assert!(!folder.exists());
}
