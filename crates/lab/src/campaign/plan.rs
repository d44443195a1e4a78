//! Which runs there are, and in which order: pure, so that the same files and seed give the same plan everywhere.
//!
//! A repetition of a scenario is a *block*: each mode once, in an order that its seed decides, so that what drifts over
//! minutes (clocks, heat) meets every mode alike and repetitions can be compared in pairs. A tenant alone is one run for
//! all scenarios in which the same tenant gets the same requests for the same time; it belongs to the block of the first
//! of them. Where tenants tell ebb an SLO, which follows from their runs alone, these come first in their block. Scenarios
//! that share their best-effort tenants follow each other, because those are the largest workers.

use std::collections::{BTreeMap, BTreeSet};

use scenario::{Draw, Mode, Scenario, Tenant, stream_seed};
use xxhash_rust::xxh3::xxh3_64;

use crate::modes::Way;

/// A scenario as it is to be run: for its device, with what the user changed.
#[derive(Clone, Debug)]
pub struct Entry {
    pub suite: String,
    pub scenario: Scenario,
    /// Those that can be had here.
    pub modes: Vec<Way>,
    /// Whether its runs are wanted; others only tell for whom else a tenant alone is measured.
    pub chosen: bool,
}

impl Entry {
    /// Of what is measured: other titles, modes or repetitions do not make it another scenario.
    pub fn digest(&self) -> String {
        let Scenario { duration, warmup, seed, slowdown, device, .. } = &self.scenario;
        let tenants = serde_json::to_string(&self.scenario.tenants).expect("tenants are plain data");
        let text = format!(
            "{}/{} {device} {duration} {warmup} {seed} {slowdown} {tenants}",
            self.suite, self.scenario.name
        );
        format!("{:016x}", xxh3_64(text.as_bytes()))
    }

    pub fn full_name(&self) -> String {
        format!("{}/{}", self.suite, self.scenario.name)
    }
}

/// One run to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The same in every campaign that would measure the same.
    pub id: String,
    /// Of which entry.
    pub entry: usize,
    pub way: Way,
    pub repetition: u32,
    /// Its place in its block.
    pub order: u32,
    /// Which of the scenario's tenants take part.
    pub tenants: Vec<usize>,
    /// In the mode `alone`: every `suite/scenario/tenant` that the run is for.
    pub serves: Vec<String>,
}

/// All runs in the order in which they are made.
pub fn plan(entries: &[Entry]) -> Vec<Planned> {
    let serves = alone_for(entries);
    let mut planned = Vec::new();
    let mut known = BTreeSet::new();
    for entry in neighbours(entries) {
        for repetition in 0..entries[entry].scenario.repetitions {
            let mut block = block(entries, entry, repetition, &serves);
            block.retain(|run| known.insert(run.id.clone()));
            shuffle(&mut block, &entries[entry], repetition);
            for (order, run) in block.iter_mut().enumerate() {
                run.order = u32::try_from(order).unwrap_or(u32::MAX);
            }
            planned.append(&mut block);
        }
    }
    planned
}

/// The chosen entries, those with the same best-effort tenants together, in the order in which these first appear.
fn neighbours(entries: &[Entry]) -> Vec<usize> {
    let company = |entry: &Entry| -> Vec<String> {
        let mut ids: Vec<String> =
            entry.scenario.best_effort_tenants().map(|tenant| tenant.workload.id()).collect();
        ids.sort();
        ids
    };
    let mut first = BTreeMap::new();
    for (index, entry) in entries.iter().enumerate() {
        first.entry(company(entry)).or_insert(index);
    }
    let mut order: Vec<usize> = (0..entries.len()).filter(|&index| entries[index].chosen).collect();
    order.sort_by_key(|&index| (first[&company(&entries[index])], index));
    order
}

