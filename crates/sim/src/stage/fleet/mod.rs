//! How many GPUs a fleet needs.
//!
//! The fleet is a list of tenants by the hundred: services, each with its requests, and batch jobs, each content with a
//! share of what a GPU of its own would give it. Today each has a GPU of its own. Shared, they are placed by the plainest
//! rule there is, first fit, the largest first: a tenant goes to the first GPU on which everybody there, itself included, still gets
//! what it was promised. Whether that is so is not estimated but played: the world of those tenants on one GPU, once for
//! each combination that comes up. There are few, since tenants come by the hundred, so thousands of GPUs cost tens of
//! worlds.
//!
//! What is promised to a service is a multiple of its own p99 alone. The lower the multiple, the more GPUs: the answer is a row
//! for each.

mod file;

use std::collections::BTreeMap;

use model::{Class, Nanos};
use scenario::Workload;
use scenario::profile::Profile;
use scenario::{Arrival, Pace, Process};

pub use file::parse;

use super::{Role, Way};
use crate::{Arrivals, Card, Error, Log, Sharing, Tenant, World};

/// Everybody who wants GPUs.
#[derive(Clone, Debug)]
pub struct Fleet {
    pub title: String,
    /// Of each GPU, in GiB.
    pub memory_gib: f64,
    /// The promises to answer for, as multiples of the p99 alone.
    pub promises: Vec<f64>,
    /// How long each combination is watched, at least.
    pub watched: Nanos,
    pub seed: u64,
    pub groups: Vec<Group>,
}

/// So many tenants of one sort.
#[derive(Clone, Debug)]
pub struct Group {
    pub name: String,
    pub count: u32,
    pub workload: Workload,
    pub wants: Wants,
    pub memory_gib: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wants {
    /// A service: so many requests, Poisson.
    Requests(Pace),
    /// A batch job: at least this share of what it does alone.
    Share(f64),
}

/// The answer for one promise.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub promise: f64,
    /// One GPU for everybody.
    pub apart: u64,
    pub shared: u64,
    /// Which combinations there are, and on how many GPUs: the number of tenants of each group.
    pub placed: Vec<(Vec<u32>, u64)>,
}

/// More tenants than these on one GPU nobody runs.
const MOST_ON_ONE: u32 = 12;
/// A p99 wants this many requests; beyond this length nothing is watched.
const REQUESTS: f64 = 600.0;
const LONGEST: Nanos = Nanos(60_000_000_000);
const WARMUP: Nanos = Nanos(500_000_000);

/// What each group does alone.
struct Known {
    role: Role,
    /// The p99 of a service, or how often a job iterates, in seconds.
    alone: f64,
    /// Requests per second.
    rate: Option<f64>,
    /// The share of a GPU that it needs.
    demand: f64,
}

/// Places a fleet's tenants, shared in one way.
pub struct Planner<'a> {
    fleet: &'a Fleet,
    way: &'a Way,
    card: &'a Card,
    known: Vec<Known>,
    /// By combination: the worst multiple of any service's p99 alone; infinite where a job gets too little.
    tried: BTreeMap<Vec<u32>, f64>,
    pub simulated: Nanos,
}

