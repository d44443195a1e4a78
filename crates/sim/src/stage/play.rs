//! Many worlds, played at once, written down in the order in which they were asked for.
//!
//! First everybody alone: what promises mean, and what everything is compared with. Then all of them together, in every way.
//! Worlds know nothing of each other, so the threads that play them change nothing but the time it takes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use model::Nanos;
use results::Record;
use results::record::{ALONE, Run};

use super::{Stage, Way, record};
use crate::{Error, Log, World};

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Performance {
    /// Scenarios, calibrations and runs; whoever writes a file puts a machine before them.
    pub records: Vec<Record>,
    /// How much time went by in all worlds together.
    pub simulated: Nanos,
    pub events: u64,
}

/// How many worlds there are to play.
pub fn worlds(stages: &[Stage], ways: &[Way]) -> usize {
    stages.iter().map(|stage| stage.offered.len() * (stage.cast.len() + ways.len())).sum()
}

/// Plays every stage alone and in every way. `seen` is called after each world, from whichever thread played it.
pub fn play(
    stages: &mut [Stage],
    ways: &[Way],
    threads: usize,
    seen: &(dyn Fn() + Sync),
) -> Result<Performance, Error> {
    let mut performance = Performance::default();
    let alone = everybody_alone(stages, threads, seen)?;
    let mut solo: Vec<Vec<Run>> = vec![Vec::new(); stages.len()];
    for ((stage, _, repetition), (world, log)) in &alone {
        performance.count(world, log);
        solo[*stage].push(stages[*stage].run(ALONE, *repetition, world, log));
    }
    for (number, stage) in stages.iter_mut().enumerate() {
        for tenant in 0..stage.cast.len() {
            let logs = alone.iter().filter(|((of, who, _), _)| (*of, *who) == (number, tenant));
            stage.promise(tenant, logs.map(|(_, (_, log))| log));
        }
    }
    let mut together = Vec::new();
    for (number, stage) in stages.iter().enumerate() {
        let each = ways
            .iter()
            .flat_map(|way| (0..stage.repetitions()).map(move |repetition| (number, way, repetition)));
        together.extend(each);
    }
    let stages = &*stages;
    let played = each(&together, threads, |&(stage, way, repetition)| {
        let world = stages[stage].world(way.sharing(), repetition);
        let log = crate::run(&world, way.scheduler().as_mut());
        seen();
        log.map(|log| (world, log))
    });
    let mut runs = solo;
    for (&(stage, way, repetition), played) in together.iter().zip(played) {
        let (world, log) = played?;
        performance.count(&world, &log);
        runs[stage].push(stages[stage].run(&way.to_string(), repetition, &world, &log));
    }
    let mut modes = vec![ALONE.to_owned()];
    modes.extend(ways.iter().map(Way::to_string));
    for (stage, runs) in stages.iter().zip(runs) {
        performance.records.extend(record::calibrations(stage).into_iter().map(Record::Calibration));
        performance.records.push(Record::Scenario(stage.told(&modes)));
        performance.records.extend(runs.into_iter().map(Record::Run));
    }
    Ok(performance)
}

impl Performance {
    fn count(&mut self, world: &World, log: &Log) {
        self.simulated += world.until;
        self.events += log.events;
    }
}

/// A tenant of a stage in a repetition, with the world in which it was alone and what happened there.
type Alone = ((usize, usize, u32), (World, Log));

fn everybody_alone(stages: &[Stage], threads: usize, seen: &(dyn Fn() + Sync)) -> Result<Vec<Alone>, Error> {
    let mut wanted = Vec::new();
    for (number, stage) in stages.iter().enumerate() {
        for tenant in 0..stage.cast.len() {
            wanted.extend((0..stage.repetitions()).map(|repetition| (number, tenant, repetition)));
        }
    }
    let played = each(&wanted, threads, |&(stage, tenant, repetition)| {
        let world = stages[stage].alone(tenant, repetition);
        let log = crate::run(&world, Way::Plain(world.sharing).scheduler().as_mut());
        seen();
        log.map(|log| (world, log))
    });
    wanted.into_iter().zip(played).map(|(which, played)| Ok((which, played?))).collect()
}

/// What `make` makes of each, in their order, on several threads.
pub(super) fn each<T: Sync, R: Send>(items: &[T], threads: usize, make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = Vec::new();
        while let Some((place, item)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            items.get(place).map(|item| (place, item))
        } {
            made.push((place, make(item)));
        }
        made
    };
    let mut made: Vec<(usize, R)> = thread::scope(|scope| {
        let hands: Vec<_> = (0..threads.clamp(1, items.len().max(1))).map(|_| scope.spawn(work)).collect();
        hands
            .into_iter()
            .flat_map(|hand| hand.join().expect("a world that panics is a mistake of ours"))
            .collect()
    });
    made.sort_unstable_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, made)| made).collect()
}
