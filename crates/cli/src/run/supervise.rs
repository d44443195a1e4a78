//! A command as a child: started, signalled, waited for.
//!
//! While the command runs, ebb should not be noticed. The command stays in our process group, so the terminal
//! serves both. A signal from the terminal goes to the whole group and has reached the command already; one that
//! somebody sent to us by `kill` was meant for the command and is passed on. When the command stops at Ctrl-Z, so
//! do we, after it and not before: a shell takes the terminal back as soon as we have stopped, and the command may
//! still be tidying the screen. Signals that were ignored when we started stay ignored, here and in the command,
//! as `nohup` wants.

use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};

use super::process;

/// Those that would end or stop us, or that a command may wait for. `SIGTTOU` is not among them: with a handler of
/// ours, writing to a terminal that does not want it would be tried again without end.
const PASSED_ON: [Signal; 16] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::TERM,
    Signal::CONT,
    Signal::TSTP,
    Signal::TTIN,
    Signal::XCPU,
    Signal::VTALARM,
    Signal::PROF,
    Signal::WINCH,
    Signal::IO,
    Signal::POWER,
];

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exited(u8),
    Killed(u8),
}

impl End {
    /// The status by which shells tell how a command ended.
    pub fn status(self) -> u8 {
        match self {
            End::Exited(status) => status,
            End::Killed(signal) => signal.saturating_add(128),
        }
    }

    fn of(status: WaitStatus) -> Option<End> {
        let small = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
        let exited = status.exit_status().map(|status| End::Exited(small(status)));
        exited.or_else(|| status.terminating_signal().map(|signal| End::Killed(small(signal))))
    }
}

/// The signals to come, caught from here on. Made before the command is started, so that none is lost between.
pub struct Signals(SignalsInfo<WithOrigin>);

impl Signals {
    pub fn catch() -> Result<Signals> {
        let ignored = ignored_signals(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
        let wanted = PASSED_ON.iter().map(|signal| signal.as_raw());
        let wanted = wanted.filter(|signal| ignored & (1 << (signal - 1)) == 0);
        let signals = SignalsInfo::new(wanted.chain([Signal::CHILD.as_raw()]));
        Ok(Signals(signals.context("cannot catch signals")?))
    }
}

/// A mask of the signals that this process was told to ignore, as `/proc` writes it.
fn ignored_signals(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The command, running.
pub struct Running {
    pid: Pid,
    signals: Signals,
    began: Instant,
    /// We stopped because the command did, and nobody has continued us since.
    stopped: bool,
}

impl Running {
    pub fn start(command: &mut Command, signals: Signals) -> io::Result<Running> {
        let began = Instant::now();
        let child = command.spawn()?;
        Ok(Running { pid: Pid::from_child(&child), signals, began, stopped: false })
    }

    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until the command has ended, and says how and after what time.
    pub fn wait(mut self) -> Result<(End, Duration)> {
        loop {
            if let Some(end) = self.look()? {
                return Ok((end, self.began.elapsed()));
            }
            for origin in self.signals.0.wait() {
                self.pass_on(&origin);
            }
        }
    }

    fn pass_on(&mut self, origin: &Origin) {
        let Some(signal) = meant_for(self.pid, origin) else { return };
        // A shell continues the whole group, so the command goes on already, unless we alone were continued.
        let woken = signal == Signal::CONT && std::mem::take(&mut self.stopped);
        if woken && !process::stopped(self.pid()) {
            return;
        }
        // What can go wrong: it has ended, and the next look will tell; or it runs as somebody else by now and is not
        // ours to signal.
        let _ = rustix::process::kill_process(self.pid, signal);
    }

    /// What has become of the command since the last look.
    fn look(&mut self) -> Result<Option<End>> {
        loop {
            let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
            // Any child: as the first process of a container we are given its orphans, and owe them the last service.
            let status = match rustix::process::wait(options) {
                Ok(None) => return Ok(None),
                Ok(Some((pid, status))) if pid == self.pid => status,
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error).context("cannot wait for the command"),
            };
            if let Some(end) = End::of(status) {
                return Ok(Some(end));
            }
            if status.stopping_signal().is_some_and(asked_by_terminal) {
                self.stopped = true;
                rustix::process::kill_process(rustix::process::getpid(), Signal::STOP)
                    .context("cannot stop with the command")?;
            }
        }
    }
}

/// Whether a stop is one of those that a shell should see. `SIGSTOP` is not: who sends it to the command alone will
/// continue the command alone, and would leave us behind.
fn asked_by_terminal(signal: i32) -> bool {
    [Signal::TSTP, Signal::TTIN, Signal::TTOU].iter().any(|terminal| terminal.as_raw() == signal)
}

/// The signal that was meant for the command: sent by a process, and not by the command itself.
fn meant_for(command: Pid, origin: &Origin) -> Option<Signal> {
    let signal = PASSED_ON.into_iter().find(|signal| signal.as_raw() == origin.signal)?;
    let by_command = origin.process.is_some_and(|process| process.pid == command.as_raw_nonzero().get());
    (matches!(origin.cause, Cause::Sent(_)) && !by_command).then_some(signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_found() {
        let status = "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert_eq!(ignored_signals(status), 0x1001);
        assert_eq!(ignored_signals("SigIgn:\tnonsense"), 0);
    }

    #[test]
    fn a_signal_becomes_a_status_as_in_a_shell() {
        assert_eq!(End::Killed(15).status(), 143);
        assert_eq!(End::Killed(9).status(), 137);
        assert_eq!(End::Exited(7).status(), 7);
    }
}
