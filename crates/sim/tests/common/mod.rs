//! Worlds to try things with.

#![allow(dead_code, reason = "each test program uses a part of it")]

use model::{Class, Dials, Kind, Nanos};
use sim::{Arrivals, Card, Ebb, Kernel, Log, Played, Rung, Scheduler, Sharing, Step, Tenant, Work, World};

pub mod random;

pub const fn us(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

pub const fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

/// A kernel of `waves` full waves of blocks.
pub fn waves(waves: u32, block: Nanos) -> Kernel {
    Kernel { blocks: 132 * waves, block, per_sm: 1, spread: 0.0, rung: Rung::Guard }
}

/// A kernel that can only be held.
pub fn persistent(duration: Nanos) -> Kernel {
    Kernel { blocks: 132, block: duration, per_sm: 1, spread: 0.0, rung: Rung::Hold }
}

pub fn work(steps: impl IntoIterator<Item = (Nanos, Kernel)>) -> Work {
    let steps = steps.into_iter().map(|(host, kernel)| Step { host, kernel }).collect();
    Work { steps, ahead: 1_024, graph: false, waits: true, syncs: Vec::new(), factors: Vec::new() }
}

/// All of it as one graph.
pub fn graph(kernels: impl IntoIterator<Item = Kernel>) -> Work {
    Work { graph: true, ..work(kernels.into_iter().map(|kernel| (us(5), kernel))) }
}

pub fn request(name: &str, arrivals: Vec<Nanos>, work: Work) -> Tenant {
    Tenant {
        name: name.to_owned(),
        class: Class::Latency,
        priority: 0,
        weight: 1,
        slo: None,
        arrivals: Arrivals::Open(arrivals),
        work,
    }
}

pub fn training(name: &str, work: Work) -> Tenant {
    Tenant {
        name: name.to_owned(),
        class: Class::BestEffort,
        priority: 0,
        weight: 1,
        slo: None,
        arrivals: Arrivals::Closed,
        work,
    }
}

/// Every `period`, from `period` on.
pub fn every(period: Nanos, until: Nanos) -> Vec<Nanos> {
    (1..).map(|n| Nanos(period.0 * n)).take_while(|&due| due < until).collect()
}

/// As Poisson would have them, `rate` a second.
pub fn poisson(seed: u64, rate: f64, until: Nanos) -> Vec<Nanos> {
    let mut word = seed | 1;
    let mut unit = || {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        (word >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut now = 0.0;
    let mut all = Vec::new();
    loop {
        now += -(1.0 - unit()).ln() / rate * 1e9;
        if now >= until.0 as f64 {
            return all;
        }
        all.push(Nanos(now as u64));
    }
}

pub fn world(sharing: Sharing, until: Nanos, tenants: Vec<Tenant>) -> World {
    World { card: Card::h200(), sharing, tenants, warmup: Nanos::ZERO, until, seed: 7, decisions: 1_000_000 }
}

pub fn ebb(kind: Kind) -> Ebb {
    Ebb::new(Dials { kind, ..Dials::default() })
}

pub fn play(world: &World, mut scheduler: impl Scheduler) -> Log {
    sim::run(world, &mut scheduler).expect("the world is in order")
}

pub fn tenant<'l>(log: &'l Log, name: &str) -> &'l Played {
    log.tenants.iter().find(|played| played.name == name).expect("it is in the world")
}

/// The world with this tenant alone.
pub fn alone(world: &World, name: &str) -> World {
    let tenants = world.tenants.iter().filter(|tenant| tenant.name == name).cloned().collect();
    World { tenants, ..world.clone() }
}

pub fn p99(log: &Log, name: &str) -> Nanos {
    tenant(log, name).quantile(0.99).expect("there were requests")
}

/// BERT as a graph, 600 a second, beside a training of 900 launches an iteration.
pub fn serving(sharing: Sharing, until: Nanos) -> World {
    let bert = graph((0..165).map(|_| waves(1, Nanos(6_000))));
    let step = |n: u64| (us(3), waves(1 + (n % 4) as u32, us(5 + n % 20)));
    let training_work = work((0..900).map(step));
    let bert = request("bert", poisson(3, 600.0, until), bert);
    world(sharing, until, vec![bert, training("resnet", training_work)])
}

/// A request bound by its launches: the GPU is busy for a tenth of it.
pub fn eager(sharing: Sharing, until: Nanos) -> World {
    let bert = work((0..165).map(|_| (us(28), waves(1, us(4)))));
    let step = |n: u64| (us(3), waves(1 + (n % 4) as u32, us(5 + n % 20)));
    let bert = request("bert", poisson(3, 90.0, until), bert);
    world(sharing, until, vec![bert, training("resnet", work((0..900).map(step)))])
}
