//! Programs that close descriptors which are not theirs, and have their numbers for files of their own.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Stdio};

use common::runtime::{Runtime, wait_for};
use rustix::process::{Pid, Signal, kill_process};

/// The program, as a tenant.
struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    /// Starts it, and gives it back when it has its seat. `None`: there is no compiler.
    fn start(runtime: &Runtime, what: &str, options: &[&str]) -> Option<Program> {
        let program = common::compiled(runtime.path(), "descriptors.c", &[], "descriptors")?;
        let mut command = runtime.command();
        command.args(["run", "--device", "soft", "--class", "best-effort"]).args(options).arg("--");
        command.arg(program).arg(what).current_dir(runtime.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut program = Program { child, lines };
        assert_eq!(program.line(), "ready");
        wait_for("it has its seat", || program.seat(runtime).is_some());
        Some(program)
    }

    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    fn go(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// Its seat, by the number that another seat would not have.
    fn seat(&self, runtime: &Runtime) -> Option<(i128, i128)> {
        let own = |seat: &common::json::Value| seat["pid"].number() == i128::from(self.child.id());
        let seats = runtime.seats();
        let seat = seats.iter().find(|seat| own(seat))?;
        Some((seat["seat"].number(), seat["counters"]["submissions"].number()))
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert_eq!(self.line(), "right");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The sockets of a process, by number.
fn sockets(pid: u32) -> BTreeMap<u32, String> {
    let all = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let named = all.filter_map(|entry| {
        let name = fs::read_link(entry.path()).ok()?.to_str()?.to_owned();
        Some((entry.file_name().to_str()?.parse().ok()?, name))
    });
    named.filter(|(_, name): &(u32, String)| name.starts_with("socket:")).collect()
}

/// A program that has taken all numbers keeps its files, and ebb its place beside them.
fn takes_all_numbers(how: &str, options: &[&str]) {
    let runtime = Runtime::new();
    let Some(mut program) = Program::start(&runtime, how, options) else { return };
    program.go();
    assert_eq!(program.line(), "taken");
    // The daemon has seen the connection end, and there is another one. To see the program at work takes a new seat that counts.
    let before = program.seat(&runtime);
    wait_for("it has a seat, at which its work is counted", || {
        let now = program.seat(&runtime);
        now.is_some_and(|(_, submissions)| submissions > 0) && now != before
    });
    wait_for("it has a connection again", || !sockets(program.child.id()).is_empty());
    program.end();
}

#[test]
fn a_program_that_closes_everything_has_the_numbers_for_itself() {
    takes_all_numbers("close", &[]);
}

/// The daemon is not lost when the program has closed the connection.
#[test]
fn one_that_closes_everything_by_one_call_is_not_ended_for_the_loss_of_its_daemon() {
    takes_all_numbers("range", &["--on-daemon-loss", "exit"]);
}

#[test]
fn a_child_has_no_copy_of_its_parents_connection() {
    let runtime = Runtime::new();
    let Some(mut program) = Program::start(&runtime, "fork", &[]) else { return };
    let own = sockets(program.child.id());
    assert!(own.keys().any(|number| *number >= 512), "out of the program's way: {own:?}");
    program.go();
    let child: i32 = program.line().parse().unwrap();
    // The child closes it before it goes on, and its parent does not wait for that.
    wait_for("the child has closed it", || {
        let copies = sockets(child.unsigned_abs());
        copies.values().all(|copy| !own.values().any(|name| name == copy))
    });
    kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
    program.end();
}
