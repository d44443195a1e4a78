//! The shared domain: a daemon that keeps an MPS of its own, with a stand-in for NVIDIA's control program.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Actor, Daemon, folder, register, registration, wait_for};
use daemon::client;
use daemon::request::Request;
use model::Domain;
use rustix::process::{Pid, Signal, kill_process};

#[test]
#[ignore = "another role of this program, not a test"]
fn role() {
    common::play();
}

/// Where the stand-in is, and everything else that a script needs.
fn path() -> String {
    let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mps/tests/common");
    format!("{}:{}", fake.display(), std::env::var("PATH").unwrap())
}

fn start(folder: &Path, configuration: &str) -> Daemon {
    let file = folder.join("ebb.toml");
    fs::write(&file, configuration).unwrap();
    Daemon::with(folder, &[("CONFIGURATION", file.to_str().unwrap()), ("PATH", &path())])
}

const SHARED: &str = "schema_version = 1\ndomain = \"shared\"\nmps = true\n";

fn pid_file(folder: &Path) -> PathBuf {
    folder.join("mps/pipe/nvidia-cuda-mps-control.pid")
}

fn control(folder: &Path) -> i32 {
    fs::read_to_string(pid_file(folder)).unwrap().trim().parse().unwrap()
}

/// The dead that nobody has asked for have no words.
fn lives(pid: i32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| !words.is_empty())
}

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

fn write(path: &Path, line: &str) {
    writeln!(OpenOptions::new().create(true).append(true).open(path).unwrap(), "{line}").unwrap();
}

#[test]
fn tenants_are_told_of_the_domain_and_where_mps_is() {
    let folder = folder();
    let daemon = start(folder.path(), SHARED);
    let report = daemon.report();
    let pipes = folder.path().join("mps/pipe").display().to_string();
    let mps = report.daemon.mps.unwrap();
    assert_eq!((report.daemon.domain.as_str(), mps.pipes.as_str(), mps.up), ("shared", pipes.as_str(), true));
    let attend = Request::Attend {
        tenant: "00000000000000aa".to_owned(),
        class: "latency".to_owned(),
        weight: 1,
        priority: 0,
    };
    let outlook = client::ask(&daemon.place, &attend).unwrap().outlook.unwrap();
    assert_eq!((outlook.domain.as_str(), outlook.mps_pipes), ("shared", Some(pipes)));
    let (_connection, board, _) = register(&daemon.place, &registration("serve")).unwrap();
    assert_eq!(board.domain(), Domain::Shared);
    assert_eq!(daemon.report().gpus[0].domain, "shared");
}

#[test]
fn mps_ends_with_the_daemon() {
    let folder = folder();
    let mut daemon = start(folder.path(), SHARED);
    let mps = control(folder.path());
    assert!(lives(mps));
    daemon.actor.signal(Signal::TERM);
    daemon.actor.child.wait().unwrap();
    assert!(!lives(mps) && !folder.path().join("mps").exists());
}

#[test]
fn mps_ends_when_the_daemon_is_killed() {
    let folder = folder();
    let mut daemon = start(folder.path(), SHARED);
    let mps = control(folder.path());
    daemon.actor.child.kill().unwrap();
    daemon.actor.child.wait().unwrap();
    wait_for("nothing is left", || !lives(mps) && !folder.path().join("mps").exists());
}

#[test]
fn mps_stays_with_its_clients_and_the_next_daemon_has_it() {
    let folder = folder();
    let mut daemon = start(folder.path(), SHARED);
    let mps = control(folder.path());
    let pipes = folder.path().join("mps/pipe");
    fs::write(pipes.join("servers"), "41\n").unwrap();
    fs::write(pipes.join("clients"), "71\n").unwrap();
    daemon.actor.signal(Signal::TERM);
    daemon.actor.child.wait().unwrap();
    assert!(lives(mps), "its clients would end with it");
    let mut daemon = start(folder.path(), SHARED);
    assert!(control(folder.path()) == mps && daemon.report().daemon.mps.unwrap().up);
    // The same for one that is killed.
    daemon.actor.child.kill().unwrap();
    daemon.actor.child.wait().unwrap();
    let mut daemon = start(folder.path(), SHARED);
    assert_eq!(control(folder.path()), mps);
    fs::write(pipes.join("clients"), "").unwrap();
    daemon.actor.signal(Signal::TERM);
    daemon.actor.child.wait().unwrap();
    assert!(!lives(mps) && !folder.path().join("mps").exists());
}

