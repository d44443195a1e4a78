//! Which mode stands on which ground, and the grounds of one campaign.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;

use model::{Class, Domain, Kind, Nanos};
use mps::Service;
use scenario::{Device, Mode};
use serde_json::Value;
use thiserror::Error;

use super::Environment;
use super::ebb::Ebb;
use super::mps::{Mps, judge as judge_mps, start as start_mps};
use super::plain::Plain;
use super::rivals::{self, Rivals};
use super::soft::{Card, Soft};
use super::way::Way;
use crate::crew::Stream;

/// Why a mode cannot be had here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Absence(pub String);

/// The surroundings of a worker's process. Modes on one ground share workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ground {
    Plain,
    Mps,
    MpsPriority,
    /// All policies have one daemon.
    Ebb(Domain),
    Rival(Mode),
}

impl Ground {
    /// The ground of a mode, or why there is none.
    pub fn of(way: Way) -> Result<Ground, Absence> {
        match way.mode {
            Mode::Alone | Mode::LatencyOnly | Mode::Timeslice | Mode::Streams => Ok(Ground::Plain),
            Mode::Mps => Ok(Ground::Mps),
            Mode::MpsPriority => Ok(Ground::MpsPriority),
            Mode::EbbIsolated => Ok(Ground::Ebb(Domain::Isolated)),
            Mode::EbbShared => Ok(Ground::Ebb(Domain::Shared)),
            Mode::Xsched | Mode::XschedTimeslice | Mode::Hami | Mode::Nvshare => Ok(Ground::Rival(way.mode)),
        }
    }

    /// As a folder may be called.
    pub fn name(self) -> String {
        match self {
            Ground::Plain => "plain".to_owned(),
            Ground::Mps => Mode::Mps.to_string(),
            Ground::MpsPriority => Mode::MpsPriority.to_string(),
            Ground::Ebb(domain) => format!("ebb-{domain}"),
            Ground::Rival(mode) => mode.to_string(),
        }
    }
}

/// The priority of a tenant's stream: all that can be said to the driver in its favour, in the modes that say it.
pub fn stream(mode: Mode, class: Class) -> Stream {
    match (mode, class) {
        (Mode::MpsPriority | Mode::Streams, Class::Latency) => Stream::High,
        (Mode::MpsPriority | Mode::Streams, Class::BestEffort) => Stream::Low,
        _ => Stream::Normal,
    }
}

/// What is known about a campaign's place before it begins.
#[derive(Clone, Debug)]
pub struct Site {
    pub device: Device,
    /// `ebb` itself.
    pub program: PathBuf,
    /// `libcuda.so.1` of the software GPU; only where that is the device.
    pub software_driver: Option<PathBuf>,
    /// Private, empty, removed by whoever made it; its path is short, because sockets lie in it.
    pub folder: PathBuf,
    /// Builds of other people's products, by mode.
    pub rivals: BTreeMap<Mode, PathBuf>,
}

/// What a ground does to a worker.
pub trait Surroundings {
    /// The command that becomes the worker, given the worker's own.
    fn command(&self, _class: Class, _name: &str, words: Vec<OsString>) -> Vec<OsString> {
        words
    }

    /// Added to what the driver's own ground has.
    fn environment(&self, class: Class) -> Environment;

    /// Tells the ground which policy decides from now on; `None`: the one that it chooses itself.
    fn govern(&self, _policy: Option<Kind>) -> Result<(), Absence> {
        Ok(())
    }

    /// Tells the ground what a latency tenant wants: 99 of 100 of its requests within this time, or nothing.
    fn promise(&self, _name: &str, _slo: Option<Nanos>) -> Result<(), Absence> {
        Ok(())
    }

    /// What the ground says about its tenants at the end of a run, for the record.
    fn status(&self) -> Option<Value> {
        None
    }

    /// Whether a worker must be started while no other is.
    fn starts_alone(&self) -> bool {
        false
    }

    /// Whether a tenant that was lost may have harmed the ground, so that it has to be laid again for all.
    fn is_fragile(&self) -> bool {
        false
    }
}

/// The grounds that have been laid. Dropped, all are cleared.
pub struct Grounds {
    site: Site,
    plain: Plain,
    soft: Option<Soft>,
    /// One for both modes that have clients of it.
    mps: Option<Rc<Service>>,
    /// What they share among themselves.
    others: Rivals,
    laid: BTreeMap<Ground, Box<dyn Surroundings>>,
}

impl Grounds {
    pub fn new(site: Site) -> Result<Grounds, Absence> {
        let plain = Plain::new(&site.folder)?;
        let soft = match (site.device, &site.software_driver) {
            (Device::Gpu, _) => None,
            (Device::Soft, Some(driver)) => Some(Soft::new(driver, &site.folder)?),
            (Device::Soft, None) => return Err(Absence("there is no software GPU".to_owned())),
        };
        Ok(Grounds { site, plain, soft, mps: None, others: Rivals::default(), laid: BTreeMap::new() })
    }

    pub fn site(&self) -> &Site {
        &self.site
    }

    /// Whether a mode can be had here, without laying anything.
    pub fn judge(&self, way: Way) -> Result<Ground, Absence> {
        let ground = Ground::of(way)?;
        match (ground, self.site.device) {
            (Ground::Rival(rival), Device::Gpu) => {
                let path = self.site.rivals.get(&rival);
                let path = path.ok_or_else(|| Absence("not given with --rival".to_owned()))?;
                rivals::check(rival, path)?;
            }
            (Ground::Rival(_), Device::Soft) => {
                return Err(Absence("needs NVIDIA's driver, which the software GPU is not".to_owned()));
            }
            (Ground::Mps | Ground::MpsPriority | Ground::Ebb(Domain::Shared), Device::Gpu) => judge_mps()?,
            _ => {}
        }
        Ok(ground)
    }

