//! What happened in a world, as the lab writes it down.

use std::collections::BTreeMap;

use model::{Class, Nanos};
use results::record::{ALONE, Calibration, Device, Run, Slo, TenantRun};

use super::{Role, Stage};
use crate::{Arrivals, Card, Job, Log, Played, World};

/// The kind of device of a result file that nobody measured.
pub const KIND: &str = "sim";

/// The device of simulated results.
pub fn device(card: &Card) -> Device {
    Device {
        kind: KIND.to_owned(),
        name: format!("a simulated card of {} SMs", card.sms),
        driver: "none".to_owned(),
        sms: card.sms,
        memory_gib: 0.0,
        slowdown: 1.0,
    }
}

/// What the workloads of a stage can do by themselves.
pub fn calibrations(stage: &Stage) -> Vec<Calibration> {
    let mut known: BTreeMap<&str, Calibration> = BTreeMap::new();
    for role in &stage.cast {
        known.entry(&role.workload).or_insert_with(|| Calibration {
            workload: role.workload.clone(),
            per_s: role.capacity(),
            gpu_us: role.gpu.as_micros_f64(),
        });
    }
    known.into_values().collect()
}

impl Stage {
    /// A world that was played, as a run of this mode. When that was and how long it took is left out, so that the same worlds
    /// give the same file.
    pub fn run(&self, mode: &str, repetition: u32, world: &World, log: &Log) -> Run {
        let scenario = &self.scenario;
        let place = format!("{}/{}", scenario.suite, scenario.name);
        let id = match &world.tenants[..] {
            [one] if mode == ALONE => format!("alone/{}/{repetition}/{place}", one.name),
            _ => format!("{place}/{mode}/{repetition}"),
        };
        Run {
            id,
            suite: scenario.suite.clone(),
            scenario: scenario.name.clone(),
            mode: mode.to_owned(),
            repetition,
            order: 0,
            at: String::new(),
            seed: world.seed,
            warmup_us: scenario.warmup_us,
            until_us: scenario.warmup_us + scenario.duration_us,
            wall_s: 0.0,
            tenants: world
                .tenants
                .iter()
                .zip(&log.tenants)
                .filter_map(|(tenant, played)| {
                    let role = self.cast.iter().find(|role| role.name == tenant.name)?;
                    Some(told(role, &tenant.arrivals, played))
                })
                .collect(),
            ebb: None,
            serves: Vec::new(),
            machine: 0,
        }
    }

    /// The scenario as a simulated file has it: with these modes, and with promises that can be kept or broken there. Of tokens
    /// a simulation knows nothing, so what is promised of them is promised of whole answers.
    pub fn told(&self, modes: &[String]) -> results::record::Scenario {
        let mut scenario = self.scenario.clone();
        scenario.modes = modes.to_vec();
        scenario.repetitions = self.repetitions();
        for tenant in scenario.tenants.iter_mut().filter(|tenant| tenant.class == Class::Latency) {
            let Slo { latency_us, alone_p99, .. } = tenant.slo;
            let some = latency_us.is_some() || alone_p99.is_some();
            tenant.slo =
                Slo { latency_us, alone_p99: alone_p99.or((!some).then_some(SLO)), ..Slo::default() };
        }
        scenario
    }

    /// Gives every latency tenant its limit as a time, from what it did alone: one log for each repetition.
    pub fn promise<'a>(&mut self, tenant: usize, alone: impl Iterator<Item = &'a Log>) {
        let Some(told) = self.told(&[]).tenants.get(tenant).cloned() else { return };
        let Some(role) = self.cast.get_mut(tenant).filter(|role| role.class == Class::Latency) else {
            return;
        };
        let mut latencies: Vec<Nanos> =
            alone.filter_map(|log| log.tenants.first()).flat_map(Played::latencies).collect();
        latencies.sort_unstable();
        let rank = (latencies.len() as f64 * 0.99).ceil() as usize;
        let p99 = latencies.get(rank.max(1) - 1);
        let relative =
            told.slo.alone_p99.zip(p99).map(|(multiple, p99)| Nanos((p99.0 as f64 * multiple) as u64));
        role.slo = [role.slo, relative].into_iter().flatten().min();
    }
}

/// A fifth more than alone, where a scenario promises nothing of whole answers.
const SLO: f64 = 1.2;

fn told(role: &Role, arrivals: &Arrivals, played: &Played) -> TenantRun {
    let us = |moment: Nanos| moment.0 / 1_000;
    // One at a time and in order: behind the first that did not end, none did.
    let done = || played.jobs.iter().take_while(|job| job.end.is_some());
    let checks = match role.class {
        Class::Latency => Vec::new(),
        Class::BestEffort => (0..done().count()).map(|number| format!("{number:x}")).collect(),
    };
    let start = |job: &Job| us(job.start.unwrap_or(job.due));
    TenantRun {
        name: role.name.clone(),
        class: role.class,
        workload: role.workload.clone(),
        gpu_us: role.gpu.as_micros_f64(),
        due_us: match arrivals {
            Arrivals::Open(due) => Some(due.iter().copied().map(us).collect()),
            Arrivals::Closed => None,
        },
        start_us: done().map(start).collect(),
        end_us: done().filter_map(|job| job.end).map(us).collect(),
        checks,
        ..TenantRun::default()
    }
}
