//! Worlds that nobody thought of.

use model::{Class, Dials, Kind, MOST_CONFINED, Nanos};
use proptest::prelude::*;
use sim::{Arrivals, Card, Kernel, Rung, Sharing, Step, Tenant, Work, World};

use super::us;

/// What a random world may contain.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub latency: (usize, usize),
    pub best_effort: (usize, usize),
    pub until: Nanos,
    /// Whether jobs differ in length.
    pub factors: bool,
    /// Whether kernels take only a part of the card, and blocks differ.
    pub parts: bool,
}

fn kernel(range: Range, longest_block: u64, rungs: bool) -> impl Strategy<Value = Kernel> {
    let blocks = if range.parts { 1..600u32 } else { 1..4u32 };
    let spread = if range.parts { 0..50u32 } else { 0..1u32 };
    (blocks, 1..=longest_block, 1..3u32, spread, any::<bool>()).prop_map(
        move |(blocks, block, per_sm, spread, held)| {
            let rung = if held && rungs { Rung::Hold } else { Rung::Guard };
            let (blocks, per_sm) = if range.parts { (blocks, per_sm) } else { (132 * blocks, 1) };
            Kernel { blocks, block: us(block), per_sm, spread: f64::from(spread) / 100.0, rung }
        },
    )
}

fn work(range: Range, longest_block: u64, host: u64, rungs: bool) -> impl Strategy<Value = Work> {
    let step = (0..=host, kernel(range, longest_block, rungs));
    let factors = prop::collection::vec(0.5..2.0f64, 0..if range.factors { 5 } else { 1 });
    let steps = prop::collection::vec(step, 1..7);
    let ahead = prop_oneof![Just(1_024u32), 1..5u32];
    (steps, ahead, any::<bool>(), any::<bool>(), factors, any::<prop::sample::Index>()).prop_map(
        |(steps, ahead, graph, waits, factors, sync)| {
            let sync = sync.index(2 * steps.len());
            let syncs = if sync > 0 && sync < steps.len() { vec![sync as u32] } else { Vec::new() };
            let steps = steps.into_iter().map(|(host, kernel)| Step { host: us(host), kernel }).collect();
            Work { steps, ahead, graph, waits, syncs, factors }
        },
    )
}

/// Requests, some close together and some far apart.
fn arrivals(until: Nanos) -> impl Strategy<Value = Arrivals> {
    let pause = prop_oneof![4 => 10..2_000u64, 1 => 5_000..30_000u64];
    prop::collection::vec(pause, 1..60).prop_map(move |pauses| {
        let mut now = Nanos::ZERO;
        let due = pauses.into_iter().map(|pause| {
            now += us(pause);
            now
        });
        Arrivals::Open(due.take_while(|&due| due < until).collect())
    })
}

fn request(range: Range, number: usize) -> impl Strategy<Value = Tenant> {
    let slo = prop::option::of((200..5_000u64).prop_map(us));
    (work(range, 100, 200, false), arrivals(range.until), 0..10u32, slo).prop_map(
        move |(work, arrivals, priority, slo)| Tenant {
            name: format!("request {number}"),
            class: Class::Latency,
            priority,
            weight: 1,
            slo,
            arrivals,
            work,
        },
    )
}

fn training(range: Range, number: usize) -> impl Strategy<Value = Tenant> {
    (work(range, 500, 50, true), 1..5u32).prop_map(move |(work, weight)| Tenant {
        name: format!("training {number}"),
        class: Class::BestEffort,
        priority: 0,
        weight,
        slo: None,
        arrivals: Arrivals::Closed,
        work,
    })
}

fn some<S: Strategy<Value = Tenant> + 'static>(
    (least, most): (usize, usize),
    one: impl Fn(usize) -> S,
) -> impl Strategy<Value = Vec<Tenant>> {
    let all: Vec<BoxedStrategy<Tenant>> = (0..most).map(|number| one(number).boxed()).collect();
    (all, least..=most).prop_map(|(mut tenants, count)| {
        tenants.truncate(count);
        tenants
    })
}

pub fn worlds(range: Range, sharings: &'static [Sharing]) -> impl Strategy<Value = World> {
    let requests = some(range.latency, move |number| request(range, number));
    let trainings = some(range.best_effort, move |number| training(range, number));
    (requests, trainings, any::<u64>(), prop::sample::select(sharings)).prop_map(
        move |(requests, trainings, seed, sharing)| World {
            card: Card::h200(),
            sharing,
            tenants: requests.into_iter().chain(trainings).collect(),
            warmup: Nanos::ZERO,
            until: range.until,
            seed,
            decisions: 100_000,
        },
    )
}

pub fn dials() -> impl Strategy<Value = Dials> {
    let kind = prop::sample::select(&Kind::ALL[..]);
    let confine = prop_oneof![Just(0u32), 1..=MOST_CONFINED];
    (kind, 0..500u64, 1..300u64, confine, 0..100u32).prop_map(
        |(kind, quiet, threshold, confine, solo_share)| Dials {
            kind,
            quiet: us(quiet),
            threshold: us(threshold),
            confine,
            solo_share,
            ..Dials::default()
        },
    )
}
