//! Running in a fork: the way of a data-loader worker, whose parent has loaded the driver but not yet used it.

use anyhow::{Result, bail};
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How the fork of a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Exit(u8),
    Signal(i32),
    /// It had to be ended.
    Timeout,
}

/// Forks; the fork does `work` and becomes what it gives, the parent ends as its fork did.
///
/// To be called while the process has one thread.
pub fn instead(work: impl FnOnce() -> Result<ExitCode>) -> Result<ExitCode> {
    let fork = match fork()? {
        None => return work(),
        Some(fork) => fork,
    };
    match fork.wait(None)? {
        End::Exit(code) => Ok(ExitCode::from(code)),
        End::Signal(signal) => {
            // SAFETY: the signal's default action, no handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            // SAFETY: raising a signal has no memory effects.
            unsafe { libc::raise(signal) };
            bail!("the fork ended by signal {signal}, which does not end this process");
        }
        End::Timeout => unreachable!("no time was set"),
    }
}

/// Does `work` in a fork, which ends with the code it gives, and waits for that, but not for ever.
pub fn beside(timeout: Duration, work: impl FnOnce() -> u8) -> Result<End> {
    match fork()? {
        Some(fork) => fork.wait(Some(timeout)),
        None => {
            let code = work();
            // SAFETY: ends the process at once. Nothing of the parent's that exit handlers would see to is the fork's.
            unsafe { libc::_exit(i32::from(code)) }
        }
    }
}

struct Fork(libc::pid_t);

/// The fork as seen by its parent; `None` in the fork itself.
fn fork() -> Result<Option<Fork>> {
    // SAFETY: the fork goes on with the calling thread alone; what other threads hold locked, it must not need. Both
    // callers above run code of the suite and of the driver only, and that a driver copes is what they are for.
    match unsafe { libc::fork() } {
        -1 => bail!("cannot fork: {}", io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Some(Fork(pid))),
    }
}

impl Fork {
    fn wait(self, timeout: Option<Duration>) -> Result<End> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let mut status = 0;
            let options = if deadline.is_some() { libc::WNOHANG } else { 0 };
            // SAFETY: a place for the status of our own child.
            match unsafe { libc::waitpid(self.0, &mut status, options) } {
                0 if deadline.is_some_and(|deadline| Instant::now() >= deadline) => return self.end(),
                0 => std::thread::sleep(Duration::from_millis(2)),
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                -1 => bail!("cannot wait for the fork: {}", io::Error::last_os_error()),
                _ if libc::WIFEXITED(status) => {
                    return Ok(End::Exit(u8::try_from(libc::WEXITSTATUS(status))?));
                }
                _ => return Ok(End::Signal(libc::WTERMSIG(status))),
            }
        }
    }

    fn end(self) -> Result<End> {
        // SAFETY: kill has no memory effects; the process is our child and has not been waited for.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
        self.wait(None).map(|_| End::Timeout)
    }
}
