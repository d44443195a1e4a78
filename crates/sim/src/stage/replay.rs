//! An archive on a stage: what was measured of each tenant alone, and when its requests were due.
//!
//! The n-th request is due at the same moment in every mode, so a replay offers what was offered, to the microsecond. How long
//! requests take comes from the runs alone, all repetitions together: a run of a second knows its own host too well.

use model::{Class, Nanos};
use results::iteration::{Checks, done, finished};
use results::passage::{self, Passage};
use results::record::{ALONE, Scenario};
use results::{Archive, record};
use scenario::profile::{self, Profile};

use super::work::{nanos, work_of};
use super::{Role, Stage, drained, micros};
use crate::{Arrivals, Card, Error, Kernel, Step, Work};

/// Kernels of a workload of which nothing is known but how long it takes.
const UNKNOWN_KERNEL: Nanos = Nanos::from_micros(20);
const UNKNOWN_AHEAD: u32 = 1_024;

impl Stage {
    /// A scenario of an archive, from the runs of its tenants alone.
    pub fn of_archive(archive: &Archive, suite: &str, name: &str, card: &Card) -> Result<Stage, Error> {
        let known = archive.scenario(suite, name);
        let scenario =
            known.ok_or_else(|| Error::Stage(format!("the results have no scenario {suite}/{name}")))?;
        let cast = scenario.tenants.iter().map(|tenant| role(archive, scenario, tenant, card));
        let cast = cast.collect::<Result<Vec<Role>, Error>>()?;
        let repetitions = archive.runs.iter().filter(|run| run.is_of(suite, name)).map(|run| run.repetition);
        let repetitions = repetitions.max().map_or(0, |last| last + 1);
        let offered = (0..repetitions)
            .map(|repetition| {
                let each = scenario.tenants.iter();
                each.map(|tenant| arrivals(archive, scenario, &tenant.name, repetition)).collect()
            })
            .collect();
        let mut scenario = Scenario { modes: Vec::new(), ..scenario.clone() };
        // A scenario that was measured for another time than its file says was measured as its runs say.
        let measured = archive.runs.iter().find(|run| run.is_of(suite, name));
        if let Some(run) = measured {
            scenario.warmup_us = run.warmup_us;
            scenario.duration_us = run.until_us - run.warmup_us;
        }
        let until = micros(scenario.warmup_us + scenario.duration_us);
        let drained = given_up(archive, suite, name).unwrap_or_else(|| drained(until));
        Ok(Stage { card: card.clone(), scenario, cast, offered, drained })
    }
}

/// How long requests were waited for, where some were given up: the last one that was begun says it.
fn given_up(archive: &Archive, suite: &str, name: &str) -> Option<Nanos> {
    let runs = archive.runs.iter().filter(|run| run.suite == suite && run.scenario == name);
    let unserved =
        |part: &&record::TenantRun| part.due_us.as_ref().is_some_and(|due| due.len() > part.end_us.len());
    let parts = runs.flat_map(|run| &run.tenants).filter(unserved);
    parts.filter_map(|part| part.start_us.last()).max().map(|last| micros(*last))
}

fn role(archive: &Archive, scenario: &Scenario, tenant: &record::Tenant, card: &Card) -> Result<Role, Error> {
    let full = format!("{}/{}/{}", scenario.suite, scenario.name, tenant.name);
    let passages = passage::of(archive, scenario, ALONE, &tenant.name);
    let gpu = passages.first().map_or(Nanos::ZERO, |passage| nanos(passage.tenant.gpu_us));
    let between = turnaround(&passages);
    // Of requests the tail matters, so each draws one of those that were measured; of iterations only how many there are, and a
    // run has too few of them to leave that to luck.
    let times = match tenant.class {
        Class::Latency => requests(&passages),
        Class::BestEffort => Vec::new(),
    };
    let typical = match tenant.class {
        Class::Latency => times.get(times.len() / 2).copied(),
        Class::BestEffort => iteration(&passages),
    };
    let Some(typical) = typical else {
        return Err(Error::Stage(format!("the results have no run of {full} alone")));
    };
    let alone = typical + between;
    let recorded = known(&tenant.workload, tenant.class, card)?;
    let work = match recorded {
        Some(work) => work.with_gpu(card, gpu.max(Nanos(1_000))).with_time(tenant.class, card, alone)?,
        None => unknown(card, gpu, alone, tenant.class),
    };
    let times: Vec<Nanos> = times.into_iter().map(|time| time + between).collect();
    Ok(Role {
        name: tenant.name.clone(),
        class: tenant.class,
        priority: 0,
        weight: 1,
        slo: tenant.slo.latency_us.map(micros),
        workload: tenant.workload.clone(),
        gpu,
        alone,
        work: work.with_factors(&times, alone),
    })
}

