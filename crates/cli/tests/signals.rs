//! `ebb run --report` between a command and those who signal it.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::json;
use common::{errors, private_folder};
use rustix::process::{Pid, Signal, kill_process};

/// Whether this test was itself started to ignore a signal, in the background of a script say, and everything under it
/// with it.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (signal.as_raw() - 1)) != 0
}

/// A command under `ebb run --report=json`, and what it prints.
struct Run {
    ebb: Child,
    lines: BufReader<ChildStdout>,
    ended: Arc<AtomicBool>,
}

impl Run {
    fn start(runtime: &Path, words: &[&str]) -> Run {
        common::products();
        let mut command = common::ebb(runtime);
        command.args(["run", "--device", "soft", "--no-daemon", "--report=json", "--"]).args(words);
        Run::spawn(command)
    }

    fn spawn(mut command: Command) -> Run {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut ebb = command.spawn().unwrap();
        let lines = BufReader::new(ebb.stdout.take().unwrap());
        let (pid, ended) = (Pid::from_child(&ebb), Arc::new(AtomicBool::new(false)));
        let watched = Arc::clone(&ended);
        // What never comes must not be waited for without end: then the lines end, and the test says which one is missing.
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(120));
            if !watched.load(Ordering::Relaxed) {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Run { ebb, lines, ended }
    }

    /// The next line, which names what has happened.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.ebb), signal).unwrap();
    }

    fn finish(self) -> Output {
        // Whoever still writes must be able to.
        let Run { ebb, lines, ended } = self;
        let rest = std::thread::spawn(move || lines.lines().count());
        let output = ebb.wait_with_output().unwrap();
        ended.store(true, Ordering::Relaxed);
        rest.join().unwrap();
        output
    }
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never happened: {what}");
}

#[test]
fn signals_sent_to_ebb_reach_the_command_once() {
    let runtime = private_folder();
    let script = "for s in TERM INT HUP QUIT USR1 USR2 WINCH; do trap \"echo $s\" $s; done
                  trap 'exit 9' ALRM; echo ready; while :; do sleep 0.02; done";
    let mut run = Run::start(runtime.path(), &["/bin/sh", "-c", script]);
    assert_eq!(run.line(), "ready");
    let signals = [
        (Signal::TERM, "TERM"),
        (Signal::INT, "INT"),
        (Signal::HUP, "HUP"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
        (Signal::WINCH, "WINCH"),
    ];
    for (signal, name) in signals.into_iter().filter(|(signal, _)| !is_ignored(*signal)) {
        run.signal(signal);
        assert_eq!(run.line(), name);
    }
    run.signal(Signal::ALARM);
    let output = run.finish();
    assert_eq!(output.status.code(), Some(9), "{}", errors(&output));
}

#[test]
fn what_the_command_sends_to_its_parent_does_not_come_back() {
    let runtime = private_folder();
    let script = "trap 'echo back' USR1; kill -USR1 $PPID; sleep 0.3; echo end";
    let mut run = Run::start(runtime.path(), &["/bin/sh", "-c", script]);
    assert_eq!(run.line(), "end");
    assert!(run.finish().status.success());
}

#[test]
fn signals_that_were_ignored_stay_ignored() {
    let runtime = private_folder();
    common::products();
    let mut shell = Command::new("/bin/sh");
    let own = "kill -HUP $$; echo alive; while [ ! -e \"$0\" ]; do sleep 0.02; done";
    let gone = runtime.path().join("go");
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_ebb")]);
    shell
        .args(["run", "--device", "soft", "--no-daemon", "--report=json", "--", "/bin/sh", "-c", own])
        .arg(&gone);
    shell.env("EBB_RUNTIME_DIR", runtime.path());
    let mut run = Run::spawn(shell);
    assert_eq!(run.line(), "alive");
    run.signal(Signal::HUP);
    fs::write(&gone, "").unwrap();
    assert!(run.finish().status.success());
}

/// The words that make a tenant at work for a long time.
fn endless() -> [&'static str; 10] {
    let ebb = env!("CARGO_BIN_EXE_ebb");
    [ebb, "tenant", "--driver", "libcuda.so.1", "--class", "best-effort", "--seconds", "600", "--seed", "1"]
}

#[test]
fn a_command_that_is_killed_leaves_its_figures() {
    let runtime = private_folder();
    let mut words = vec!["/bin/sh", "-c", "echo $$; exec \"$@\"", "sh"];
    words.extend(endless());
    let mut run = Run::start(runtime.path(), &words);
    let pid: i32 = run.line().parse().unwrap();
    wait_for("a launch", || launches(runtime.path()) > 0);
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let output = run.finish();
    assert_eq!(output.status.code(), Some(137));
    let report = json::parse(&errors(&output));
    assert_eq!(report["signal"].number(), 9);
    assert!(report["processes"].items()[0]["kernels_run"].number() > 0);
}

fn run_folders(runtime: &Path) -> Vec<PathBuf> {
    let entries = runtime.read_dir().unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("run-")).collect()
}

