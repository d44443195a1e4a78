//! A runtime folder with a daemon and tenants in it, all of them processes as a user starts them.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::json::{self, Value};
use super::{private_folder, products, text};

/// Far more than anything here takes, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// For how long a tenant works that nobody ends.
const SECONDS: &str = "600";

/// A runtime folder. Whoever lives in it ends with it.
pub struct Runtime {
    folder: tempfile::TempDir,
}

impl Runtime {
    pub fn new() -> Runtime {
        products();
        Runtime { folder: private_folder() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn ebb(&self, words: &[&str]) -> Output {
        self.command().args(words).output().unwrap()
    }

    pub fn command(&self) -> Command {
        super::ebb(self.path())
    }

    /// `ebb run` on the software GPU with these options, about to run one of ebb's hidden verbs.
    pub fn run(&self, options: &[&str], verb: &str) -> Command {
        let mut command = self.command();
        command.args(["run", "--device", "soft"]).args(options);
        command.args(["--", env!("CARGO_BIN_EXE_ebb"), verb, "--driver", "libcuda.so.1"]);
        command
    }

    /// A tenant of the demo under `ebb run`, told to work until it is told to end.
    pub fn tenant(&self, name: &str, class: &str, options: &[&str]) -> Tenant {
        self.tenant_with_work_of(class, name, class, options)
    }

    /// The same, of one class and with the work of another.
    pub fn tenant_with_work_of(&self, work: &str, name: &str, class: &str, options: &[&str]) -> Tenant {
        let mut command = self.run(&[options, &["--class", class, "--name", name]].concat(), "tenant");
        command.args(["--class", work, "--seed", "1", "--seconds", SECONDS]);
        let mut tenant = Tenant::spawn(name, command);
        tenant.begin();
        tenant
    }

    /// A best-effort tenant of which the daemon has heard, and which comes to the GPU when it is told to.
    pub fn waiting_tenant(&self, name: &str) -> Tenant {
        let mut command = self.command();
        command.args(["run", "--device", "soft", "--name", name, "--", "sh", "-c"]);
        command.args(["echo waiting; read word; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_ebb"), "tenant"]);
        command.args(["--driver", "libcuda.so.1", "--class", "best-effort", "--seed", "1"]);
        command.args(["--seconds", SECONDS]);
        let mut tenant = Tenant::spawn(name, command);
        assert_eq!(tenant.line().as_deref(), Some("waiting"));
        tenant
    }

    /// Starts a daemon if there is none.
    pub fn daemon(&self) -> Pid {
        let output = self.ebb(&["run", "--device", "soft", "--", "true"]);
        assert_eq!(super::errors(&output), "");
        let report = self.report().expect("the daemon that was started answers");
        Pid::from_raw(i32::try_from(report["daemon"]["pid"].number()).unwrap()).unwrap()
    }

    /// What `ebb status` says; nothing where there is no daemon.
    pub fn report(&self) -> Option<Value> {
        let output = self.ebb(&["status", "-o", "json"]);
        output.status.success().then(|| json::parse(&text(&output)))
    }

    /// All processes that have a seat.
    pub fn seats(&self) -> Vec<Value> {
        let gpus = self.report().map_or_else(Vec::new, |report| report["gpus"].items().to_vec());
        gpus.iter().flat_map(|gpu| gpu["processes"].items().to_vec()).collect()
    }

    pub fn seat(&self, tenant: &Tenant) -> Option<Value> {
        let own = |seat: &Value| seat["pid"].number() == i128::from(tenant.child.id());
        self.seats().into_iter().find(own)
    }

    pub fn counter(&self, tenant: &Tenant, name: &str) -> i128 {
        self.seat(tenant).map_or(0, |seat| seat["counters"][name].number())
    }

    /// What the card says about a tenant's context.
    pub fn context(&self, tenant: &Tenant) -> Option<Value> {
        let shown = json::parse(&text(&self.ebb(&["soft", "show", "-o", "json"])));
        let own = |context: &&Value| context["pid"].number() == i128::from(tenant.child.id());
        shown["contexts"].items().iter().find(own).cloned()
    }

    /// The process that has the token.
    pub fn holder(&self) -> Option<i128> {
        let report = self.report()?;
        report["gpus"].items().iter().find_map(|gpu| match &gpu["token"] {
            Value::Null => None,
            holder => Some(holder["pid"].number()),
        })
    }

    /// Processes that have this folder as their runtime folder.
    pub fn processes(&self) -> Vec<(Pid, String)> {
        let wanted = [b"EBB_RUNTIME_DIR=", self.path().as_os_str().as_bytes()].concat();
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let mut found = Vec::new();
        for pid in pids {
            let read = |file| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            if read("environ").split(|&byte| byte == 0).any(|setting| setting == wanted) {
                let words = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
                found.push((Pid::from_raw(pid).unwrap(), words));
            }
        }
        found
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// A tenant at work. Dropped, it is ended.
pub struct Tenant {
    pub name: String,
    pub child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Tenant {
    fn spawn(name: &str, mut command: Command) -> Tenant {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Tenant { name: name.to_owned(), child, lines }
    }

    fn tell(&mut self, word: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{word}").unwrap();
    }

    /// Waits until it has a context, and has it work.
    fn begin(&mut self) {
        assert_eq!(self.line().as_deref(), Some("ready"));
        self.tell("go");
    }

    /// Has one that waits come to the GPU and work.
    pub fn come(&mut self) {
        self.tell("come");
        self.begin();
    }

    fn line(&mut self) -> Option<String> {
        self.lines.next().map(Result::unwrap)
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Kills it, and gives when it is dead.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it, which was right to the end.
    pub fn end(self) {
        self.end_with_report();
    }

    /// The same, and what it has done.
    pub fn end_with_report(mut self) -> lab::Report {
        drop(self.child.stdin.take());
        self.expect_right()
    }

    /// Waits for its end, until which it was right.
    pub fn expect_right(&mut self) -> lab::Report {
        let mut last = String::new();
        while let Some(line) = self.line() {
            last = line;
        }
        let status = self.child.wait().unwrap();
        let report = last.parse::<lab::Report>().unwrap_or_default();
        assert!(status.success() && report.all_right(), "{}: {status}, {last}", self.name);
        report
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
