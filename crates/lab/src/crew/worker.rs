//! One worker: a process that hosts tenants, and a conversation with it in which every wait has a bound.
//!
//! A worker leads a process group of its own, so that whatever it started goes with it. It ends when its standard input
//! does, and the kernel kills it when the thread that started it is no more: neither needs anything of us, so nothing
//! outlives the lab, however the lab dies. Workers are therefore started by the thread that runs the campaign.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};

use super::protocol::{Order, Ready, Reply};
use super::stop::Stop;
use crate::Error;

/// How often a wait looks whether it should go on.
const GLANCE: Duration = Duration::from_millis(50);
/// How long a worker that was told to end may take; some hold gigabytes of a GPU's memory.
pub(super) const FAREWELL: Duration = Duration::from_secs(3);
/// How much of a log is looked at for its last lines, and how much of those is told.
const LOG_TAIL: u64 = 4096;
const LAST_WORDS: usize = 400;

/// How a worker is started.
#[derive(Clone, Debug, Default)]
pub struct Start {
    pub words: Vec<OsString>,
    /// Changes to our own environment; nothing removes a variable.
    pub environment: Vec<(OsString, Option<OsString>)>,
    /// Where its standard error goes.
    pub log: PathBuf,
}

pub struct Worker {
    /// For messages: whom it hosts, and in which mode.
    name: String,
    child: Child,
    /// What is to be told to it; gone when there is nothing more.
    orders: Option<Sender<Vec<u8>>>,
    lines: Receiver<String>,
    log: PathBuf,
}

impl Worker {
    pub fn start(name: String, start: &Start) -> Result<Worker, Error> {
        let failed =
            |error| Error::Worker { name: name.clone(), reason: format!("cannot be started: {error}") };
        let log = File::create(&start.log).map_err(failed)?;
        let mut command = Command::new(&start.words[0]);
        command.args(&start.words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        for (variable, value) in &start.environment {
            match value {
                Some(value) => command.env(variable, value),
                None => command.env_remove(variable),
            };
        }
        command.process_group(0);
        die_with_parent(&mut command);
        let mut child = command.spawn().map_err(failed)?;
        let output = child.stdout.take().expect("standard output was piped");
        let input = child.stdin.take().expect("standard input was piped");
        Ok(Worker { child, orders: Some(speak(input)), lines: listen(output), log: start.log.clone(), name })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process is still there.
    pub fn lives(&self) -> bool {
        self.end().is_none()
    }

    pub fn await_ready(&mut self, patience: Duration, stop: &Stop) -> Result<Ready, Error> {
        match self.reply(Instant::now() + patience, stop)? {
            Reply::Ready(ready) => Ok(ready),
            other => Err(self.lost(format!("should be ready and said {other:?}"))),
        }
    }

    /// Does not wait until it is heard. Whether the worker still listens shows in its replies.
    pub fn tell(&mut self, order: &Order<'_>) -> Result<(), Error> {
        let mut line = serde_json::to_vec(order).expect("an order is plain data");
        line.push(b'\n');
        let sent = self.orders.as_ref().is_some_and(|orders| orders.send(line).is_ok());
        if sent { Ok(()) } else { Err(self.lost(self.end_in_words())) }
    }

    /// The next reply. An error that the worker tells is one here; the worker goes on, though.
    pub fn reply(&mut self, deadline: Instant, stop: &Stop) -> Result<Reply, Error> {
        let line = loop {
            stop.check()?;
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(GLANCE)) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
                Err(RecvTimeoutError::Timeout) => return Err(self.lost("did not answer in time".to_owned())),
                Err(RecvTimeoutError::Disconnected) => {
                    self.ended(FAREWELL);
                    return Err(self.lost(self.end_in_words()));
                }
            }
        };
        match serde_json::from_str(&line) {
            Ok(Reply::Error { reason, .. }) => Err(Error::Worker { name: self.name.clone(), reason }),
            Ok(reply) => Ok(reply),
            Err(error) => {
                let said: String = line.chars().take(200).collect();
                Err(self.lost(format!("said `{said}`, which is not understood: {error}")))
            }
        }
    }

    /// An error with the last lines of the worker's log.
    fn lost(&self, what: String) -> Error {
        let words = last_words(&self.log);
        let reason = if words.is_empty() { what } else { format!("{what}; its last words: {words}") };
        Error::Worker { name: self.name.clone(), reason }
    }

    fn end_in_words(&self) -> String {
        let Some(end) = self.end() else { return "closed its output".to_owned() };
        match (end.exit_status(), end.terminating_signal()) {
            (Some(status), _) => format!("ended with status {status}"),
            (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
        }
    }

    /// How it ended, if it has. It is not yet waited for, so that its number, which is that of its group, stays its own.
    fn end(&self) -> Option<WaitIdStatus> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&self.child)), options).ok().flatten()
    }

    /// Whether it has ended, or does so within this time.
    pub(super) fn ended(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while self.lives() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// Says that no more is wanted. Several workers can be told before the first is waited for.
    pub fn dismiss(&mut self) {
        self.orders = None;
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.dismiss();
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.dismiss();
        self.ended(FAREWELL);
        // Also what it started and left behind.
        self.kill();
        let _ = self.child.wait();
    }
}

/// Writes beside us: orders can be longer than a pipe holds, and a worker that hangs does not read. The input ends when
/// there are no more orders.
fn speak(mut input: ChildStdin) -> Sender<Vec<u8>> {
    let (send, receive) = channel::<Vec<u8>>();
    std::thread::spawn(move || {
        for line in receive {
            if input.write_all(&line).is_err() {
                break;
            }
        }
    });
    send
}

/// Reads lines beside us until the output ends. A library that prints something is no reply.
fn listen(output: impl io::Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(output).split(b'\n').map_while(Result::ok);
        for line in lines.filter(|line| line.starts_with(b"{")) {
            if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
    receive
}

/// The last lines of a log, as one.
fn last_words(log: &Path) -> String {
    let text = tail(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" | ");
    let skipped = last.chars().count().saturating_sub(LAST_WORDS);
    last.chars().skip(skipped).collect()
}

fn tail(log: &Path) -> io::Result<String> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = File::open(log)?;
    let length = fs::metadata(log)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The kernel kills the command when the thread that starts it is gone. It survives `exec`, so it also holds for what
/// the command becomes.
pub(crate) fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let ask = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // Whoever died before the question was asked will not be noticed by it.
        match rustix::process::getppid() {
            Some(now) if now == parent => Ok(()),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    };
    // SAFETY: between fork and exec only two system calls are made, and nothing is allocated.
    unsafe { command.pre_exec(ask) };
}
