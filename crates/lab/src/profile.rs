//! Taking profiles: a worker is started for each workload and asked which kernels its request consists of. What a profile
//! is, `scenario` knows.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use scenario::profile::Profile;
use scenario::{Task, Torch, Worker as Kind, Workload};

use crate::crew::{Order, Reply, Spec, Start, Stop, Stream, TenantSpec, Worker};
use crate::{Error, workers};

/// To load a framework and a model, and to trace a few requests.
const PATIENCE: Duration = Duration::from_secs(300);

/// Whoever takes profiles, one after another.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// The interpreter that has PyTorch.
    pub python: OsString,
    /// A folder of its own, for workers and their logs.
    pub folder: PathBuf,
    /// What is noted as the command that recorded.
    pub command: String,
}

impl Recorder {
    /// Records one workload; on the machine's GPU, which should have nothing else to do.
    pub fn record(&self, workload: &Workload, stop: &Stop) -> Result<Profile, Error> {
        let name = workload.id();
        let lost = |reason: String| Error::Worker { name: name.clone(), reason };
        if workload.worker() == Kind::Synthetic {
            return Err(lost("it is synthetic, and has nothing that could be recorded".to_owned()));
        }
        let mut worker =
            Worker::start(name.clone(), &self.start(workload).map_err(|error| lost(error.to_string()))?)?;
        worker.await_ready(PATIENCE, stop)?;
        worker.tell(&Order::Record { tenant: 0 })?;
        let Reply::Recorded { profile, .. } = worker.reply(Instant::now() + PATIENCE, stop)? else {
            return Err(lost("the worker was asked for a profile and said something else".to_owned()));
        };
        let mut profile = Profile::parse(&profile.to_string(), &name)?;
        if profile.workload != name {
            return Err(lost(format!("the worker recorded {}", profile.workload)));
        }
        profile.recorded.insert("command".to_owned(), self.command.clone());
        Ok(profile)
    }

    fn start(&self, workload: &Workload) -> std::io::Result<Start> {
        let script = workers::install(&self.folder)?;
        let name = workload.id();
        let training = matches!(workload, Workload::Torch(Torch { task: Task::Training, .. }));
        let tenant = TenantSpec {
            name: name.clone(),
            class: if training { "best-effort" } else { "latency" }.to_owned(),
            workload: serde_json::to_value(workload)?,
            stream: Stream::Normal,
        };
        let spec = self.folder.join(format!("{name}.json"));
        fs::write(&spec, serde_json::to_vec(&Spec { tenants: vec![tenant], slowdown: 1.0, tiny: false })?)?;
        let words = vec![self.python.clone(), script.into(), spec.into()];
        Ok(Start { words, environment: Vec::new(), log: self.folder.join(format!("{name}.log")) })
    }
}
