//! Running cases, each in a process of its own.
//!
//! The binary starts itself again with `--child NAME`. The child prints what it likes, then a marker line and the
//! reason if there is one; its exit status says which [`Outcome`] it is. Everything else a child can do (die by a
//! signal, exit with another status, say nothing for too long) is a failure that the parent words.
//!
//! Two other ways of running exist for whatever stands in front of a driver: many cases on the threads of one
//! process ([`crowd`]), and a case in the fork of a process that had opened the driver ([`fork`]).

use crate::suite::{Case, Outcome};
use anyhow::{Context as _, Result, bail};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub mod crowd;
pub mod fork;
mod peer;

pub use peer::Peer;

/// Stands alone on the line before a child's reason.
const MARKER: &str = "\u{1}outcome";
const FAILED: u8 = 10;
const SKIPPED: u8 = 20;

/// What the parent learned about one case.
#[derive(Debug, Clone)]
pub struct Report {
    pub outcome: Outcome,
    /// What the child printed before its outcome, standard error included.
    pub output: String,
    pub elapsed: Duration,
}

impl Report {
    /// The raw codes that a case has printed: what two drivers must agree on, beside the outcome.
    pub fn probes(&self) -> impl Iterator<Item = &str> {
        self.output.lines().filter(|line| line.starts_with("probe: "))
    }

    /// Whether nobody could tell this report from the other.
    pub fn agrees_with(&self, other: &Report) -> bool {
        self.outcome == other.outcome && self.probes().eq(other.probes())
    }
}

/// How children are started.
#[derive(Debug, Clone)]
pub struct Launcher<'a> {
    /// The conformance binary.
    pub program: &'a Path,
    pub driver: &'a Path,
    pub timeout: Duration,
    /// Set in the child's environment.
    pub environment: &'a [(String, String)],
    /// Whether the child opens the driver and leaves the case to a fork of itself.
    pub forked: bool,
}

/// How a child ended and what it said.
struct Ending {
    /// `None` when it had to be killed.
    status: Option<ExitStatus>,
    stdout: String,
    stderr: String,
}

impl Launcher<'_> {
    /// Runs one case in a child and waits for its end, or ends it when its time is up.
    pub fn run(&self, name: &str) -> Report {
        let started = Instant::now();
        let (outcome, output) = match self.attempt(name) {
            Ok(found) => found,
            Err(error) => (Outcome::Failed(format!("could not run the case: {error:#}")), String::new()),
        };
        Report { outcome, output, elapsed: started.elapsed() }
    }

    fn attempt(&self, name: &str) -> Result<(Outcome, String)> {
        let ending = self.start(&["--child", name], self.timeout)?;
        let (said, reason) = ending.stdout.split_once(MARKER).unwrap_or((&ending.stdout, ""));
        let outcome = judge(ending.status, reason.trim(), &ending.stderr, self.timeout);
        Ok((outcome, format!("{said}{}", ending.stderr)))
    }

    /// The file that answers to the driver's name in a child. That it cannot be opened is one mistake, not a hundred
    /// failures, so this is asked first.
    pub fn library(&self) -> Result<PathBuf> {
        let ending = self.start(&["--who"], self.timeout)?;
        if !ending.status.is_some_and(|status| status.success()) {
            let complaint = ending.stderr.trim();
            bail!("{}", complaint.strip_prefix("conformance: ").unwrap_or(complaint));
        }
        Ok(PathBuf::from(ending.stdout.trim()))
    }

    /// Starts this program again and waits for its end, or ends it.
    fn start(&self, arguments: &[&str], timeout: Duration) -> Result<Ending> {
        let mut command = Command::new(self.program);
        command.arg("--driver").arg(self.driver);
        if self.forked {
            command.arg("--forked");
        }
        command.args(arguments);
        command.envs(self.environment.iter().map(|(key, value)| (key, value)));
        // A group of its own, so that the peers a case has started end with it.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start a child process")?;
        let stdout = drain(child.stdout.take().expect("stdout was asked to be a pipe"));
        let stderr = drain(child.stderr.take().expect("stderr was asked to be a pipe"));
        let status = wait(&mut child, timeout)?;
        kill_group(&child);
        let stdout = stdout.join().expect("reading a pipe does not panic");
        let stderr = stderr.join().expect("reading a pipe does not panic");
        Ok(Ending { status, stdout, stderr })
    }
}

