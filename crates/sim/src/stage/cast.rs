//! A scenario of the lab on a stage.

use model::{Class, Nanos};
use results::record;
use scenario::profile::Profile;
use scenario::{Scenario, Slo, Workload};

use super::fit::alone_time;
use super::work::work_of;
use super::{Role, Stage, drained};
use crate::{Arrivals, Card, Error};

impl Stage {
    /// A scenario as its file has it, with the kernels that were recorded of its workloads; `find` gives their profiles.
    pub fn of_scenario(
        suite: &str,
        scenario: &Scenario,
        card: &Card,
        find: &dyn Fn(&str) -> Result<Profile, scenario::Error>,
    ) -> Result<Stage, Error> {
        let roles = scenario.tenants.iter().map(|tenant| {
            let mut role = Role::of(&tenant.name, tenant.class, &tenant.workload, card, find)?;
            role.slo = tenant.slo.as_ref().and_then(|slo| slo.latency);
            Ok(role)
        });
        let cast = roles.collect::<Result<Vec<Role>, Error>>()?;
        let tenants = scenario.tenants.iter().zip(&cast).map(|(tenant, role)| record::Tenant {
            name: tenant.name.clone(),
            class: tenant.class,
            workload: role.workload.clone(),
            arrival: tenant.arrival.to_string(),
            rate: tenant.arrival.rate(role.capacity()),
            slo: tenant.slo.as_ref().map(promise).unwrap_or_default(),
        });
        let tenants = tenants.collect();
        let offered = (0..scenario.repetitions).map(|repetition| {
            let each = scenario.tenants.iter().zip(&cast);
            each.map(|(tenant, role)| {
                let seed = scenario.arrival_seed(tenant, repetition);
                let rate = tenant.arrival.rate(role.capacity());
                tenant.arrival.due(seed, rate, scenario.until()).map_or(Arrivals::Closed, Arrivals::Open)
            })
            .collect()
        });
        let offered = offered.collect();
        let record = record::Scenario {
            suite: suite.to_owned(),
            name: scenario.name.clone(),
            digest: scenario.digest(),
            title: scenario.title.clone(),
            source: scenario.source.clone(),
            about: scenario.about.clone(),
            duration_us: scenario.duration.0 / 1_000,
            warmup_us: scenario.warmup.0 / 1_000,
            repetitions: scenario.repetitions,
            seed: scenario.seed,
            slowdown: 1.0,
            tenants,
            modes: Vec::new(),
        };
        Ok(Stage { card: card.clone(), scenario: record, cast, offered, drained: drained(scenario.until()) })
    }
}

impl Role {
    /// A tenant with this workload, as it was recorded.
    pub fn of(
        name: &str,
        class: Class,
        workload: &Workload,
        card: &Card,
        find: &dyn Fn(&str) -> Result<Profile, scenario::Error>,
    ) -> Result<Role, Error> {
        let work = work_of(workload, class, card, find)?;
        let alone = alone_time(&work, class, card)?;
        Ok(Role {
            name: name.to_owned(),
            class,
            priority: 0,
            weight: 1,
            slo: None,
            workload: workload.id(),
            gpu: work.gpu(card),
            alone,
            work,
        })
    }

    /// How many requests a second it answers in a closed loop, alone.
    pub fn capacity(&self) -> f64 {
        1.0 / self.alone.max(Nanos(1)).as_secs_f64()
    }
}

/// A promise as result files have it.
fn promise(slo: &Slo) -> record::Slo {
    let us = |span: Option<Nanos>| span.map(|span| span.0 / 1_000);
    record::Slo {
        latency_us: us(slo.latency),
        alone_p99: slo.alone_p99,
        ttft_us: us(slo.ttft),
        tpot_us: us(slo.tpot),
        alone_ttft_p99: slo.alone_ttft_p99,
        alone_tpot_p99: slo.alone_tpot_p99,
    }
}
