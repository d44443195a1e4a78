//! Asking a driver in a process of its own, which may crash or hang without us.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use lab::Probe;

/// A machine with many GPUs which nobody keeps awake takes some seconds for each.
const PATIENCE: Duration = Duration::from_secs(60);

/// For what was printed before the end to arrive.
const LAST_WORDS: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub enum Answer {
    Probe(Probe),
    /// It ended in order, with a reason.
    Refused(String),
    Crashed {
        signal: i32,
    },
    Silent,
}

/// A question, with changes to the environment in which it is asked.
pub struct Question<'a> {
    pub driver: &'a OsStr,
    pub set: Vec<(&'static str, OsString)>,
    pub unset: &'a [&'static str],
}

impl Question<'_> {
    /// Gives also the process that was asked.
    pub fn ask(&self) -> Result<(u32, Answer)> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let mut command = Command::new(program);
        command.arg("probe").arg("--driver").arg(self.driver);
        command.envs(self.set.iter().map(|(name, value)| (name, value)));
        for name in self.unset {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start a process to ask the driver in")?;
        let said = child.stdout.take().map(listen);
        let complained = child.stderr.take().map(listen);
        let heard = |from: Option<Receiver<String>>| {
            from.and_then(|from| from.recv_timeout(LAST_WORDS).ok()).unwrap_or_default()
        };
        let answer = match wait(&mut child)? {
            None => Answer::Silent,
            Some(status) => judge(status, &heard(said), &heard(complained)),
        };
        Ok((child.id(), answer))
    }
}

/// Reads to the end beside us, so that neither side waits for the other.
fn listen(mut pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        let _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receive
}

/// Until it ends by itself, or is ended.
fn wait(child: &mut Child) -> Result<Option<ExitStatus>> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().context("cannot wait for the process that asks the driver")? {
            return Ok(Some(status));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().context("cannot end the process that asks the driver")?;
    child.wait().context("cannot wait for the process that asks the driver")?;
    Ok(None)
}

fn judge(status: ExitStatus, said: &str, complained: &str) -> Answer {
    if let Some(signal) = status.signal() {
        return Answer::Crashed { signal };
    }
    match said.parse() {
        Ok(probe) if status.success() => Answer::Probe(probe),
        _ => {
            let last = complained.lines().rfind(|line| !line.trim().is_empty());
            let reason = last.map_or("it gave no reason", |line| line.trim_start_matches("ebb: "));
            Answer::Refused(reason.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_process_is_part_of_its_answer() {
        let good = "driver 13000 0 CUDA_SUCCESS\n";
        assert!(matches!(judge(ExitStatus::from_raw(0), good, ""), Answer::Probe(_)));
        assert!(matches!(judge(ExitStatus::from_raw(11), good, ""), Answer::Crashed { signal: 11 }));
        let refused = judge(ExitStatus::from_raw(1 << 8), "", "noise\nebb: cannot open it\n\n");
        assert!(matches!(refused, Answer::Refused(reason) if reason == "cannot open it"));
        assert!(matches!(judge(ExitStatus::from_raw(0), "nonsense", ""), Answer::Refused(_)));
    }
}