/// What the ledgers of all runs in a runtime folder have counted so far.
fn launches(runtime: &Path) -> u64 {
    let files = run_folders(runtime).into_iter().flat_map(|folder| folder.read_dir().into_iter().flatten());
    let readings = files.flatten().filter_map(|file| telemetry::Reading::open(&file.path()).ok());
    readings.map(|reading| reading.kernels_run()).sum()
}

#[test]
fn the_folder_of_a_run_that_was_killed_goes_with_the_next_one() {
    let runtime = private_folder();
    let mut run = Run::start(runtime.path(), &["/bin/sh", "-c", "echo $$; exec sleep 60"]);
    let command: i32 = run.line().parse().unwrap();
    let [left] = &run_folders(runtime.path())[..] else { panic!("one run, one folder") };
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&left.metadata().unwrap().permissions()) & 0o777,
        0o700
    );
    let other = Run::start(runtime.path(), &["true"]);
    assert!(other.finish().status.success());
    assert!(left.exists(), "a living run lost its folder");
    run.signal(Signal::KILL);
    run.ebb.wait().unwrap();
    kill_process(Pid::from_raw(command).unwrap(), Signal::KILL).unwrap();
    assert!(left.exists());
    assert!(Run::start(runtime.path(), &["true"]).finish().status.success());
    assert_eq!(run_folders(runtime.path()), [] as [PathBuf; 0]);
}

/// A shell's part in job control, on a terminal of its own: it gives the terminal to ebb, types, and says what it sees.
const TERMINAL: &str = r#"
import os, pty, select, signal, sys, time

leader, terminal = pty.fork()
if leader == 0:
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execv(sys.argv[1], sys.argv[1:])
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            print("finished", os.waitstatus_to_exitcode(status), flush=True)
            time.sleep(1)
            os._exit(0)
        children = open(f"/proc/{job}/task/{job}/children").read().split()
        states = [open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] for pid in children]
        print("stopped", *states, flush=True)
        os.kill(-job, signal.SIGCONT)

seen = b""
def until(word):
    global seen
    end = time.time() + 20
    while word not in seen:
        assert time.time() < end, seen
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 4096)

until(b"ready")
os.write(terminal, b"\x03")
until(b"interrupted")
os.write(terminal, b"\x1a")
until(b"stopped")
until(b"continued")
until(b"finished 6\r\n")
print(seen.decode().replace("\r", ""))
"#;

/// Counts interrupts and ends when it is continued. No shell: one that is about to start a program cannot stop.
const COMMAND: &str = r#"
import signal, sys, time

interrupts = []
def interrupt(*_):
    interrupts.append(1)
    print("interrupted", flush=True)
def go_on(*_):
    print("continued", flush=True)
    time.sleep(0.3)
    print("counted", len(interrupts), flush=True)
    sys.exit(6)
signal.signal(signal.SIGINT, interrupt)
signal.signal(signal.SIGCONT, go_on)
print("ready", flush=True)
while True:
    signal.pause()
"#;

#[test]
fn the_terminal_interrupts_once_and_stops_both() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: python3, which plays the terminal, is not here");
        return;
    }
    let runtime = private_folder();
    common::products();
    let mut command = Command::new("python3");
    command.args([
        "-c",
        TERMINAL,
        env!("CARGO_BIN_EXE_ebb"),
        "run",
        "--device",
        "soft",
        "--no-daemon",
        "--report",
        "--",
    ]);
    command.args(["python3", "-c", COMMAND]).env("EBB_RUNTIME_DIR", runtime.path());
    let output = command.output().unwrap();
    let seen = common::text(&output);
    // The command had stopped when the shell saw ebb stop.
    assert!(seen.contains("stopped T\n"), "{seen}");
    assert!(seen.contains("counted 1\n"), "{seen}");
    assert_eq!(seen.matches("continued").count(), 1, "{seen}");
    assert!(seen.contains("finished 6\n"), "{seen}");
    assert!(seen.contains("CUDA was never used"), "{seen}");
}
