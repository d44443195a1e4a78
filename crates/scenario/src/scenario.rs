//! A scenario: who shares the GPU, with what work, arriving when, measured for how long.

use std::collections::HashSet;

use model::{Class, Nanos};
use serde::{Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_128;

use crate::arrival::{Arrival, stream_seed};
use crate::mode::{Device, Mode};
use crate::slo::Slo;
use crate::span;
use crate::workload::{Worker, Workload};

/// One experiment. As it is read it is meant for a card; [`Scenario::for_device`] makes it fit the software GPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scenario {
    /// The file's name without its ending, or what a cross made of it.
    pub name: String,
    pub title: String,
    pub source: Option<String>,
    pub about: Option<String>,
    /// Counted time, after the warm-up.
    #[serde(serialize_with = "span::serialize")]
    pub duration: Nanos,
    #[serde(serialize_with = "span::serialize")]
    pub warmup: Nanos,
    pub repetitions: u32,
    pub seed: u64,
    pub device: Device,
    /// How many times as long everything takes as on a card.
    pub slowdown: f64,
    pub tenants: Vec<Tenant>,
    /// Those that the file names; none if it leaves them open.
    pub(crate) wanted: Option<Vec<Mode>>,
    #[serde(skip)]
    pub(crate) soft: Soft,
}

/// How a scenario changes for the software GPU.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Soft {
    pub slowdown: f64,
    pub duration: Option<Nanos>,
    pub warmup: Option<Nanos>,
    pub repetitions: Option<u32>,
    pub modes: Option<Vec<Mode>>,
}

/// What two cores keep pace with, for most workloads.
pub(crate) const SOFT_SLOWDOWN: f64 = 10.0;

impl Default for Soft {
    fn default() -> Soft {
        Soft { slowdown: SOFT_SLOWDOWN, duration: None, warmup: None, repetitions: None, modes: None }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tenant {
    pub name: String,
    #[serde(serialize_with = "class")]
    pub class: Class,
    pub workload: Workload,
    /// A closed loop, of best-effort tenants.
    pub arrival: Arrival,
    /// Only of latency tenants.
    pub slo: Option<Slo>,
}

impl Tenant {
    pub fn is_latency(&self) -> bool {
        self.class == Class::Latency
    }
}

impl Scenario {
    pub fn latency_tenants(&self) -> impl Iterator<Item = &Tenant> {
        self.tenants.iter().filter(|tenant| tenant.is_latency())
    }

    pub fn best_effort_tenants(&self) -> impl Iterator<Item = &Tenant> {
        self.tenants.iter().filter(|tenant| !tenant.is_latency())
    }

    /// When the run ends, counted from its begin: the warm-up and the counted time.
    pub fn until(&self) -> Nanos {
        self.warmup + self.duration
    }

    /// The scenario on this device. On the software GPU everything takes longer: rates fall and promises stretch. What a
    /// tenant computes is left as it is, since its worker is told the slowdown.
    pub fn for_device(mut self, device: Device) -> Scenario {
        if device == self.device {
            return self;
        }
        let Soft { slowdown, duration, warmup, repetitions, modes } = std::mem::take(&mut self.soft);
        for tenant in &mut self.tenants {
            tenant.arrival = tenant.arrival.clone().slowed(slowdown);
            tenant.slo = tenant.slo.take().map(|slo| slo.slowed(slowdown));
        }
        let wanted = modes.or_else(|| {
            // Rivals need a driver of NVIDIA's, so a list that is meant for a card is no mistake here.
            self.wanted.map(|wanted| wanted.into_iter().filter(|mode| !mode.is_rival()).collect())
        });
        Scenario {
            duration: duration.unwrap_or(self.duration),
            warmup: warmup.unwrap_or(self.warmup),
            repetitions: repetitions.unwrap_or(self.repetitions),
            device,
            slowdown,
            wanted,
            ..self
        }
    }

    /// The modes that the file wants, or all; less those that mean nothing here.
    pub fn modes(&self) -> Vec<Mode> {
        let wanted = self.wanted.as_deref().unwrap_or(&Mode::ALL);
        wanted.iter().copied().filter(|mode| self.applies(*mode).is_ok()).collect()
    }

    /// Whether a mode means anything here, and else why not.
    pub fn applies(&self, mode: Mode) -> Result<(), &'static str> {
        match mode {
            Mode::LatencyOnly if self.latency_tenants().count() < 2 => {
                Err("latency-only wants two or more latency tenants")
            }
            Mode::LatencyOnly if self.best_effort_tenants().count() == 0 => {
                Err("latency-only leaves out best-effort tenants, and there are none")
            }
            Mode::Streams if self.tenants.len() < 2 => Err("streams wants two or more tenants"),
            Mode::Streams if !self.fits_one_process() => {
                Err("streams puts all tenants into one process, and these need different programs")
            }
            mode if mode.is_rival() && self.device == Device::Soft => {
                Err("rivals run only before NVIDIA's driver")
            }
            _ => Ok(()),
        }
    }

    fn fits_one_process(&self) -> bool {
        let of = |worker| self.tenants.iter().all(|tenant| tenant.workload.worker() == worker);
        self.device == Device::Soft || of(Worker::Torch) || of(Worker::Synthetic)
    }

    /// The seed of one tenant's arrivals in one repetition.
    pub fn arrival_seed(&self, tenant: &Tenant, repetition: u32) -> u64 {
        stream_seed(self.seed, &tenant.name, repetition)
    }

    /// How long its runs with all tenants together take at least: the runs themselves and nothing else.
    fn least_time_together(&self) -> Nanos {
        let modes = self.modes().into_iter().filter(|mode| mode.is_at_hand() && *mode != Mode::Alone);
        Nanos(self.until().0.saturating_mul(modes.count() as u64 * u64::from(self.repetitions)))
    }

    /// Equal for scenarios whose runs ask for the same, and different for others: prose, the number of repetitions and the
    /// choice of modes change nothing in a run.
    pub fn digest(&self) -> String {
        let Scenario { name, duration, warmup, seed, device, slowdown, tenants, .. } = self;
        let asked = (name, duration.0, warmup.0, seed, device, slowdown, tenants);
        let text =
            serde_json::to_string(&asked).expect("its maps have text for keys, and nothing in it can fail");
        format!("{:032x}", xxh3_128(text.as_bytes()))
    }
}

/// How long the runs of these scenarios take at least, in all modes that everybody has. A tenant that is the same in
/// several of them is alone only once.
pub fn least_time(scenarios: &[Scenario]) -> Nanos {
    let together = scenarios.iter().map(Scenario::least_time_together);
    let with_alone = scenarios.iter().filter(|scenario| scenario.modes().contains(&Mode::Alone));
    let alone: HashSet<_> = with_alone
        .flat_map(|scenario| scenario.tenants.iter().map(move |tenant| (scenario, tenant)))
        .map(|(scenario, tenant)| {
            let Scenario { seed, repetitions, .. } = scenario;
            let what = (tenant.name.as_str(), tenant.workload.id(), tenant.arrival.to_string());
            (what, *seed, *repetitions, scenario.until())
        })
        .collect();
    let alone = alone.into_iter().map(|(_, _, repetitions, until)| Nanos(until.0 * u64::from(repetitions)));
    together.chain(alone).fold(Nanos::ZERO, |sum, time| sum + time)
}

fn class<S: Serializer>(class: &Class, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(class)
}

#[cfg(test)]
mod tests;
