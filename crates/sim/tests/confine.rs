//! Best-effort work on some of the SMs beside requests, instead of none.

mod common;

use common::{
    alone, every, graph, ms, p99, persistent, play, request, tenant, training, us, waves, work, world,
};
use model::{Kind, Nanos};
use sim::{Ebb, Hand, Kernel, Log, Sharing, Switch, World};

/// No request is kept alone: in worlds of seconds that would be most of what happens.
fn none_alone() -> Hand {
    Hand { solo_share: Some(0), ..Hand::default() }
}

fn confined(share: u32) -> Ebb {
    Ebb::by_hand(Kind::Slo, Hand { confine: Some(share), ..none_alone() })
}

/// Requests of a millisecond for half of the time, none of which waits for another, beside a training that never lets the GPU idle and
/// whose blocks are too long to run beside them. They may take so many tenths of their p99 alone.
fn requests_beside_training(sharing: Sharing, tenths: u64) -> World {
    let until = ms(30_000);
    let requests = graph((0..165).map(|_| waves(1, us(6))));
    let train = work((0..20).map(|_| (us(1), waves(4, us(450)))));
    let requests = request("requests", every(us(2_017), until), requests);
    let mut world = world(sharing, until, vec![requests, training("training", train)]);
    let apart = p99(&play(&alone(&world, "requests"), Switch::default()), "requests");
    world.tenants[0].slo = Some(Nanos(apart.0 * tenths / 10));
    world
}

fn busy(log: &Log, name: &str) -> f64 {
    tenant(log, name).busy.0 as f64
}

fn objective(world: &World) -> Nanos {
    world.tenants[0].slo.expect("the requests have one")
}

#[test]
fn where_there_is_room_work_on_half_of_the_sms_gets_more_and_the_objective_is_kept() {
    let world = requests_beside_training(Sharing::Shared, 25);
    let by_hand = |share| Ebb::by_hand(Kind::Slo, Hand { confine: Some(share), ..Hand::default() });
    let (none, half) = (play(&world, by_hand(0)), play(&world, by_hand(50)));
    let more = busy(&half, "training") / busy(&none, "training");
    assert!(more > 1.15, "{more:.3} times as much");
    let (slow, fast) = (p99(&half, "requests"), p99(&none, "requests"));
    assert!(fast < slow && slow <= objective(&world), "p99 {fast} and {slow}, allowed {}", objective(&world));
}

#[test]
fn the_controller_finds_that_by_itself() {
    let world = requests_beside_training(Sharing::Shared, 25);
    let mut ebb = Ebb::by_hand(Kind::Slo, Hand::default());
    let log = sim::run(&world, &mut ebb).expect("the world is in order");
    assert!(ebb.dials().confine > 0, "{:?}", ebb.dials());
    let more = busy(&log, "training") / busy(&play(&world, confined(0)), "training");
    assert!(more > 1.1, "{more:.3} times as much");
    assert!(p99(&log, "requests") <= objective(&world));
}

#[test]
fn near_the_time_alone_the_controller_never_confines() {
    let world = requests_beside_training(Sharing::Shared, 12);
    let free = play(&world, Ebb::by_hand(Kind::Slo, none_alone()));
    assert!(free == play(&world, confined(0)), "it is as if there were no such thing");
    assert!(busy(&free, "training") > 0.0);
}

#[test]
fn in_the_isolated_domain_it_means_nothing() {
    let world = requests_beside_training(Sharing::Isolated, 25);
    assert!(play(&world, confined(50)) == play(&world, confined(0)));
}

#[test]
fn in_the_gaps_of_a_request_it_has_all_sms() {
    let mut world = common::eager(Sharing::Shared, ms(3_000));
    // Long enough that to stop for each is worth it.
    world.tenants[0].work.steps.iter_mut().for_each(|step| step.host = us(300));
    let log = play(&world, confined(50));
    let gaps = &tenant(&log, "bert").gaps;
    assert!(gaps.filled * 10 > gaps.seen * 9, "{gaps:?}");
    let used = gaps.used.0 as f64 / gaps.idle.0 as f64;
    assert!(used > 0.75, "{used:.3} of the gaps");
}

/// One request of 20 ms, beside iterations of such kernels.
fn one_long_request(kernel: Kernel) -> World {
    let long = graph((0..100).map(|_| waves(1, us(200))));
    let train = training("training", work((0..50).map(|_| (us(0), kernel))));
    world(Sharing::Shared, ms(60), vec![request("request", vec![ms(1)], long), train])
}

/// How fast the training is beside the request, and how much longer that takes.
fn during(kernel: Kernel, share: u32) -> (f64, f64) {
    let world = one_long_request(kernel);
    let took = |log: &Log| p99(log, "request").0 as f64;
    let log = play(&world, confined(share));
    // The rest of the world is the training's, whether or not it was confined.
    let gained = busy(&log, "training") - busy(&play(&world, confined(0)), "training");
    let longer = took(&log) - took(&play(&world, confined(0)));
    let apart = took(&play(&alone(&world, "request"), Switch::default()));
    ((gained + longer) / took(&log), took(&log) / apart)
}

#[track_caller]
fn near(what: f64, wanted: f64) {
    assert!((what - wanted).abs() < 0.04 * wanted.max(1.0), "{what:.3}, {wanted} wanted");
}

#[test]
fn kernels_are_slower_by_the_sms_that_they_lack_and_requests_by_the_memory_that_they_share() {
    let costs = sim::Card::h200().costs;
    for (share, rate) in [(25, 0.25), (50, 0.5), (75, 0.75)] {
        let (training, request) = during(waves(4, us(20)), share);
        near(training, rate);
        near(request, costs.confined);
    }
    // 33 of 132 SMs are all that it needs.
    let quarter = Kernel { blocks: 33, ..waves(1, us(20)) };
    near(during(quarter, 50).0, 1.0);
    near(during(quarter, 10).0, 0.4);
}

#[test]
fn what_can_only_be_held_waits_and_costs_the_request_nothing() {
    let (training, request) = during(persistent(us(20)), 50);
    near(training, 0.0);
    near(request, 1.0);
}
