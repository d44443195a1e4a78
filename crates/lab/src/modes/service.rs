//! A daemon of ours: started in the background, ended when the campaign ends, and by the kernel when the campaign is
//! killed.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::{Absence, Environment};
use crate::crew::die_with_parent;

/// How long a service may take to end when it is asked to.
const FAREWELL: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(10);

pub struct Service {
    name: String,
    child: Child,
}

impl Service {
    /// Starts a program that stays in the foreground; what it prints goes to `log`.
    pub fn start(
        name: &str,
        words: &[OsString],
        environment: &Environment,
        log: &Path,
    ) -> Result<Service, Absence> {
        let failed = |error| Absence(format!("{name} cannot be started: {error}"));
        let output = File::create(log).map_err(failed)?;
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .stdin(Stdio::null())
            .stderr(output.try_clone().map_err(failed)?)
            .stdout(output);
        for (variable, value) in environment {
            match value {
                Some(value) => command.env(variable, value),
                None => command.env_remove(variable),
            };
        }
        command.process_group(0);
        die_with_parent(&mut command);
        let child = command.spawn().map_err(failed)?;
        Ok(Service { name: name.to_owned(), child })
    }

    /// Waits until it is up, by a question that whoever started it knows to ask.
    pub fn await_up(&mut self, patience: Duration, mut is_up: impl FnMut() -> bool) -> Result<(), Absence> {
        let deadline = Instant::now() + patience;
        while !is_up() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Absence(format!("{} ended at once ({status})", self.name)));
            }
            if Instant::now() > deadline {
                return Err(Absence(format!("{} did not come up", self.name)));
            }
            std::thread::sleep(GLANCE);
        }
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let pid = Pid::from_child(&self.child);
        let _ = kill_process(pid, Signal::TERM);
        let deadline = Instant::now() + FAREWELL;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = kill_process_group(pid, Signal::KILL);
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(GLANCE);
        }
    }
}
