//! One tenant's part in one run, and how parts of different modes are matched.

use crate::Archive;
use crate::iteration::{Checks, Done, done, finished};
use crate::record::{ALONE, Run, Scenario, TenantRun};

/// What one tenant did in one run.
#[derive(Clone, Copy, Debug)]
pub struct Passage<'a> {
    pub run: &'a Run,
    pub tenant: &'a TenantRun,
}

impl Passage<'_> {
    pub fn repetition(&self) -> u32 {
        self.run.repetition
    }

    /// The counted time. Only passages of equal windows are compared: a short run sees fewer rare events, and its p99
    /// is that of another experiment.
    pub fn window(&self) -> (u64, u64) {
        (self.run.warmup_us, self.run.until_us)
    }

    /// What was done in the counted time, of iterations or of requests.
    pub fn done(&self, checks: &Checks) -> Done {
        let (from, to) = self.window();
        done(&finished(self.tenant, checks), from, to)
    }
}

/// The passages of a tenant in a mode, by repetition.
pub fn of<'a>(archive: &'a Archive, scenario: &Scenario, mode: &str, tenant: &str) -> Vec<Passage<'a>> {
    let full = format!("{}/{}/{tenant}", scenario.suite, scenario.name);
    let runs = archive.runs_of(&scenario.suite, &scenario.name, mode).into_iter();
    runs.filter_map(|run| {
        let own = run.tenants.iter().find(|part| part.name == tenant);
        let part = match mode {
            // A shared run names whom it serves, and has only one tenant, whatever it is called elsewhere.
            ALONE if run.names().contains(&full) => own.or_else(|| run.tenants.first()),
            ALONE => None,
            _ => own,
        };
        part.map(|tenant| Passage { run, tenant })
    })
    .collect()
}

/// Those of the tenant alone that can be compared with its passages in another mode.
pub fn alone<'a>(
    archive: &'a Archive,
    scenario: &Scenario,
    tenant: &str,
    beside: &[Passage<'_>],
) -> Vec<Passage<'a>> {
    let Some(window) = beside.first().map(Passage::window) else { return Vec::new() };
    let mut alone = of(archive, scenario, ALONE, tenant);
    alone.retain(|passage| passage.window() == window);
    alone
}

/// The passages of two modes in the repetitions that both have.
pub fn paired<'a>(one: &[Passage<'a>], other: &[Passage<'a>]) -> (Vec<Passage<'a>>, Vec<Passage<'a>>) {
    let partner = |passage: &Passage<'a>| {
        other.iter().find(|other| other.repetition() == passage.repetition()).map(|other| (*passage, *other))
    };
    one.iter().filter_map(partner).unzip()
}