    /// Lays a ground, unless it lies there.
    pub fn lay(&mut self, ground: Ground) -> Result<(), Absence> {
        if self.laid.contains_key(&ground) {
            return Ok(());
        }
        let folder = self.site.folder.join(ground.name());
        std::fs::create_dir_all(&folder)
            .map_err(|error| Absence(format!("{}: {error}", folder.display())))?;
        let surroundings: Box<dyn Surroundings> = match (ground, &self.soft) {
            (Ground::Plain, _) | (Ground::Mps | Ground::MpsPriority, Some(_)) => Box::new(Nothing),
            (Ground::Mps | Ground::MpsPriority, None) => {
                let daemon = match &self.mps {
                    Some(daemon) => Rc::clone(daemon),
                    None => Rc::new(start_mps(&self.site.folder.join("mps-daemon"))?),
                };
                self.mps = Some(Rc::clone(&daemon));
                Box::new(Mps { daemon, priorities: ground == Ground::MpsPriority })
            }
            (Ground::Ebb(domain), soft) => {
                Box::new(Ebb::start(&self.site.program, &folder, domain, soft.is_none())?)
            }
            (Ground::Rival(mode), _) => {
                let path = self.site.rivals.get(&mode).ok_or_else(|| Absence("not given".to_owned()))?;
                self.others.start(mode, path, &folder)?
            }
        };
        self.laid.insert(ground, surroundings);
        Ok(())
    }

    /// After a tenant was lost: the grounds that must be laid again before anybody works there, if any. Their workers
    /// have to go first.
    pub fn harmed(&self, ground: Ground) -> Vec<Ground> {
        match ground {
            Ground::Mps | Ground::MpsPriority if self.soft.is_none() => {
                vec![Ground::Mps, Ground::MpsPriority]
            }
            _ if self.laid.get(&ground).is_some_and(|laid| laid.is_fragile()) => vec![ground],
            _ => Vec::new(),
        }
    }

    /// Clears grounds, so that they are laid afresh when they are wanted next.
    pub fn clear(&mut self, grounds: &[Ground]) {
        self.laid.retain(|ground, _| !grounds.contains(ground));
        if grounds.contains(&Ground::Mps) {
            self.mps = None;
        }
    }

    /// How a worker on a laid ground is started. `slowdown` is that of the scenario.
    pub fn dress(
        &self,
        ground: Ground,
        class: Class,
        name: &str,
        slowdown: f64,
        words: Vec<OsString>,
    ) -> (Vec<OsString>, Environment) {
        let mut environment = self.plain.environment();
        if let Some(soft) = &self.soft {
            let shared = matches!(ground, Ground::Mps | Ground::MpsPriority | Ground::Ebb(Domain::Shared));
            environment.extend(soft.environment(Card { shared, slowdown }));
        }
        match self.laid.get(&ground) {
            None => (words, environment),
            Some(surroundings) => {
                environment.extend(surroundings.environment(class));
                (surroundings.command(class, name, words), environment)
            }
        }
    }

    pub fn starts_alone(&self, ground: Ground) -> bool {
        self.laid.get(&ground).is_some_and(|laid| laid.starts_alone())
    }

    pub fn govern(&self, ground: Ground, policy: Option<Kind>) -> Result<(), Absence> {
        self.laid.get(&ground).map_or(Ok(()), |laid| laid.govern(policy))
    }

    pub fn promise(&self, ground: Ground, name: &str, slo: Option<Nanos>) -> Result<(), Absence> {
        self.laid.get(&ground).map_or(Ok(()), |laid| laid.promise(name, slo))
    }

    pub fn status(&self, ground: Ground) -> Option<Value> {
        self.laid.get(&ground)?.status()
    }
}

/// The driver's own ground.
struct Nothing;

impl Surroundings for Nothing {
    fn environment(&self, _class: Class) -> Environment {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_differ_only_in_who_runs_share_their_workers() {
        for mode in [Mode::Alone, Mode::LatencyOnly, Mode::Timeslice] {
            assert_eq!(Ground::of(mode.into()), Ok(Ground::Plain));
            assert_eq!(stream(mode, Class::Latency), Stream::Normal);
        }
    }

    #[test]
    fn only_modes_with_priorities_give_them() {
        for mode in Mode::ALL {
            let gives = matches!(mode, Mode::MpsPriority | Mode::Streams);
            assert_eq!(stream(mode, Class::Latency) == Stream::High, gives, "{mode}");
            assert_ne!(stream(mode, Class::BestEffort), Stream::High, "{mode}");
        }
    }

    #[test]
    fn the_domains_of_ebb_are_grounds_of_their_own_and_its_policies_share_them() {
        assert_eq!(Ground::of(Mode::EbbIsolated.into()), Ok(Ground::Ebb(Domain::Isolated)));
        let strict = Way { policy: Some(Kind::Strict), ..Way::from(Mode::EbbShared) };
        assert_eq!(Ground::of(strict), Ok(Ground::Ebb(Domain::Shared)));
        assert_eq!(Ground::Ebb(Domain::Shared).name(), "ebb-shared");
    }
}