/// Collects a pipe in the background; a child must never block on a full one.
fn drain(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // A pipe that breaks off has told us all it will.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The child's status, or `None` when it had to be killed.
fn wait(child: &mut Child, timeout: Duration) -> Result<Option<ExitStatus>> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            kill_group(child);
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn kill_group(child: &Child) {
    let group = libc::pid_t::try_from(child.id()).expect("process ids fit pid_t");
    // SAFETY: kill has no memory effects; the group is the one made for this child.
    let _ = unsafe { libc::kill(-group, libc::SIGKILL) };
}

fn judge(status: Option<ExitStatus>, reason: &str, stderr: &str, timeout: Duration) -> Outcome {
    let Some(status) = status else {
        return Outcome::Failed(format!("no result within {timeout:?}"));
    };
    let last_words = || stderr.trim().lines().last().unwrap_or("nothing on stderr").to_owned();
    match status.code() {
        Some(0) => Outcome::Passed,
        Some(code) if code == i32::from(FAILED) => Outcome::Failed(reason.to_owned()),
        Some(code) if code == i32::from(SKIPPED) => Outcome::Skipped(reason.to_owned()),
        Some(101) => Outcome::Failed(format!("panicked: {}", panic_message(stderr))),
        Some(code) => Outcome::Failed(format!("exit status {code}: {}", last_words())),
        None => {
            Outcome::Failed(format!("killed by signal {}: {}", status.signal().unwrap_or(0), last_words()))
        }
    }
}

/// The lines after `thread 'main' panicked at`, without the hint about backtraces.
fn panic_message(stderr: &str) -> String {
    let from = stderr.find("panicked at").map_or(stderr, |at| &stderr[at + "panicked at ".len()..]);
    from.lines().filter(|line| !line.starts_with("note:")).collect::<Vec<_>>().join(" ")
}

/// The child's side: tells the parent an outcome and gives the exit status that goes with it.
pub fn tell(outcome: &Outcome) -> u8 {
    let (status, reason) = match outcome {
        Outcome::Passed => (0, ""),
        Outcome::Failed(reason) => (FAILED, reason.as_str()),
        Outcome::Skipped(reason) => (SKIPPED, reason.as_str()),
    };
    println!("{MARKER}\n{reason}");
    status
}

/// Runs `cases` with `jobs` children at a time, calling `done` for each as it ends.
pub fn run_all(launcher: &Launcher<'_>, cases: &[Case], jobs: usize, done: impl Fn(&Case, &Report) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, cases.len().max(1)) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    done(case, &launcher.run(case.name));
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Mutex;

    /// A script cannot be started while it is open for writing in a process that another test is just starting.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    /// What becomes of a case whose child is this shell script.
    fn outcome_of(script: &str) -> Outcome {
        let _turn = ONE_AT_A_TIME.lock().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("child");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let launcher = Launcher {
            program: &program,
            driver: Path::new("libcuda.so.1"),
            timeout: Duration::from_millis(500),
            environment: &[],
            forked: false,
        };
        launcher.run("any/case").outcome
    }

    #[test]
    fn a_child_tells_its_outcome() {
        assert_eq!(outcome_of("echo chatter; printf '\\001outcome\\n'; exit 0"), Outcome::Passed);
        let failed = outcome_of("echo chatter; printf '\\001outcome\\nwrong sum\\n'; exit 10");
        assert_eq!(failed, Outcome::Failed("wrong sum".into()));
        let skipped = outcome_of("printf '\\001outcome\\nno such device\\n'; exit 20");
        assert_eq!(skipped, Outcome::Skipped("no such device".into()));
    }

    #[test]
    fn dying_is_failing() {
        let killed = outcome_of("echo last words >&2; kill -SEGV $$");
        assert_eq!(killed, Outcome::Failed("killed by signal 11: last words".into()));
        let status = outcome_of("exit 3");
        assert_eq!(status, Outcome::Failed("exit status 3: nothing on stderr".into()));
    }

    #[test]
    fn a_child_that_hangs_is_ended_with_its_own_children() {
        let started = Instant::now();
        let hung = outcome_of("sleep 100 & sleep 100");
        assert_eq!(hung, Outcome::Failed("no result within 500ms".into()));
        assert!(started.elapsed() < Duration::from_secs(20));
    }
}
