//! The second process of a case.

use crate::driver::Driver;
use anyhow::{Context as _, Result, bail, ensure};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A second process of a case: this binary again, running one of the suite's peer programs on the same driver.
///
/// The peer's input stays open until [`Peer::finish`], which is how a case tells it to come to an end.
pub struct Peer {
    name: String,
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Peer {
    pub fn start(driver: &Driver, name: &str, arguments: &[String]) -> Result<Peer> {
        let program = std::env::current_exe().context("cannot find the running binary")?;
        let mut command = Command::new(program);
        command.arg("--driver").arg(driver.path()).arg("--peer").arg(name).arg("--").args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().context("cannot start a peer process")?;
        let output = BufReader::new(child.stdout.take().expect("stdout was asked to be a pipe"));
        Ok(Peer { name: name.to_owned(), child, output })
    }

    /// The next line that the peer prints.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if line.is_empty() {
            let status = self.child.wait()?;
            bail!("peer {} ended with {status} and said nothing", self.name);
        }
        Ok(line)
    }

    /// Waits until the peer says that it has come so far.
    pub fn expect_line(&mut self, want: &str) -> Result<()> {
        let line = self.line()?;
        ensure!(line.trim() == want, "peer {} said {line:?}, wanted {want:?}", self.name);
        Ok(())
    }

    /// Ends it at once, as the operating system ends a process.
    pub fn kill(self) {
        drop(self);
    }

    /// Waits for the peer; its failure is the case's failure. Gives back what it printed.
    pub fn finish(mut self) -> Result<String> {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.output.read_to_string(&mut said)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "peer {} ended with {status}: {}", self.name, said.trim());
        Ok(said)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing of it shall outlive the case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
