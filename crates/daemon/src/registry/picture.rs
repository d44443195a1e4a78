//! The boards and those who sit at them, for whoever draws.

use std::collections::BTreeMap;

use board::Snapshot;
use model::{Class, Nanos};

use super::Registry;
use crate::picture::{Bursts, Picture};
use crate::uuid;

impl Registry {
    pub fn picture(&self, now: Nanos, unix_ns: u64) -> Picture {
        let indices =
            self.survey.iter().filter_map(|(gpu, seen)| Some((uuid::write(*gpu), seen.index?))).collect();
        Picture { report: self.report(now), at: now, unix_ns, bursts: self.bursts(), indices }
    }

    fn bursts(&self) -> Vec<Bursts> {
        let mut sums: BTreeMap<(String, String), Snapshot> = BTreeMap::new();
        let latency = |class: Class| class == Class::Latency;
        for sitting in self.sittings.values().filter(|sitting| latency(sitting.granted.class)) {
            let table = self.tables.get(&sitting.board);
            let Some(reading) = table.and_then(|table| table.board.read(sitting.place)) else { continue };
            let tenant = format!("{:016x}", self.tenants[&sitting.tenant].number);
            let sum = sums.entry((uuid::write(sitting.board.gpu), tenant)).or_insert(Snapshot::EMPTY);
            sum.add(&reading.figures.burst_times);
        }
        sums.into_iter().map(|((gpu, tenant), times)| Bursts { gpu, tenant, times }).collect()
    }
}
