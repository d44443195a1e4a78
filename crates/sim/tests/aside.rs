//! The isolated domain by a policy, on a card whose lever has its price: best-effort work stays away from requests, and does not starve.

mod common;

use common::{alone, ebb, ms, p99, play, poisson, request, tenant, training, us, waves, work, world};
use model::Kind;
use sim::{Log, Sharing, Switch, World};

/// Requests of a millisecond that are bound by their launches and have no objective, with pauses of 3 ms on average, beside a
/// training that never lets the GPU idle.
fn requests_by_chance() -> World {
    let until = ms(20_000);
    let eager = work((0..100).map(|_| (us(6), waves(1, us(4)))));
    let train = work((0..400).map(|_| (us(1), waves(4, us(20)))));
    let requests = request("requests", poisson(5, 250.0, until), eager);
    world(Sharing::Isolated, until, vec![requests, training("training", train)])
}

/// What the training got, of what the requests leave it.
fn share(world: &World, log: &Log) -> f64 {
    let busy = |log: &Log| tenant(log, "training").busy.0 as f64;
    let requests = play(&alone(world, "requests"), Switch::default());
    let latency: u64 = tenant(&requests, "requests").latencies().map(|span| span.0).sum();
    let left = 1.0 - latency as f64 / world.until.0 as f64;
    busy(log) / (busy(&play(&alone(world, "training"), Switch::default())) * left)
}

#[test]
fn no_policy_lets_best_effort_work_starve_beside_requests_that_come_by_chance() {
    let world = requests_by_chance();
    let apart = p99(&play(&alone(&world, "requests"), Switch::default()), "requests");
    let ratio = |log: &Log| p99(log, "requests").0 as f64 / apart.0 as f64;
    for kind in Kind::ALL {
        let log = play(&world, ebb(kind));
        let (share, ratio) = (share(&world, &log), ratio(&log));
        assert!(share > 0.8 && ratio < 1.1, "{}: {share:.3} of what is left, p99 {ratio:.3}", kind.name());
    }
    let hardware = play(&world, Switch::default());
    assert!(ratio(&hardware) > 1.2, "the hardware comes back in every gap: {:.3}", ratio(&hardware));
}

#[test]
fn a_request_costs_best_effort_work_no_more_than_one_stop_by_the_hardware_and_one_by_the_lever() {
    let world = requests_by_chance();
    for kind in Kind::ALL {
        let log = play(&world, ebb(kind));
        let requests = tenant(&log, "requests").latencies().count() as u64;
        assert!(log.switches <= 4 * requests, "{}: {} for {requests}", kind.name(), log.switches);
    }
}
