//! From what people have to worlds, and back.
//!
//! What people have is a scenario of the lab, with the kernels that were recorded of its workloads; or an archive of runs that
//! were measured on a card. Both become a [`Stage`]: tenants with their work and their arrivals, of which there is a world
//! for every way of sharing and every repetition. What comes out of a world becomes a line of a result file, so that
//! everything that reads measurements reads simulations: figures, reports, comparisons. The device of such a file is of the
//! kind [`KIND`], and results refuses to mix it with others.
//!
//! * `work`: what a request consists of, from a workload's profile
//! * `fit`: the same work, made as long as it was measured to be alone
//! * `cast`: a scenario's tenants; `replay`: those of an archive
//! * `way`: the ways of sharing, by their names; `play`: many worlds at once
//! * `record`: what happened, as the lab writes it down
//! * [`fleet`]: how many GPUs many tenants need
//!
//! Nothing is learned from a run with company: a replay knows each tenant's runs alone and when its requests were due. So what
//! it says of the runs with company can be held against them (`tests/reality.rs`).

mod cast;
mod fit;
pub mod fleet;
mod play;
mod record;
mod replay;
mod way;
mod work;

use model::{Class, Nanos};
use results::record::Scenario;

use crate::{Arrivals, Card, Sharing, Tenant, Work, World};

pub use fit::alone_time;
pub use play::{Performance, play, worlds};
pub use record::{KIND, device};
pub use way::{NoWay, WORDS, Way, set};
pub use work::work_of;

/// Everything that is known before anything is played.
#[derive(Clone, Debug)]
pub struct Stage {
    pub card: Card,
    /// As the result file has it: names, lengths, promises.
    pub scenario: Scenario,
    pub cast: Vec<Role>,
    /// For each repetition, the arrivals of each of the cast.
    pub offered: Vec<Vec<Arrivals>>,
    /// Until when requests that came in time may be answered.
    pub drained: Nanos,
}

/// A tenant without its arrivals.
#[derive(Clone, Debug)]
pub struct Role {
    pub name: String,
    pub class: Class,
    pub priority: u32,
    pub weight: u32,
    pub slo: Option<Nanos>,
    /// The name of its workload.
    pub workload: String,
    /// What a request takes of the GPU, and what it takes altogether, alone.
    pub gpu: Nanos,
    pub alone: Nanos,
    pub work: Work,
}

impl Stage {
    /// How many repetitions have arrivals.
    pub fn repetitions(&self) -> u32 {
        u32::try_from(self.offered.len()).unwrap_or(u32::MAX)
    }

    /// The world in which all tenants share the card in this way.
    pub fn world(&self, sharing: Sharing, repetition: u32) -> World {
        let all: Vec<usize> = (0..self.cast.len()).collect();
        self.of(&all, sharing, repetition)
    }

    /// The world in which one tenant has the card to itself.
    pub fn alone(&self, tenant: usize, repetition: u32) -> World {
        self.of(&[tenant], Sharing::TimeSlicing, repetition)
    }

    fn of(&self, present: &[usize], sharing: Sharing, repetition: u32) -> World {
        let offered = self.offered.get(repetition as usize);
        let tenant = |&number: &usize| {
            let Role { name, class, priority, weight, slo, work, .. } = self.cast[number].clone();
            let arrivals = offered.and_then(|all| all.get(number)).cloned().unwrap_or(Arrivals::Closed);
            Tenant { name, class, priority, weight, slo, arrivals, work }
        };
        World {
            card: self.card.clone(),
            sharing,
            tenants: present.iter().map(tenant).collect(),
            warmup: micros(self.scenario.warmup_us),
            until: self.drained,
            // Two repetitions differ by what is drawn for their jobs, too.
            seed: scenario::stream_seed(self.scenario.seed, "jobs", repetition),
            decisions: 0,
        }
    }
}

/// As long as the lab waits for requests that came in time.
fn drained(until: Nanos) -> Nanos {
    const SHORTEST: Nanos = Nanos::from_millis(500);
    until + Nanos(until.0 / 8).max(SHORTEST)
}

pub(crate) fn micros(us: u64) -> Nanos {
    Nanos(us.saturating_mul(1_000))
}
