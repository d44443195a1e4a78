//! Tenants and their daemon, as a user meets them.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use board::link::{self, Registration};
use board::{Board, Gpu, Label, Place};
use common::json::{self, Value};
use common::{errors, private_folder, text};
use model::Nanos;
use rustix::process::{Pid, Signal, kill_process};

/// A runtime folder, whose daemons end with it.
struct Runtime {
    folder: tempfile::TempDir,
}

impl Runtime {
    fn new() -> Runtime {
        common::products();
        Runtime { folder: private_folder() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn ebb(&self, words: &[&str]) -> Output {
        common::ebb(self.path()).args(words).output().unwrap()
    }

    /// A shell under `ebb run` on the software GPU.
    fn shell(&self, options: &[&str], script: &str) -> Output {
        let mut command = common::ebb(self.path());
        command.args(["run", "--device", "soft"]).args(options).args(["--", "/bin/sh", "-c", script]);
        command.output().unwrap()
    }

    fn socket(&self) -> PathBuf {
        self.path().join("ebb.sock")
    }

    /// Takes a seat in the name of this test.
    fn seat(&self, tenant: u64, name: &str) -> (OwnedFd, Board, Place) {
        let socket = CString::new(self.socket().as_os_str().as_bytes()).unwrap();
        let name = Label::new(name.as_bytes());
        let registration = Registration { name, ..Registration::new(Gpu([1; 16]), tenant) };
        let (connection, board, granted) =
            link::register(&socket, &registration, None, Nanos::from_millis(5_000)).unwrap();
        (connection, board, granted.place)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        for pid in daemons(self.path()) {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
    }
}

/// The daemons that serve in a folder, or want to.
fn daemons(folder: &Path) -> Vec<i32> {
    let wanted = [b"EBB_RUNTIME_DIR=", folder.as_os_str().as_bytes()].concat();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_daemon = |pid: &i32| {
        let read = |file| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let in_folder = read("environ").split(|&byte| byte == 0).any(|setting| setting == wanted);
        in_folder && read("cmdline").split(|&byte| byte == 0).any(|word| word == b"daemon")
    };
    pids.filter(is_daemon).collect()
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..1500 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never happened: {what}");
}

/// The variables of ours that a command printed.
fn variables(output: &Output) -> BTreeMap<String, String> {
    let split = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    text(output).lines().filter(|line| line.starts_with("EBB_")).filter_map(split).collect()
}

#[test]
fn a_command_becomes_a_tenant_with_the_terms_it_was_given() {
    let runtime = Runtime::new();
    let options =
        ["--class", "latency", "--slo-p99", "20ms", "--weight", "3", "--priority", "2", "--name", "search"];
    let output = runtime.shell(&[&options[..], &["--on-daemon-loss", "block"]].concat(), "env");
    let warned = errors(&output);
    assert!(
        warned.starts_with("ebb: --weight says nothing with --class latency") && warned.lines().count() == 1,
        "{warned}"
    );
    let (found, socket) = (variables(&output), runtime.socket());
    let wanted = [
        ("EBB_CLASS", "latency"),
        ("EBB_SLO_P99", "20000000"),
        ("EBB_WEIGHT", "3"),
        ("EBB_PRIORITY", "2"),
        ("EBB_NAME", "search"),
        ("EBB_ON_DAEMON_LOSS", "block"),
        ("EBB_SOCKET", socket.to_str().unwrap()),
    ];
    for (name, value) in wanted {
        assert_eq!(found[name], value, "{name}");
    }
    assert_eq!(found["EBB_TENANT"].len(), 16);
    assert!(runtime.ebb(&["status"]).status.success(), "the daemon stays");
}

#[test]
fn a_run_inside_another_is_the_same_tenant_unless_it_says_otherwise() {
    let runtime = Runtime::new();
    let ebb = env!("CARGO_BIN_EXE_ebb");
    let script = format!(
        "echo $EBB_TENANT; {ebb} run sh -c 'echo $EBB_TENANT $EBB_NAME $EBB_CLASS'; \
                          {ebb} run --weight 2 sh -c 'echo $EBB_TENANT $EBB_NAME $EBB_CLASS'; \
                          {ebb} run --no-daemon sh -c 'echo ${{EBB_TENANT-none}} ${{EBB_SOCKET-none}}'"
    );
    let said = text(&runtime.shell(&["--class", "latency", "--name", "outer"], &script));
    let lines: Vec<_> = said.lines().collect();
    let [outer, same, own, none] = lines[..] else { panic!("{said}") };
    assert_eq!(same, format!("{outer} outer latency"));
    assert!(own.ends_with(" sh latency") && !own.starts_with(outer), "{own}");
    assert_eq!(none, "none none");
}

#[test]
fn the_daemon_is_nobodys_child_and_keeps_nothing_open() {
    let runtime = Runtime::new();
    let mut command = common::ebb(runtime.path());
    command.args(["run", "--device", "soft", "--", "/bin/sh", "-c", "cat /proc/$$/task/$$/children"]);
    // If the daemon kept the pipe, this would wait for its end.
    let output = command.stdout(Stdio::piped()).output().unwrap();
    // The one child is `cat` itself, if the shell did not become it.
    assert!(text(&output).split_whitespace().count() <= 1, "{}", text(&output));
    assert_eq!(daemons(runtime.path()).len(), 1);
}

#[test]
fn eight_runs_at_once_start_one_daemon() {
    let runtime = Runtime::new();
    let start = || {
        let mut command = common::ebb(runtime.path());
        command.args(["run", "--device", "soft", "--", "true"]).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let runs: Vec<_> = (0..8).map(|_| start()).collect();
    for run in runs {
        let output = run.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(errors(&output), "");
    }
    wait_for("one daemon is left", || daemons(runtime.path()).len() == 1);
    assert!(runtime.ebb(&["status"]).status.success());
}

#[test]
fn a_daemon_without_tenants_ends_and_takes_its_sockets_along() {
    let runtime = Runtime::new();
    let mut command = common::ebb(runtime.path());
    command.args(["run", "--device", "soft", "--", "true"]).env("EBB_DAEMON_IDLE", "1");
    assert!(command.status().unwrap().success());
    assert!(runtime.socket().exists());
    wait_for("the end of the daemon", || daemons(runtime.path()).is_empty());
    assert!(!runtime.socket().exists() && !runtime.path().join("admin.sock").exists());
    assert!(runtime.shell(&[], "true").status.success());
    assert!(runtime.socket().exists(), "the next run starts the next one");
}

#[test]
fn what_a_killed_daemon_left_is_no_obstacle() {
    let runtime = Runtime::new();
    drop(UnixListener::bind(runtime.socket()).unwrap());
    assert_eq!(errors(&runtime.shell(&[], "true")), "");
    let [first] = daemons(runtime.path())[..] else { panic!("one daemon") };
    kill_process(Pid::from_raw(first).unwrap(), Signal::KILL).unwrap();
    wait_for("its end", || !runtime.ebb(&["status"]).status.success());
    assert_eq!(errors(&runtime.shell(&[], "true")), "");
    assert!(runtime.ebb(&["status"]).status.success());
}

#[test]
fn without_a_daemon_the_command_runs_and_the_user_is_told() {
    let runtime = Runtime::new();
    let file = runtime.path().join("file");
    fs::write(&file, "").unwrap();
    let run = |options: &[&str]| {
        let mut command = common::ebb(&file);
        command.args(["run", "--device", "soft"]).args(options).args(["--", "echo", "done"]);
        command.output().unwrap()
    };
    let output = run(&[]);
    assert_eq!(text(&output), "done\n");
    let message = errors(&output);
    assert!(message.starts_with("ebb: no daemon") && message.contains("EBB_RUNTIME_DIR"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert_eq!(errors(&run(&["--quiet"])), "");
    let strict = run(&["--on-daemon-loss", "exit"]);
    assert_eq!(strict.status.code(), Some(125));
    assert!(errors(&strict).contains("--on-daemon-loss exit"), "{}", errors(&strict));
}

#[test]
fn a_wrong_configuration_is_told_by_whoever_needs_the_daemon() {
    let runtime = Runtime::new();
    fs::create_dir(runtime.path().join("ebb")).unwrap();
    fs::write(runtime.path().join("ebb/ebb.toml"), "schema_version = 1\n[tokens]\n").unwrap();
    let output = runtime.shell(&[], "echo done");
    assert_eq!(text(&output), "done\n");
    assert!(errors(&output).contains("ebb.toml:2: unknown key `tokens`"), "{}", errors(&output));
}

#[test]
fn claims_above_the_ceiling_are_told_at_once() {
    let runtime = Runtime::new();
    fs::create_dir(runtime.path().join("ebb")).unwrap();
    let rule = "schema_version = 1\n[[ceiling]]\neveryone = true\nclass = \"best-effort\"\n";
    fs::write(runtime.path().join("ebb/ebb.toml"), rule).unwrap();
    let output = runtime.shell(&["--class", "latency"], "true");
    assert!(output.status.success());
    assert!(errors(&output).contains("gets class best-effort"), "{}", errors(&output));
    assert_eq!(errors(&runtime.shell(&[], "true")), "");
}

#[test]
fn no_daemon_is_started_for_what_does_not_run() {
    let runtime = Runtime::new();
    let output = runtime.ebb(&["run", "--device", "soft", "--", "ebb-no-such-command"]);
    assert_eq!(output.status.code(), Some(127));
    let mut disabled = common::ebb(runtime.path());
    disabled.args(["run", "--device", "soft", "--quiet", "--", "true"]).env("EBB_DISABLE", "1");
    assert!(disabled.status().unwrap().success());
    assert!(runtime.shell(&["--no-daemon"], "true").status.success());
    assert!(!runtime.socket().exists());
    let output = runtime.ebb(&["status"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("no daemon answers"), "{}", errors(&output));
}

#[test]
fn tenants_are_shown_and_changed() {
    let runtime = Runtime::new();
    assert!(runtime.shell(&[], "true").status.success());
    let (_connection, board, place) = runtime.seat(0xab, "train");
    let (_other, ..) = runtime.seat(0xcd, "serve");
    let pid = std::process::id();
    let page = text(&runtime.ebb(&["status"]));
    assert!(page.contains("tenant 00000000000000ab train") && page.contains("GPU-01010101"), "{page}");
    let list = text(&runtime.ebb(&["ps"]));
    assert_eq!(
        list.lines().filter(|line| line.trim_start().starts_with(&pid.to_string())).count(),
        2,
        "{list}"
    );
    let report = json::parse(&text(&runtime.ebb(&["status", "-o", "json"])));
    let process = &report["gpus"].items()[0]["processes"].items()[0];
    assert_eq!(process["name"], Value::Text("train".to_owned()));
    assert_eq!(process["counters"]["gpu_ns"].number(), 0);
    let listed = json::parse(&text(&runtime.ebb(&["ps", "-o", "json"])));
    assert_eq!(listed["processes"].items().len(), 2);

    let seat = board.sit(place).unwrap();
    let paused = text(&runtime.ebb(&["pause", "train"]));
    assert_eq!(paused, format!("paused tenant 00000000000000ab (train): process {pid}\n"));
    assert!(seat.terms().paused);
    let resumed = json::parse(&text(&runtime.ebb(&["resume", "00000000000000ab", "-o", "json"])));
    assert_eq!(resumed["processes"].items()[0].number(), i128::from(pid));
    assert!(!seat.terms().paused);
    let idle = text(&runtime.ebb(&["resume", "train"]));
    assert_eq!(idle, format!("tenant 00000000000000ab (train) is not paused: process {pid}\n"));
    let set = ["set", "train", "--class", "latency", "--weight", "4", "--priority", "1", "--slo-p99", "7ms"];
    let said = text(&runtime.ebb(&set));
    for line in ["class     best-effort -> latency", "priority  0 -> 1", "SLO p99   none -> 7 ms"] {
        assert!(said.contains(line), "{said}");
    }
    let terms = seat.terms();
    assert_eq!((terms.weight, terms.priority, terms.slo), (4, 1, Some(Nanos::from_millis(7))));
    assert!(runtime.ebb(&["set", "train", "--slo-p99", "none"]).status.success());
    assert_eq!(seat.terms().slo, None);
}

#[test]
fn who_is_meant_must_be_clear() {
    let runtime = Runtime::new();
    assert!(runtime.shell(&[], "true").status.success());
    let (_one, board, place) = runtime.seat(1, "twin");
    let (_two, ..) = runtime.seat(2, "twin");
    let refused = runtime.ebb(&["pause", "twin"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(errors(&refused).contains("twin may be any of 0000000000000001"), "{}", errors(&refused));
    let unknown = runtime.ebb(&["pause", "nobody"]);
    assert!(errors(&unknown).contains("there is no tenant nobody"), "{}", errors(&unknown));
    // Both belong to this process.
    let process = runtime.ebb(&["pause", &std::process::id().to_string()]);
    assert_eq!(process.status.code(), Some(1));
    assert!(!board.sit(place).unwrap().terms().paused);
}

#[test]
fn the_machines_daemon_comes_first() {
    let runtime = Runtime::new();
    let machine = runtime.path().join("machine");
    let ebb = |words: &[&str]| {
        let mut command = common::ebb(runtime.path());
        command.env_remove("EBB_RUNTIME_DIR").env("XDG_RUNTIME_DIR", runtime.path().join("user"));
        command.env("EBB_MACHINE_DIR", &machine).args(words);
        command
    };
    let configuration = runtime.path().join("machine.toml");
    // A port that nobody else has.
    fs::write(&configuration, "schema_version = 1\n[metrics]\nlisten = \"127.0.0.1:0\"\n").unwrap();
    let words = ["daemon", "--machine", "--config", configuration.to_str().unwrap()];
    let mut daemon = ebb(&words).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the machine's daemon", || ebb(&["status"]).output().unwrap().status.success());
    let output = ebb(&["run", "--device", "soft", "--", "env"]).output().unwrap();
    assert_eq!(variables(&output)["EBB_SOCKET"], machine.join("ebb.sock").to_str().unwrap());
    assert!(text(&ebb(&["status"]).output().unwrap()).contains("for the machine"));
    kill_process(Pid::from_child(&daemon), Signal::TERM).unwrap();
    assert!(daemon.wait().unwrap().success());
    assert!(!machine.join("ebb.sock").exists());
    assert!(!runtime.path().join("user/ebb/ebb.sock").exists(), "nobody needed the user's");
}

#[test]
fn a_second_daemon_is_refused() {
    let runtime = Runtime::new();
    assert!(runtime.shell(&[], "true").status.success());
    let _seat = runtime.seat(7, "seated");
    let output = runtime.ebb(&["daemon"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("a daemon runs already"), "{}", errors(&output));
    let checks = text(
        &Command::new(env!("CARGO_BIN_EXE_ebb"))
            .args(["doctor", "--device", "soft"])
            .env("EBB_RUNTIME_DIR", runtime.path())
            .output()
            .unwrap(),
    );
    let line = checks.lines().find(|line| line.split_whitespace().take(2).eq(["ok", "daemon"])).unwrap();
    assert!(line.contains("answers in"), "{line}");
    assert!(checks.lines().any(|line| line.split_whitespace().take(2).eq(["ok", "switch"])), "{checks}");
}
