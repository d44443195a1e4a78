//! Where a demo takes place: a folder of its own with cards and configurations of its own, so that it disturbs no other software
//! GPU, no other tenant and no other daemon, is not disturbed by what the user has set, and leaves nothing when it ends. That of a
//! demo that was killed goes with the next run, like the folder of any run.
//!
//! Each scene has its *ground*: a runtime folder with a card and, once the first tenant under ebb has started it, a daemon. The first is
//! isolated, with everything as by default. That of launch-bound requests is shared: to fill gaps of less than a millisecond
//! by switching contexts would take longer than they last.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use daemon::Place;
use daemon::report::Process;
use lab::{Actor, Scene};
use model::{Class, Domain, Nanos};
use softgpu::card::Defaults;
use telemetry::Reading;

use crate::arguments::DemoOptions;
use crate::beside;
use crate::run::environment::Setting;
use crate::run::folder::RunFolder;

/// How long the stage's daemon, which the first tenant under ebb starts, stays without tenants.
const DAEMON_IDLE: Duration = Duration::from_secs(1);

const SCENES: [Scene; 2] = [Scene::Bursts, Scene::LaunchBound];

/// What stands between a tenant and the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// The shim, which counts and changes nothing: the driver shares the GPU in its own way.
    Driver,
    /// The shim of a tenant under `ebb run`.
    Ebb,
}

/// How short blocks come to run in the gaps of launch-bound requests: each may take up to so long to leave. The controller would find
/// out by itself that these requests bear it, in some thousand of them; a demo has a few hundred.
const BESIDE: &str = "400us";
/// The second card is small: blocks that are a tenth as long are ten times as many to execute, on the same few processors.
const SMS_FOR_SHORT_BLOCKS: u32 = 32;

pub struct Stage {
    folder: RunFolder,
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
        let stage = Stage { folder: RunFolder::create()?, program, driver, card };
        for scene in SCENES {
            stage.prepare(scene)?;
        }
        Ok(stage)
    }

    /// Makes the ground of a scene, with the configuration of its daemon.
    fn prepare(&self, scene: Scene) -> Result<()> {
        let runtime = self.runtime(scene);
        let settings = self.settings(scene);
        let file = settings.join("ebb/ebb.toml");
        let make = || {
            let mut maker = std::fs::DirBuilder::new();
            maker.mode(0o700).create(&runtime)?;
            maker.recursive(true).create(settings.join("ebb"))?;
            std::fs::write(&file, self.configuration(scene))
        };
        make().with_context(|| format!("cannot make {}", file.display()))
    }

    fn configuration(&self, scene: Scene) -> String {
        let domain = domain(scene);
        let mut text = format!("schema_version = 1\ndomain = \"{domain}\"\n");
        if domain == Domain::Shared {
            // A software GPU needs no MPS, also where there is one for a real card.
            text += if self.card.is_some() { "mps = false\n" } else { "" };
        }
        // Phases of seconds: what it costs once to learn what requests take alone would be most of what is measured.
        text += "[policy]\nkind = \"slo\"\nsolo_share = 0\n";
        if domain == Domain::Shared {
            text += &format!("beside = \"{BESIDE}\"\n");
        }
        text
    }

    /// The runtime folder of everybody in a scene.
    fn runtime(&self, scene: Scene) -> PathBuf {
        self.folder.path().join(scene.to_string())
    }

    fn settings(&self, scene: Scene) -> PathBuf {
        self.folder.path().join(format!("settings-{scene}"))
    }

    pub fn card(&self, scene: Scene) -> Option<Defaults> {
        let card = Defaults { domain: domain(scene), ..self.card? };
        Some(match scene {
            Scene::Bursts => card,
            Scene::LaunchBound => Defaults { sms: SMS_FOR_SHORT_BLOCKS, ..card },
        })
    }

    /// What the tenants' ledgers say.
    pub fn readings(&self) -> Vec<Reading> {
        self.folder.readings().0
    }

    /// How a tenant is started: `ebb run` and the hidden verb. What its requests may take is told to ebb, if it is known.
    pub fn actor(
        &self,
        scene: Scene,
        class: Class,
        number: usize,
        sharing: Sharing,
        objective: Option<Nanos>,
    ) -> Actor {
        let mut arguments = vec!["run".to_owned()];
        match sharing {
            Sharing::Driver => arguments.push("--no-daemon".to_owned()),
            Sharing::Ebb => {
                arguments.extend([format!("--class={class}"), format!("--name={class}-{number}")]);
                let objective = objective.filter(|_| class == Class::Latency);
                arguments.extend(objective.map(|objective| format!("--slo-p99={}us", objective.0 / 1000)));
            }
        }
        arguments.push("--".to_owned());
        let mut arguments: Vec<OsString> = arguments.into_iter().map(OsString::from).collect();
        arguments.push(self.program.clone().into());
        arguments.extend(["tenant", "--driver", "libcuda.so.1", "--scene"].map(OsString::from));
        arguments.push(scene.to_string().into());
        Actor { class, program: self.program.clone(), arguments, environment: self.environment(scene) }
    }

    /// Who has a seat in a scene now, by what the daemon says; nobody where there is no daemon.
    pub fn seats(&self, scene: Scene) -> Vec<Process> {
        let report = daemon::client::report(&self.place(scene));
        report.map_or_else(
            |_| Vec::new(),
            |report| report.gpus.into_iter().flat_map(|gpu| gpu.processes).collect(),
        )
    }

    fn place(&self, scene: Scene) -> Place {
        Place::at(&self.runtime(scene))
    }

    fn environment(&self, scene: Scene) -> Vec<Setting> {
        let at = |path: &Path| path.as_os_str().to_owned();
        let mut environment = vec![
            ("EBB_RUNTIME_DIR", at(&self.runtime(scene))),
            ("XDG_CONFIG_HOME", at(&self.settings(scene))),
            ("EBB_RUN", at(self.folder.path())),
            ("EBB_DRIVER", at(&self.driver)),
            ("EBB_SOFTGPU", "demo".into()),
            // Cards of the demo lie in its own folder.
            ("EBB_SOFTGPU_DIR", "".into()),
            ("EBB_PROFILES", "off".into()),
            ("EBB_GUARD_CACHE", "off".into()),
            ("EBB_DAEMON_IDLE", DAEMON_IDLE.as_secs().to_string().into()),
        ];
        if let Some(Defaults { sms, memory_bytes, domain, timeslice, switch_cost }) = self.card(scene) {
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

fn domain(scene: Scene) -> Domain {
    match scene {
        Scene::Bursts => Domain::Isolated,
        Scene::LaunchBound => Domain::Shared,
    }
}

impl Drop for Stage {
    /// The daemons end by themselves. Their folder should not go before they do, nor should we.
    fn drop(&mut self) {
        let begin = Instant::now();
        let is_taken = |scene| self.place(scene).is_taken();
        while SCENES.into_iter().any(is_taken) && begin.elapsed() < DAEMON_IDLE * 10 {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
