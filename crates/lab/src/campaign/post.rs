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

    /// What the worker calls one of its tenants. The ground knows tenants by it, so it says all that tells those apart which may live there at
    /// once: workers of several scenarios do.
    pub fn tenant_name(&self, seat: usize) -> String {
        let own = &self.seats[seat];
        let mut name = own.workload.clone();
        if !own.latency {
            name.push_str(".best-effort");
        }
        match own.stream {
            Stream::High => name.push_str(".high"),
            Stream::Normal => {}
            Stream::Low => name.push_str(".low"),
        }
        if self.slowdown != thousandths(1.0) {
            name.push_str(&format!(".x{}", self.slowdown as f64 / 1000.0));
        }
        let equal = self.seats[..seat].iter().filter(|other| *other == own).count();
        match self.twin as usize + equal {
            0 => name,
            twin => format!("{name}.{twin}"),
        }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::Kind;
    use scenario::{Device, Suite};

    use super::super::{ground, plan};
    use super::*;
    use crate::modes::Way;

    /// What a seat on a board has room for.
    const LONGEST: usize = 64;

    /// Every scenario that is built in, in every mode that there is for it.
    fn entries(device: Device) -> Vec<Entry> {
        let mut entries = Vec::new();
        for suite in Suite::names().map(|name| Suite::named(name).unwrap()) {
            for scenario in suite.scenarios {
                let scenario = scenario.for_device(device);
                let modes = Way::all(&scenario.modes(), &[Kind::Strict], None);
                entries.push(Entry { suite: suite.name.clone(), scenario, modes, chosen: true });
            }
        }
        entries
    }

    #[test]
    fn no_two_tenants_that_may_live_on_one_ground_have_one_name() {
        for device in [Device::Gpu, Device::Soft] {
            let entries = entries(device);
            let mut posts_by_name: BTreeMap<(Ground, String), Post> = BTreeMap::new();
            for run in plan::plan(&entries) {
                for (post, _) in posts(&entries[run.entry], &run, ground(&run)) {
                    let names: Vec<String> =
                        (0..post.seats.len()).map(|seat| post.tenant_name(seat)).collect();
                    assert!(names.iter().all(|name| name.len() <= LONGEST), "{names:?}");
                    let distinct: BTreeSet<&String> = names.iter().collect();
                    assert_eq!(distinct.len(), names.len(), "{names:?}");
                    // Of several tenants in one process, the driver's own ground knows nothing.
                    if let [name] = names.as_slice() {
                        let known = posts_by_name.entry((post.ground, name.clone())).or_insert(post.clone());
                        assert_eq!(*known, post, "{name}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_latency_tenant_alone_of_its_kind_is_called_like_its_workload() {
        assert_eq!(Post::plain("grid".to_owned(), true, 1.0).tenant_name(0), "grid");
        assert_eq!(Post::plain("grid".to_owned(), false, 1.0).tenant_name(0), "grid.best-effort");
        let slow = Post { twin: 2, ..Post::plain("grid".to_owned(), true, 2.5) };
        assert_eq!(slow.tenant_name(0), "grid.x2.5.2");
    }
}