#[test]
fn what_even_the_warden_left_is_cleared_by_the_next_daemon() {
    let folder = folder();
    for part in ["mps/pipe", "mps/log"] {
        fs::create_dir_all(folder.path().join(part)).unwrap();
    }
    let mut left = Command::new("nvidia-cuda-mps-control");
    left.arg("-d").env("PATH", path());
    left.env("CUDA_MPS_PIPE_DIRECTORY", folder.path().join("mps/pipe"));
    left.env("CUDA_MPS_LOG_DIRECTORY", folder.path().join("mps/log"));
    assert!(left.status().unwrap().success());
    wait_for("it is up", || pid_file(folder.path()).exists());
    let old = control(folder.path());
    let daemon = start(folder.path(), SHARED);
    assert!(!lives(old) && lives(control(folder.path())));
    assert!(daemon.report().daemon.mps.unwrap().up);
}

#[test]
fn an_mps_of_somebody_else_is_left_alone() {
    let (theirs, ours) = (folder(), folder());
    let _other = start(theirs.path(), SHARED);
    let foreign = control(theirs.path());
    let mut daemon = start(ours.path(), SHARED);
    assert_ne!(control(ours.path()), foreign);
    daemon.actor.signal(Signal::TERM);
    daemon.actor.child.wait().unwrap();
    assert!(lives(foreign));
}

#[test]
fn an_mps_that_dies_is_started_anew_and_that_is_said() {
    let folder = folder();
    let daemon = start(folder.path(), SHARED);
    let before = control(folder.path());
    kill(before, Signal::KILL);
    wait_for("it is back", || daemon.report().daemon.mps.is_some_and(|mps| mps.up && mps.restarts == 1));
    assert_ne!(control(folder.path()), before);
    assert_eq!(daemon.report().sentences, Vec::<String>::new());
}

#[test]
fn a_fault_that_takes_tenants_along_is_told_with_their_names() {
    let folder = folder();
    let daemon = start(folder.path(), SHARED);
    let tenant = Actor::start(folder.path(), "tenant", &[]);
    wait_for("it sits", || daemon.processes().len() == 1);
    let fault = "[now Server 41] Client process 71 encountered a fatal GPU error.";
    write(&folder.path().join("mps/log/server.log"), fault);
    wait_for("it is heard of", || daemon.report().daemon.mps.is_some_and(|mps| mps.faults == 1));
    drop(tenant);
    wait_for("it is counted", || daemon.report().daemon.mps.is_some_and(|mps| mps.victims.len() == 1));
    let said = daemon.report().sentences.join(" ");
    assert!(
        said.contains("fatal GPU error") && said.contains("victim (") && said.contains("ended with it"),
        "{said}"
    );
}

#[test]
fn a_machine_without_the_program_is_told_what_to_install() {
    let folder = folder();
    let file = folder.path().join("ebb.toml");
    fs::write(&file, SHARED).unwrap();
    if mps::find().is_ok() {
        eprintln!("skipped: this machine has NVIDIA's control program");
        return;
    }
    let mut actor = Actor::start(folder.path(), "daemon", &[("CONFIGURATION", file.to_str().unwrap())]);
    let said = actor.said("refused");
    assert!(said.contains("nvidia-cuda-mps-control") && said.contains("package"), "{said}");
    assert!(!folder.path().join("ebb.sock").exists());
}

#[test]
fn the_domain_does_not_change_under_tenants() {
    let folder = folder();
    let isolated = "schema_version = 1\n";
    let daemon = start(folder.path(), isolated);
    assert_eq!((daemon.report().daemon.domain.as_str(), daemon.report().daemon.mps), ("isolated", None));
    fs::write(folder.path().join("ebb.toml"), SHARED).unwrap();
    daemon.actor.signal(Signal::HUP);
    wait_for("it was read", || daemon.report().sentences.iter().any(|said| said.contains("next daemon")));
    assert_eq!(daemon.report().daemon.domain, "isolated");
}
