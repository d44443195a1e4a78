//! An experiment: phases, each with one or two tenants as separate processes, started together.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use model::Class;

use crate::{Error, Report};

/// Who runs in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    LatencyAlone,
    BestEffortAlone,
    Together,
}

impl Phase {
    pub const ALL: [Phase; 3] = [Phase::LatencyAlone, Phase::BestEffortAlone, Phase::Together];

    fn tenants(self) -> &'static [Class] {
        match self {
            Phase::LatencyAlone => &[Class::Latency],
            Phase::BestEffortAlone => &[Class::BestEffort],
            Phase::Together => &[Class::Latency, Class::BestEffort],
        }
    }
}

/// What came of a phase.
#[derive(Clone, Copy, Debug, Default)]
pub struct Result {
    pub latency: Option<Report>,
    pub best_effort: Option<Report>,
}

/// How far a phase is, in per cent, and of which phase it is said.
pub type Progress<'a> = dyn FnMut(Phase, u64) + 'a;

/// How tenants are started: a command that runs `lab::serve` for a class, a span and a seed.
pub struct Experiment {
    pub program: PathBuf,
    /// Arguments before those that name the job.
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub span: Duration,
    pub seed: u64,
}

impl Experiment {
    pub fn run(&self, phase: Phase, progress: &mut Progress<'_>) -> std::result::Result<Result, Error> {
        let mut running = Vec::new();
        for &class in phase.tenants() {
            running.push(Running::start(self, class)?);
        }
        for tenant in &mut running {
            tenant.expect_ready()?;
        }
        for tenant in &mut running {
            tenant.go()?;
        }
        let mut result = Result::default();
        for tenant in &mut running {
            let report = tenant.finish(&mut |percent| progress(phase, percent))?;
            match tenant.class {
                Class::Latency => result.latency = Some(report),
                Class::BestEffort => result.best_effort = Some(report),
            }
        }
        Ok(result)
    }
}

/// A tenant's process. Dropped, it is ended: an experiment leaves nobody behind.
struct Running {
    class: Class,
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(experiment: &Experiment, class: Class) -> std::result::Result<Running, Error> {
        let mut command = Command::new(&experiment.program);
        command.args(&experiment.arguments);
        command.args(["--class", &class.to_string(), "--seed", &experiment.seed.to_string()]);
        command.args(["--seconds", &experiment.span.as_secs_f64().to_string()]);
        command.envs(experiment.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(Error::Start)?;
        let stdout = child.stdout.take().expect("standard output was piped");
        Ok(Running { class, child, lines: BufReader::new(stdout) })
    }

    fn expect_ready(&mut self) -> std::result::Result<(), Error> {
        match self.line()?.as_str() {
            "ready" => Ok(()),
            other => Err(Error::Protocol(other.to_owned())),
        }
    }

    fn go(&mut self) -> std::result::Result<(), Error> {
        let stdin = self.child.stdin.as_mut().expect("standard input was piped");
        writeln!(stdin, "go").map_err(Error::Start)
    }

    fn finish(&mut self, progress: &mut dyn FnMut(u64)) -> std::result::Result<Report, Error> {
        loop {
            let line = self.line()?;
            match line.strip_prefix("progress ").and_then(|percent| percent.parse().ok()) {
                Some(percent) => progress(percent),
                None => return line.parse(),
            }
        }
    }

    fn line(&mut self) -> std::result::Result<String, Error> {
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
