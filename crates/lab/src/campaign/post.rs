//! Posts: which workers a run needs.

use std::collections::BTreeMap;

use scenario::Mode;

use super::plan::{Entry, Planned};
use crate::crew::{Place, Stream};
use crate::modes::{Ground, stream};

/// One tenant of a worker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat {
    /// The id of its workload.
    pub workload: String,
    pub latency: bool,
    pub stream: Stream,
}

/// What makes one worker as good as another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Post {
    pub ground: Ground,
    pub seats: Vec<Seat>,
    /// In thousandths.
    pub slowdown: u64,
    /// Tells equal tenants of one scenario apart.
    pub twin: u32,
}

impl Post {
    /// A worker that hosts this tenant alone, with nothing around it.
    pub fn plain(workload: String, latency: bool, slowdown: f64) -> Post {
        let seats = vec![Seat { workload, latency, stream: Stream::Normal }];
        Post { ground: Ground::Plain, seats, slowdown: thousandths(slowdown), twin: 0 }
    }

    /// What the worker calls one of its tenants.
    pub fn tenant_name(&self, seat: usize) -> String {
        let Seat { workload, .. } = &self.seats[seat];
        if self.twin == 0 { workload.clone() } else { format!("{workload}.{}", self.twin) }
    }
}

impl Place for Post {
    fn name(&self) -> String {
        let hosted = match self.seats.as_slice() {
            [_] => self.tenant_name(0),
            seats => format!("{} tenants", seats.len()),
        };
        format!("{hosted} ({})", self.ground.name())
    }
}

/// The posts of a run on its ground, each with the tenants (of the scenario, by number) that it hosts.
pub fn posts(entry: &Entry, run: &Planned, ground: Ground) -> Vec<(Post, Vec<usize>)> {
    let slowdown = thousandths(entry.scenario.slowdown);
    let seat = |number: &usize| {
        let tenant = &entry.scenario.tenants[*number];
        let (workload, latency) = (tenant.workload.id(), tenant.is_latency());
        Seat { workload, latency, stream: stream(run.way.mode, tenant.class) }
    };
    if run.way.mode == Mode::Streams {
        let seats = run.tenants.iter().map(seat).collect();
        return vec![(Post { ground, seats, slowdown, twin: 0 }, run.tenants.clone())];
    }
    let mut twins: BTreeMap<Seat, u32> = BTreeMap::new();
    let mut posts = Vec::new();
    for number in &run.tenants {
        let seat = seat(number);
        let count = twins.entry(seat.clone()).or_default();
        let twin = *count;
        *count += 1;
        posts.push((Post { ground, seats: vec![seat], slowdown, twin }, vec![*number]));
    }
    posts
}

pub fn thousandths(slowdown: f64) -> u64 {
    (slowdown * 1000.0).round() as u64
}