/// How long each request took from when it was taken up, in order of length.
fn requests(passages: &[Passage<'_>]) -> Vec<Nanos> {
    let pairs =
        passages.iter().flat_map(|passage| passage.tenant.start_us.iter().zip(&passage.tenant.end_us));
    let mut times: Vec<Nanos> = pairs.map(|(start, end)| micros(end.saturating_sub(*start))).collect();
    times.sort_unstable();
    times
}

/// How long an iteration took, as the counted time over how many there were in it: the end of one is seen late by a host that is
/// busy with the next, so the spans between ends say little. Whether they were right does not matter for that.
fn iteration(passages: &[Passage<'_>]) -> Option<Nanos> {
    let counted = passages.iter().map(|passage| {
        let (from, to) = passage.window();
        (to.saturating_sub(from) as f64, done(&finished(passage.tenant, &Checks::default()), from, to).all)
    });
    let (time_us, count) =
        counted.fold((0.0, 0.0), |(time, count), (more, iterations)| (time + more, count + iterations));
    (count > 0.0).then(|| nanos(time_us / count))
}

/// What the host does between an answer and the next request that waits already: half of them take no longer.
fn turnaround(passages: &[Passage<'_>]) -> Nanos {
    let mut gaps: Vec<u64> = Vec::new();
    for passage in passages {
        let Some(due) = &passage.tenant.due_us else { continue };
        let (starts, ends) = (&passage.tenant.start_us, &passage.tenant.end_us);
        for ((due, start), end) in due.iter().zip(starts).skip(1).zip(ends) {
            if due < end {
                gaps.push(start.saturating_sub(*end));
            }
        }
    }
    gaps.sort_unstable();
    micros(gaps.get(gaps.len() / 2).copied().unwrap_or(0))
}

/// The work of a workload whose kernels are known.
fn known(workload: &str, class: Class, card: &Card) -> Result<Option<Work>, Error> {
    let Ok(workload) = profile::workload(workload) else { return Ok(None) };
    match work_of(&workload, class, card, &Profile::built_in) {
        Ok(work) => Ok(Some(work)),
        // Nobody recorded it, but somebody measured it.
        Err(Error::Stage(_)) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Work of which only the times are known: short kernels, spread evenly.
fn unknown(card: &Card, gpu: Nanos, alone: Nanos, class: Class) -> Work {
    let count = (gpu.0 / UNKNOWN_KERNEL.0).clamp(1, 10_000);
    let kernel = Kernel::whole(card, Nanos((gpu.0 / count).max(1)));
    let host = Nanos(alone.since(gpu).0 / count);
    let steps = vec![Step { host, kernel }; count as usize];
    let waits = class == Class::Latency;
    Work { steps, ahead: UNKNOWN_AHEAD, graph: false, waits, syncs: Vec::new(), factors: Vec::new() }
}

/// What a tenant was offered in a repetition, in whatever mode: it is the same in all.
fn arrivals(archive: &Archive, scenario: &Scenario, tenant: &str, repetition: u32) -> Arrivals {
    let full = format!("{}/{}/{tenant}", scenario.suite, scenario.name);
    let runs = archive.runs.iter().filter(|run| run.repetition == repetition);
    let due = runs.filter(|run| run.names().contains(&full)).find_map(|run| {
        let part = run.tenants.iter().find(|part| part.name == tenant).or_else(|| run.tenants.first())?;
        part.due_us.clone()
    });
    due.map_or(Arrivals::Closed, |due| Arrivals::Open(due.into_iter().map(micros).collect()))
}