fn block(
    entries: &[Entry],
    index: usize,
    repetition: u32,
    serves: &BTreeMap<String, Vec<String>>,
) -> Vec<Planned> {
    let entry = &entries[index];
    let tenants = &entry.scenario.tenants;
    let run =
        |way, id, tenants, serves| Planned { id, entry: index, way, repetition, order: 0, tenants, serves };
    let mut block = Vec::new();
    for &way in &entry.modes {
        if way.mode == Mode::Alone {
            block.extend(tenants.iter().enumerate().map(|(number, tenant)| {
                let id = alone_id(entry, tenant, repetition);
                let serves = serves.get(&id).cloned().unwrap_or_default();
                run(way, id, vec![number], serves)
            }));
            continue;
        }
        let wanted = |tenant: &Tenant| way.mode != Mode::LatencyOnly || tenant.is_latency();
        let present = tenants.iter().enumerate().filter(|(_, tenant)| wanted(tenant));
        let id = format!("{}/{way}/{repetition}/{}", entry.full_name(), &entry.digest()[..8]);
        block.push(run(way, id, present.map(|(number, _)| number).collect(), Vec::new()));
    }
    block
}

/// Equal where a tenant alone would be measured twice in the same way.
pub fn alone_id(entry: &Entry, tenant: &Tenant, repetition: u32) -> String {
    let Scenario { duration, warmup, seed, slowdown, device, .. } = &entry.scenario;
    let requests = serde_json::to_string(&(&tenant.workload, &tenant.arrival)).expect("plain data");
    let text =
        format!("{} {} {device} {duration} {warmup} {seed} {slowdown} {requests}", tenant.name, tenant.class);
    format!("alone/{}/{repetition}/{:08x}", tenant.name, xxh3_64(text.as_bytes()) >> 32)
}

/// For whom each run alone is.
fn alone_for(entries: &[Entry]) -> BTreeMap<String, Vec<String>> {
    let mut serves: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.modes.contains(&Mode::Alone.into())) {
        for tenant in &entry.scenario.tenants {
            for repetition in 0..entry.scenario.repetitions {
                let name = format!("{}/{}", entry.full_name(), tenant.name);
                serves.entry(alone_id(entry, tenant, repetition)).or_default().push(name);
            }
        }
    }
    serves
}

