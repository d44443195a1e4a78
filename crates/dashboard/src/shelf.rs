//! The ledgers and event logs of tenants, as far as this daemon may read them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use daemon::report::{Process, Report};
use daemon::traces::Follower;
use telemetry::Reading;

/// How soon is looked again for a log that was not there: a process makes it with its first context, or may not be looked at.
const AGAIN: Duration = Duration::from_secs(10);
/// Who asks again so soon is given the same ledger. One is half a megabyte.
const FRESH: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub struct Shelf {
    processes: BTreeMap<u32, Slot>,
}

#[derive(Debug)]
pub struct Slot {
    pub follower: Option<Follower>,
    looked: Instant,
    ledger: Option<(Instant, Arc<Reading>)>,
}

impl Shelf {
    /// Looks for the logs of those who have come, and puts away those of who has gone.
    pub fn attend(&mut self, report: &Report) {
        let there: BTreeMap<u32, u32> =
            everybody(report).map(|process| (process.pid, process.user)).collect();
        self.processes.retain(|pid, _| there.contains_key(pid));
        for (pid, user) in there {
            let known = self.processes.get(&pid);
            let settled = |slot: &Slot| slot.follower.is_some() || slot.looked.elapsed() < AGAIN;
            if known.is_some_and(settled) {
                continue;
            }
            let follower = Follower::of_process(pid, user);
            self.processes.insert(pid, Slot { follower, looked: Instant::now(), ledger: None });
        }
    }

    pub fn of(&mut self, pid: u32) -> Option<&mut Slot> {
        self.processes.get_mut(&pid)
    }

    /// What a process has counted; `None` where that cannot be read.
    pub fn ledger(&mut self, pid: u32) -> Option<Arc<Reading>> {
        let slot = self.processes.get_mut(&pid)?;
        if let Some((_, reading)) = slot.ledger.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Some(reading.clone());
        }
        let reading = Arc::new(slot.follower.as_ref()?.ledger()?);
        slot.ledger = Some((Instant::now(), reading.clone()));
        Some(reading)
    }
}

pub fn everybody(report: &Report) -> impl Iterator<Item = &Process> {
    report.gpus.iter().flat_map(|gpu| &gpu.processes)
}
