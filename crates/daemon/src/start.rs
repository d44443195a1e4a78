//! Starting a daemon that outlives its starter.
//!
//! It is started as a grandchild: its parent ends at once, so it becomes nobody's child in the tree of a command, which
//! might otherwise meet a child it does not know. It has no terminal, no folder that could not be unmounted, and none of the
//! starter's descriptors: a pipe that somebody reads to its end must not be kept open by us.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use installation::runtime;
use model::Nanos;

use crate::request::{Answer, Request};
use crate::{Error, Place, Scope, client};

/// How long whoever needs a daemon waits for one.
const PATIENCE: Nanos = Nanos::from_millis(2_000);

/// After how long without an answer another one is started: the one that was started may have met one that was ending.
const AGAIN: Nanos = Nanos::from_millis(700);

/// The option by which a daemon knows that it is the grandchild.
pub const DETACHED: &str = "--detached";

/// Asks a daemon, having started one if none answers. `program` is `ebb`.
pub fn ask_or_start(place: &Place, program: &Path, request: &Request) -> Result<Answer, Error> {
    let begin = board::now();
    let mut started: Option<Nanos> = None;
    let mut log = 0;
    loop {
        match client::ask(place, request) {
            Err(Error::NoDaemon { .. }) => {}
            other => return other,
        }
        let now = board::now();
        if now.since(begin) > PATIENCE {
            let said = client::last_words(place, log);
            return Err(Error::Silent { seconds: PATIENCE.0 / 1_000_000_000, said });
        }
        if started.is_none_or(|started| now.since(started) > AGAIN) {
            log = std::fs::metadata(place.log()).map_or(0, |facts| facts.len());
            start(place, program)?;
            started = Some(now);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts the first of two processes and waits for its end, which is when the daemon serves, has failed or has taken too long.
fn start(place: &Place, program: &Path) -> Result<(), Error> {
    let refused = |source| Error::File { path: program.to_owned(), source };
    let mut command = Command::new(program);
    command.args(["daemon", "--on-demand"]);
    // In a folder that somebody has named it stays, even if the machine's daemon comes.
    if !runtime::is_named() {
        command.arg("--make-room");
    }
    clean(&mut command);
    command.env("EBB_RUNTIME_DIR", place.folder());
    let output = command.output().map_err(refused)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().rfind(|line| !line.trim().is_empty());
    let said = said.map(|line| line.trim_start_matches("ebb: "));
    // It may still come; `ask_or_start` waits for it, for a time of its own.
    if said.is_some_and(|said| said.starts_with(SILENT)) {
        return Ok(());
    }
    Err(Error::NotStarted { said: said.map(|said| said.trim_start_matches(NOT_STARTED).to_owned()) })
}

/// What the first of the two begins with when the second has failed, and when it takes too long.
const NOT_STARTED: &str = "the daemon does not start: ";
const SILENT: &str = "the daemon was started and did not answer";

/// The first of two: starts the second, which is the daemon, with the same words. Waits until it serves, and says why it does not.
pub fn detach(program: &Path, words: &[std::ffi::OsString]) -> Result<(), Error> {
    detach_at(&Place::prepare(Scope::User)?, program, words)
}

fn detach_at(place: &Place, program: &Path, words: &[std::ffi::OsString]) -> Result<(), Error> {
    let log = place.open_log()?;
    let from = log.metadata()?.len();
    // SAFETY: marks descriptors to be closed when another program begins, and touches no memory. Where the kernel does
    // not know this, they stay open, as in any other program.
    // By number: the function is younger than the oldest libc that packages are built for.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    let mut command = Command::new(program);
    command.args(words).arg(DETACHED);
    // A pipe that somebody reads to its end must not be kept open by the daemon.
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let mut daemon = command.spawn().map_err(|source| Error::File { path: program.to_owned(), source })?;
    let begin = board::now();
    while board::now().since(begin) < PATIENCE {
        match daemon.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(_) => {
                return Err(Error::NotStarted { said: said(place, from) });
            }
            None if client::listens(place) => return Ok(()),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    Err(Error::Silent { seconds: PATIENCE.0 / 1_000_000_000, said: said(place, from) })
}

/// What the daemon has said last in its log, since there were so many bytes there.
fn said(place: &Place, from: u64) -> Option<String> {
    client::last_words(place, from).map(|line| line.trim_start_matches("ebb: ").to_owned())
}

/// The second: no terminal any more, and files for nobody else.
pub fn settle() {
    // It fails for the leader of a group only, which a grandchild is not.
    let _ = rustix::process::setsid();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

/// Without what belongs to the command: its input, its preloads, its place among tenants.
fn clean(command: &mut Command) {
    command.stdin(Stdio::null());
    for (name, value) in std::env::vars_os() {
        let begins = |with| name.to_str().is_some_and(|name| name.starts_with(with));
        // Folders are the same for both, wherever the daemon will stand.
        if ["EBB_MACHINE_DIR", "EBB_SOFTGPU_DIR"].iter().any(|one| name == *one) {
            command.env(&name, std::path::absolute(&value).unwrap_or(value.into()));
            continue;
        }
        let commands = begins("EBB_") && !begins("EBB_DAEMON_");
        if commands || name == "LD_PRELOAD" || name == "LD_LIBRARY_PATH" {
            command.env_remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detach(folder: &Path, script: &str) -> Error {
        let words = ["-c", script].map(Into::into);
        detach_at(&Place::at(folder), Path::new("/bin/sh"), &words).unwrap_err()
    }

    #[test]
    fn a_daemon_that_does_not_begin_in_time_is_told_with_what_it_said_last() {
        let folder = tempfile::tempdir().unwrap();
        let error = detach(folder.path(), "echo ebb: waits for something; sleep 10");
        let told = error.to_string();
        assert!(told.starts_with(SILENT) && told.contains(" within 2 s: waits for something"), "{told}");
    }

    #[test]
    fn a_daemon_that_fails_is_told_with_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let told = detach(folder.path(), "echo ebb: there is no room; exit 1").to_string();
        assert_eq!(told, format!("{NOT_STARTED}there is no room"));
    }
}