impl<'a> Planner<'a> {
    pub fn new(fleet: &'a Fleet, way: &'a Way, card: &'a Card) -> Result<Planner<'a>, Error> {
        let mut planner =
            Planner { fleet, way, card, known: Vec::new(), tried: BTreeMap::new(), simulated: Nanos::ZERO };
        for group in &fleet.groups {
            let known = planner.alone(group)?;
            planner.known.push(known);
        }
        Ok(planner)
    }

    fn alone(&mut self, group: &Group) -> Result<Known, Error> {
        let class = group.class();
        let role = Role::of(&group.name, class, &group.workload, self.card, &Profile::built_in)?;
        let rate = match group.wants {
            Wants::Requests(pace) => Arrival { process: Process::Poisson, pace }.rate(role.capacity()),
            Wants::Share(_) => None,
        };
        let gpu = role.gpu.as_secs_f64();
        let demand = match group.wants {
            Wants::Requests(_) => rate.unwrap_or(0.0) * gpu,
            Wants::Share(share) => share * gpu / role.alone.as_secs_f64().max(gpu),
        };
        let mut known = Known { role, alone: 0.0, rate, demand };
        if known.rate.is_some_and(|rate| rate >= known.role.capacity()) {
            let (rate, most) = (known.rate.unwrap_or(0.0), known.role.capacity());
            let name = &group.name;
            return Err(Error::Stage(format!(
                "{name}: {rate:.1} requests/s are more than the {most:.1} that one GPU answers"
            )));
        }
        let tenants = vec![self.tenant(&known, &group.name, self.length(rate))];
        let log = self.play(tenants, Sharing::TimeSlicing, self.length(rate))?;
        known.alone = match group.wants {
            Wants::Requests(_) => p99(&log, 0).unwrap_or(f64::INFINITY),
            Wants::Share(_) => iterations(&log, 0, self.length(rate)),
        };
        Ok(known)
    }

    /// How many GPUs are needed if every service is promised this multiple of its p99 alone.
    pub fn answer(&mut self, promise: f64) -> Result<Answer, Error> {
        let mut order: Vec<usize> = (0..self.known.len()).collect();
        let key = |&group: &usize| (self.fleet.groups[group].class() != Class::Latency, group);
        // Services before jobs, the largest first; equal ones as the fleet lists them.
        order.sort_by(|a, b| {
            let (one, other) = (key(a), key(b));
            one.0
                .cmp(&other.0)
                .then(self.known[*b].demand.total_cmp(&self.known[*a].demand))
                .then(one.1.cmp(&other.1))
        });
        let mut racks: Vec<(Vec<u32>, u64)> = Vec::new();
        for group in order {
            self.place(group, promise, &mut racks)?;
        }
        let shared = racks.iter().map(|(_, count)| count).sum();
        let apart = self.fleet.groups.iter().map(|group| u64::from(group.count)).sum();
        Ok(Answer { promise, apart, shared, placed: racks })
    }

    /// First fit, for all tenants of a group at once: GPUs with the same tenants are one entry with a count.
    fn place(&mut self, group: usize, promise: f64, racks: &mut Vec<(Vec<u32>, u64)>) -> Result<(), Error> {
        let mut left = u64::from(self.fleet.groups[group].count);
        let mut place = 0;
        while left > 0 && place < racks.len() {
            let more = with(&racks[place].0, group);
            if racks[place].1 == 0 || !self.fits(&more, promise)? {
                place += 1;
                continue;
            }
            let taken = left.min(racks[place].1);
            left -= taken;
            racks[place].1 -= taken;
            if racks[place].1 == 0 {
                // It may have room for one more, and is still the first.
                racks[place] = (more, taken);
            } else {
                racks.insert(place, (more, taken));
            }
        }
        let mut full = with(&vec![0; self.fleet.groups.len()], group);
        let mut each: u64 = 1;
        while each < left && self.fits(&with(&full, group), promise)? {
            full = with(&full, group);
            each += 1;
        }
        while left > 0 {
            let on_each = each.min(left);
            let count = left / on_each;
            let mut tenants = vec![0; self.fleet.groups.len()];
            tenants[group] = u32::try_from(on_each).unwrap_or(u32::MAX);
            racks.push((tenants, count));
            left -= count * on_each;
        }
        racks.retain(|(_, count)| *count > 0);
        Ok(())
    }

    fn fits(&mut self, tenants: &[u32], promise: f64) -> Result<bool, Error> {
        let each = || tenants.iter().zip(&self.fleet.groups).zip(&self.known);
        let sum = |of: &dyn Fn(&Group, &Known) -> f64| -> f64 {
            each().map(|((&count, group), known)| f64::from(count) * of(group, known)).sum()
        };
        let memory = sum(&|group, _| group.memory_gib);
        let demand = sum(&|_, known| known.demand);
        if memory > self.fleet.memory_gib || demand > 1.0 || tenants.iter().sum::<u32>() > MOST_ON_ONE {
            return Ok(false);
        }
        if let Some(&worst) = self.tried.get(tenants) {
            return Ok(worst <= promise);
        }
        let worst = self.worst(tenants)?;
        self.tried.insert(tenants.to_vec(), worst);
        Ok(worst <= promise)
    }

    /// Plays one GPU with these tenants.
    fn worst(&mut self, tenants: &[u32]) -> Result<f64, Error> {
        let groups: Vec<usize> =
            (0..tenants.len()).flat_map(|group| (0..tenants[group]).map(move |_| group)).collect();
        let slowest = groups.iter().filter_map(|&group| self.known[group].rate).fold(f64::INFINITY, f64::min);
        let length = self.length(Some(slowest).filter(|rate| rate.is_finite()));
        let cast = groups.iter().enumerate().map(|(number, &group)| {
            let known = &self.known[group];
            let mut tenant =
                self.tenant(known, &format!("{} {number}", self.fleet.groups[group].name), length);
            // What the strictest promise allows: a policy must not spend what another row of the answer has not.
            let strictest = self.fleet.promises.iter().copied().fold(f64::INFINITY, f64::min);
            tenant.slo = known.rate.map(|_| Nanos((known.alone * strictest * 1e9) as u64));
            tenant
        });
        let cast = cast.collect();
        let log = self.play(cast, self.way.sharing(), length)?;
        let judged = groups.iter().enumerate().map(|(place, &group)| match self.fleet.groups[group].wants {
            Wants::Requests(_) => p99(&log, place).unwrap_or(f64::INFINITY) / self.known[group].alone,
            Wants::Share(share) if iterations(&log, place, length) >= share * self.known[group].alone => 0.0,
            Wants::Share(_) => f64::INFINITY,
        });
        Ok(judged.fold(0.0, f64::max))
    }

    fn tenant(&self, known: &Known, name: &str, length: Nanos) -> Tenant {
        let Role { class, priority, weight, slo, work, .. } = known.role.clone();
        let arrival = known.rate.map(|rate| Arrival { process: Process::Poisson, pace: Pace::Rate(rate) });
        let seed = scenario::stream_seed(self.fleet.seed, name, 0);
        let due = arrival.and_then(|arrival| arrival.due(seed, known.rate, WARMUP + length));
        let arrivals = due.map_or(Arrivals::Closed, Arrivals::Open);
        Tenant { name: name.to_owned(), class, priority, weight, slo, arrivals, work }
    }

    fn play(&mut self, tenants: Vec<Tenant>, sharing: Sharing, length: Nanos) -> Result<Log, Error> {
        let world = World {
            card: self.card.clone(),
            sharing,
            tenants,
            warmup: WARMUP,
            // Requests that came at the very end still have time to be answered.
            until: WARMUP + length + Nanos(length.0 / 4),
            seed: self.fleet.seed,
            decisions: 0,
        };
        self.simulated += world.until;
        crate::run(&world, self.way.scheduler().as_mut())
    }

    /// Long enough for a p99 of the slowest service.
    fn length(&self, rate: Option<f64>) -> Nanos {
        let enough = rate.map_or(0.0, |rate| REQUESTS / rate.max(1e-3));
        self.fleet.watched.max(Nanos((enough * 1e9) as u64)).min(LONGEST.max(self.fleet.watched))
    }
}

impl Group {
    pub fn class(&self) -> Class {
        match self.wants {
            Wants::Requests(_) => Class::Latency,
            Wants::Share(_) => Class::BestEffort,
        }
    }
}

fn with(tenants: &[u32], group: usize) -> Vec<u32> {
    let mut more = tenants.to_vec();
    more[group] += 1;
    more
}

/// From arrival, in seconds, with what was not answered as never; none if nothing was asked.
fn p99(log: &Log, place: usize) -> Option<f64> {
    let counted: Vec<_> = log.tenants[place].jobs.iter().filter(|job| job.counts).collect();
    let mut latencies: Vec<f64> = counted
        .iter()
        .map(|job| job.end.map_or(f64::INFINITY, |end| end.since(job.due).as_secs_f64()))
        .collect();
    latencies.sort_unstable_by(f64::total_cmp);
    latencies.get(((latencies.len() as f64 * 0.99).ceil() as usize).max(1) - 1).copied()
}

/// Per second, in the watched time.
fn iterations(log: &Log, place: usize, length: Nanos) -> f64 {
    log.tenants[place].ended(WARMUP, WARMUP + length) as f64 / length.as_secs_f64()
}