fn shuffle(block: &mut [Planned], entry: &Entry, repetition: u32) {
    let seed = stream_seed(entry.scenario.seed, &format!("order of {}", entry.full_name()), repetition);
    let mut draw = Draw::new(seed);
    for last in (1..block.len()).rev() {
        block.swap(last, (draw.bits() % (last as u64 + 1)) as usize);
    }
    if entry.modes.iter().any(|way| way.slo.is_some()) {
        block.sort_by_key(|run| run.way.mode != Mode::Alone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, best_effort: u32, repetitions: u32) -> Entry {
        let text = format!(
            r#"
            schema = 1
            title = "{name}"
            duration = "2s"
            warmup = "500ms"
            repetitions = {repetitions}
            [[tenant]]
            name = "requests"
            class = "latency"
            workload = {{ model = "burst", launches = 10, blocks = 132, block = "20us" }}
            arrival = {{ process = "poisson", rate = 100 }}
            [[tenant]]
            name = "grids"
            class = "best-effort"
            workload = {{ model = "grid", blocks = {best_effort}, block = "1ms" }}
            "#
        );
        let mut scenario = scenario::parse(&text, &scenario::Origin::text("t.toml")).unwrap().remove(0);
        scenario.name = name.to_owned();
        let modes = [Mode::Alone, Mode::Timeslice, Mode::Mps, Mode::EbbIsolated].map(Way::from).to_vec();
        Entry { suite: "s".to_owned(), scenario, modes, chosen: true }
    }

    #[test]
    fn every_block_has_every_mode_once_and_a_tenant_alone_is_measured_once_for_all() {
        let entries = [entry("a", 132, 3), entry("b", 264, 3)];
        let runs = plan(&entries);
        for (index, alone) in [(0, 2), (1, 1)] {
            for repetition in 0..3 {
                let block: Vec<_> =
                    runs.iter().filter(|run| run.entry == index && run.repetition == repetition).collect();
                let of = |mode| block.iter().filter(|run| run.way.mode == mode).count();
                assert_eq!((of(Mode::Alone), of(Mode::Timeslice), of(Mode::EbbIsolated)), (alone, 1, 1));
                let orders: Vec<u32> = block.iter().map(|run| run.order).collect();
                assert_eq!(orders, (0..block.len() as u32).collect::<Vec<_>>());
            }
        }
        let requests = runs.iter().find(|run| run.id.starts_with("alone/requests/2")).unwrap();
        assert_eq!(requests.serves, ["s/a/requests", "s/b/requests"]);
        let ids: BTreeSet<_> = runs.iter().map(|run| &run.id).collect();
        assert_eq!(ids.len(), runs.len());
    }

    #[test]
    fn the_order_is_random_but_the_same_for_the_same_seed() {
        let entries = [entry("a", 132, 8)];
        let orders = |entries: &[Entry]| -> Vec<Vec<String>> {
            let runs = plan(entries);
            let block = |repetition| {
                let of = runs.iter().filter(move |run| run.repetition == repetition);
                of.map(|run| format!("{} {:?}", run.way, run.tenants)).collect()
            };
            (0..8).map(block).collect()
        };
        assert_eq!(orders(&entries), orders(&entries));
        let distinct: BTreeSet<_> = orders(&entries).into_iter().collect();
        assert!(distinct.len() > 3, "{distinct:?}");
    }

    #[test]
    fn scenarios_with_the_same_large_workers_follow_each_other() {
        let entries = [entry("a", 132, 1), entry("b", 264, 1), entry("c", 132, 1)];
        assert_eq!(neighbours(&entries), [0, 2, 1]);
    }

    #[test]
    fn every_policy_is_a_run_of_its_own_and_an_slo_is_known_before_it_is_told() {
        let mut told = entry("a", 132, 4);
        let policies = [model::Kind::Strict, model::Kind::Slo];
        let modes = [Mode::Timeslice, Mode::EbbShared, Mode::Alone];
        told.modes = Way::all(&modes, &policies, Some("1.5".parse().unwrap()));
        let runs = plan(std::slice::from_ref(&told));
        for repetition in 0..4 {
            let of = runs.iter().filter(|run| run.repetition == repetition);
            let block: Vec<String> = of.map(|run| run.way.to_string()).collect();
            assert_eq!(block[..2], ["alone", "alone"], "{block:?}");
            let rest: BTreeSet<&str> = block[2..].iter().map(String::as_str).collect();
            assert_eq!(rest, BTreeSet::from(["timeslice", "ebb-shared:strict:1.5x", "ebb-shared:slo:1.5x"]));
        }
        let untold = Entry { modes: Way::all(&modes, &policies, None), ..told };
        let ids = |runs: &[Planned]| -> BTreeSet<String> { runs.iter().map(|run| run.id.clone()).collect() };
        let (told, untold) = (ids(&runs), ids(&plan(&[untold])));
        let same: Vec<&String> = told.intersection(&untold).collect();
        assert!(same.iter().all(|id| !id.contains("ebb")) && same.len() == 12, "{same:?}");
    }

    #[test]
    fn what_changes_the_measurement_changes_the_name_of_a_run_and_nothing_else_does() {
        let first = entry("a", 132, 3);
        let id = |entry: &Entry| {
            plan(std::slice::from_ref(entry)).iter().map(|run| run.id.clone()).collect::<BTreeSet<_>>()
        };
        let mut renamed = first.clone();
        renamed.scenario.title = "another title".to_owned();
        assert_eq!(id(&first), id(&renamed));
        let mut longer = first.clone();
        longer.scenario.duration += longer.scenario.duration;
        let mut reseeded = first.clone();
        reseeded.scenario.seed += 1;
        for changed in [longer, reseeded] {
            assert!(id(&first).is_disjoint(&id(&changed)));
        }
        let mut more = first.clone();
        more.scenario.repetitions += 1;
        assert!(id(&first).is_subset(&id(&more)));
    }
}
