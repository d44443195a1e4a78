//! Where a demo takes place: a folder of its own with a card of its own, so that it disturbs no other software GPU, no
//! other tenant and no other daemon, and leaves nothing when it ends. That of a demo that was killed goes with the next
//! run, like the folder of any run.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use daemon::Place;
use daemon::report::Process;
use lab::Actor;
use model::Class;
use softgpu::card::Defaults;
use telemetry::Reading;

use crate::arguments::DemoOptions;
use crate::beside;
use crate::run::environment::Setting;
use crate::run::folder::RunFolder;

/// How long the stage's daemon, which the first tenant under ebb starts, stays without tenants.
const DAEMON_IDLE: Duration = Duration::from_secs(1);

/// What stands between a tenant and the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// The shim, which counts and changes nothing: the driver shares the GPU in its own way.
    Driver,
    /// The shim of a tenant under `ebb run`.
    Ebb,
}

pub struct Stage {
    folder: RunFolder,
    /// The runtime folder of everybody on this stage.
    runtime: PathBuf,
    program: PathBuf,
    driver: PathBuf,
    /// How the card is made; `None` if the driver is not the software GPU beside this program.
    card: Option<Defaults>,
}

impl Stage {
    pub fn set(options: &DemoOptions) -> Result<Stage> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let (driver, card) = match &options.driver {
            Some(driver) => (std::path::absolute(driver).context("cannot find the current folder")?, None),
            None => (beside::software_driver()?, Some(Defaults::default())),
        };
        let folder = RunFolder::create()?;
        let runtime = folder.path().join("demo");
        let made = std::fs::DirBuilder::new().mode(0o700).create(&runtime);
        made.with_context(|| format!("cannot make the folder {}", runtime.display()))?;
        Ok(Stage { folder, runtime, program, driver, card })
    }

    pub fn card(&self) -> Option<Defaults> {
        self.card
    }

    /// What the tenants' ledgers say.
    pub fn readings(&self) -> Vec<Reading> {
        self.folder.readings().0
    }

    /// How a tenant is started: `ebb run` and the hidden verb.
    pub fn actor(&self, class: Class, number: usize, sharing: Sharing) -> Actor {
        let (class_word, name) = (class.to_string(), format!("{class}-{number}"));
        let run: &[&str] = match sharing {
            Sharing::Driver => &["run", "--no-daemon", "--"],
            Sharing::Ebb => &["run", "--class", &class_word, "--name", &name, "--"],
        };
        let mut arguments: Vec<OsString> = run.iter().map(OsString::from).collect();
        arguments.push(self.program.clone().into());
        arguments.extend(["tenant", "--driver", "libcuda.so.1"].map(OsString::from));
        Actor { class, program: self.program.clone(), arguments, environment: self.environment() }
    }

    /// Who has a seat now, by what the daemon says; nobody where there is no daemon.
    pub fn seats(&self) -> Vec<Process> {
        let report = daemon::client::report(&self.place());
        report.map_or_else(
            |_| Vec::new(),
            |report| report.gpus.into_iter().flat_map(|gpu| gpu.processes).collect(),
        )
    }

    fn place(&self) -> Place {
        Place::at(&self.runtime)
    }

    fn environment(&self) -> Vec<Setting> {
        let at = |path: &Path| path.as_os_str().to_owned();
        let mut environment = vec![
            ("EBB_RUNTIME_DIR", at(&self.runtime)),
            ("EBB_RUN", at(self.folder.path())),
            ("EBB_DRIVER", at(&self.driver)),
            ("EBB_SOFTGPU", "demo".into()),
            ("EBB_DAEMON_IDLE", DAEMON_IDLE.as_secs().to_string().into()),
        ];
        if let Some(Defaults { sms, memory_bytes, domain, timeslice, switch_cost }) = self.card {
            let text = |number: u64| number.to_string().into();
            environment.extend([
                ("EBB_SOFTGPU_SMS", text(sms.into())),
                ("EBB_SOFTGPU_MEMORY_MIB", text(memory_bytes >> 20)),
                ("EBB_SOFTGPU_DOMAIN", domain.to_string().into()),
                ("EBB_SOFTGPU_TIMESLICE_US", text(timeslice.0 / 1000)),
                ("EBB_SOFTGPU_SWITCH_US", text(switch_cost.0 / 1000)),
            ]);
        }
        environment
    }
}

impl Drop for Stage {
    /// The daemon ends by itself. Its folder should not go before it does, nor should we.
    fn drop(&mut self) {
        let begin = Instant::now();
        while self.place().is_taken() && begin.elapsed() < DAEMON_IDLE * 10 {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
