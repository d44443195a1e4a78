//! An experiment: phases, each with a few tenants as separate processes, started together.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use model::Class;

use crate::{Error, Report};

/// A tenant to be: what it does, and the command that runs `lab::serve` for it.
#[derive(Clone, Debug)]
pub struct Actor {
    pub class: Class,
    pub program: PathBuf,
    /// Arguments before those that name the job.
    pub arguments: Vec<OsString>,
    pub environment: Vec<(&'static str, OsString)>,
}

/// What came of a phase.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub latency: Option<Report>,
    pub best_effort: Vec<Report>,
}

impl Outcome {
    pub fn reports(&self) -> impl Iterator<Item = &Report> {
        self.latency.iter().chain(&self.best_effort)
    }

    /// Adds another round with the same tenants.
    pub fn add(&mut self, round: &Outcome) {
        for (sum, report) in self.latency.iter_mut().zip(&round.latency) {
            sum.add(report);
        }
        for (sum, report) in self.best_effort.iter_mut().zip(&round.best_effort) {
            sum.add(report);
        }
    }

    /// Iterations per second of all best-effort tenants; `None` if there were none.
    pub fn best_effort_rate(&self) -> Option<f64> {
        (!self.best_effort.is_empty()).then(|| self.best_effort.iter().map(Report::rate).sum())
    }
}

/// How long a phase lasts, and what its arrivals follow from.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    pub span: Duration,
    pub seed: u64,
}

impl Experiment {
    /// Runs one phase. `progress` is told how far it is, in per cent.
    pub fn run(&self, actors: &[Actor], progress: &mut dyn FnMut(u64)) -> Result<Outcome, Error> {
        let mut running =
            actors.iter().map(|actor| Running::start(self, actor)).collect::<Result<Vec<_>, _>>()?;
        for tenant in &mut running {
            tenant.expect_ready()?;
        }
        for tenant in &mut running {
            tenant.go()?;
        }
        let (mut outcome, mut furthest) = (Outcome::default(), 0);
        for tenant in &mut running {
            let report = tenant.finish(&mut |percent| {
                furthest = percent.max(furthest);
                progress(furthest);
            })?;
            match tenant.class {
                Class::Latency => outcome.latency = Some(report),
                Class::BestEffort => outcome.best_effort.push(report),
            }
        }
        Ok(outcome)
    }
}

/// A tenant's process. Dropped, it is ended: an experiment leaves nobody behind.
struct Running {
    class: Class,
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(experiment: &Experiment, actor: &Actor) -> Result<Running, Error> {
        let mut command = Command::new(&actor.program);
        command.args(&actor.arguments);
        command.args(["--class", &actor.class.to_string(), "--seed", &experiment.seed.to_string()]);
        command.args(["--seconds", &experiment.span.as_secs_f64().to_string()]);
        command.envs(actor.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(Error::Start)?;
        let stdout = child.stdout.take().expect("standard output was piped");
        Ok(Running { class: actor.class, child, lines: BufReader::new(stdout) })
    }

    fn expect_ready(&mut self) -> Result<(), Error> {
        match self.line()?.as_str() {
            "ready" => Ok(()),
            other => Err(Error::Protocol(other.to_owned())),
        }
    }

    fn go(&mut self) -> Result<(), Error> {
        let stdin = self.child.stdin.as_mut().expect("standard input was piped");
        writeln!(stdin, "go").map_err(Error::Start)
    }

    fn finish(&mut self, progress: &mut dyn FnMut(u64)) -> Result<Report, Error> {
        loop {
            let line = self.line()?;
            match line.strip_prefix("progress ").and_then(|percent| percent.parse().ok()) {
                Some(percent) => progress(percent),
                None => return line.parse(),
            }
        }
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        let ended = |reason| Error::Tenant { tenant: name(self.class), reason };
        match self.lines.read_line(&mut line) {
            Ok(0) => {
                let status =
                    self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
                Err(ended(format!("{status} (its message stands above, if it had one)")))
            }
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(ended(error.to_string())),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A tenant that has reported is about to end by itself; one that has not must not outlive the experiment.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn name(class: Class) -> &'static str {
    match class {
        Class::Latency => "latency",
        Class::BestEffort => "best-effort",
    }
}
