//! The published systems, and what is known to be weak about them.

mod common;

use common::{
    alone, eager, ebb, every, ms, p99, persistent, play, request, tenant, training, us, waves, work, world,
};
use model::{Dials, Kind, Nanos};
use sim::rivals::{Fikit, Hummingbird, Reef, Rival, Tally};
use sim::{Ebb, Log, Sharing, World};

/// A request bound by its launches: a gap of 80 µs after each of its kernels; beside kernels of 2 ms in blocks of 10 µs.
fn bubbles() -> World {
    let steps = work((0..40).map(|_| (us(80), waves(1, us(10)))));
    let requests = request("requests", every(ms(10), ms(1_000)), steps);
    world(
        Sharing::Shared,
        ms(1_000),
        vec![requests, training("training", work([(us(0), waves(200, us(10)))]))],
    )
}

/// Requests that follow each other at moments which nothing foretells, beside long kernels.
fn surprises() -> World {
    let steps = work([(us(0), waves(1, us(100)))]);
    let requests = request("requests", common::poisson(5, 100.0, ms(1_000)), steps);
    world(
        Sharing::Shared,
        ms(1_000),
        vec![requests, training("training", work([(us(0), waves(100, us(20)))]))],
    )
}

fn work_done(log: &Log) -> f64 {
    tenant(log, "training").busy.0 as f64
}

#[test]
fn fikit_lets_a_surprise_wait_for_a_whole_kernel() {
    let world = surprises();
    let fikit = play(&world, Fikit::default());
    let strict = play(&world, ebb(Kind::Strict));
    // Two milliseconds are a whole kernel; a block is 20 µs.
    assert!(
        tenant(&fikit, "requests").longest_wait > us(1_500),
        "{}",
        tenant(&fikit, "requests").longest_wait
    );
    assert!(
        tenant(&strict, "requests").longest_wait < us(60),
        "{}",
        tenant(&strict, "requests").longest_wait
    );
    assert!(p99(&fikit, "requests") > p99(&strict, "requests") + us(1_000));
}

#[test]
fn fikit_fills_gaps_with_whole_kernels_that_fit_and_with_no_others() {
    let mut world = bubbles();
    world.tenants[1].work = work((0..100).map(|_| (us(0), persistent(us(30)))));
    let short = play(&world, Fikit::default());
    let gaps = tenant(&short, "requests").gaps;
    assert!(gaps.filled * 10 > gaps.seen * 9, "{gaps:?}");
    assert_eq!(p99(&short, "requests"), p99(&play(&alone(&world, "requests"), Fikit::default()), "requests"));
    world.tenants[1].work = work((0..100).map(|_| (us(0), persistent(us(300)))));
    let long = play(&world, Fikit::default());
    assert_eq!(tenant(&long, "requests").gaps.filled, 0);
}

#[test]
fn tally_never_uses_gaps_below_its_threshold() {
    let world = bubbles();
    let tally = play(&world, Tally);
    // No request is kept alone: in a world of seconds that would be most of what happens.
    let gaps = play(&world, Ebb::new(Dials { kind: Kind::Gaps, solo_share: 0, ..Dials::default() }));
    assert_eq!(tenant(&tally, "requests").gaps.used, Nanos::ZERO);
    let used = tenant(&gaps, "requests").gaps;
    assert!(used.filled * 10 > used.seen * 8, "{used:?}");
    assert!(work_done(&gaps) > 1.1 * work_done(&tally));
    // It does stop between blocks.
    assert!(tenant(&tally, "requests").longest_wait < us(60));
}

#[test]
fn hummingbird_pays_for_splitting_in_every_bubble() {
    // Nothing but bubbles: the next request follows at once.
    let mut world = bubbles();
    world.tenants[0].arrivals = sim::Arrivals::Closed;
    let hummingbird = play(&world, Hummingbird);
    let gaps = play(&world, ebb(Kind::Gaps));
    // Both are let in for as long; what they do there is counted as what it would take alone.
    let used =
        |log: &Log| tenant(log, "requests").gaps.used.0 as f64 / tenant(log, "requests").gaps.filled as f64;
    assert!(tenant(&hummingbird, "requests").gaps.filled > 0);
    assert!(used(&hummingbird) < 0.75 * used(&gaps), "{} {}", used(&hummingbird), used(&gaps));
}

#[test]
fn hummingbird_consolidates_when_it_is_quiet_and_a_surprise_waits_for_it() {
    let world = surprises();
    let hummingbird = play(&world, Hummingbird);
    let strict = play(&world, ebb(Kind::Strict));
    let waited = tenant(&hummingbird, "requests").longest_wait;
    assert!(waited > us(1_500), "{waited}");
    // Won back: whole kernels run at their own speed, without a guard.
    assert!(
        tenant(&hummingbird, "training").ended(ms(0), ms(1_000))
            > tenant(&strict, "training").ended(ms(0), ms(1_000))
    );
}

#[test]
fn reef_stops_at_once_and_does_work_twice() {
    let world = surprises();
    let reef = play(&world, Reef::killing());
    let strict = play(&world, ebb(Kind::Strict));
    assert!(tenant(&reef, "requests").longest_wait < us(2), "{}", tenant(&reef, "requests").longest_wait);
    let wasted = tenant(&reef, "training").wasted;
    assert!(wasted > us(500) && tenant(&strict, "training").wasted == Nanos::ZERO, "{wasted}");
    // The more often it is stopped, the less is left: with a pause shorter than the kernel nothing ever ends.
    let mut often = world.clone();
    often.tenants[0].arrivals = sim::Arrivals::Open(every(us(1_500), ms(1_000)));
    let ended = |log: &Log| tenant(log, "training").ended(ms(5), ms(1_000));
    assert_eq!(ended(&play(&often, Reef::killing())), 0);
    assert!(ended(&play(&often, ebb(Kind::Strict))) > 300);
}

#[test]
fn reef_on_nvidia_waits_for_the_running_kernel() {
    let log = play(&surprises(), Reef::waiting());
    assert!(tenant(&log, "requests").longest_wait > us(1_500));
    assert_eq!(tenant(&log, "training").wasted, Nanos::ZERO);
}

#[test]
fn each_is_known_by_its_name() {
    for rival in Rival::ALL {
        assert_eq!(rival.scheduler().name(), rival.name());
    }
}

#[test]
fn a_request_bound_by_its_launches_is_as_fast_beside_gaps_that_are_filled() {
    let world = eager(Sharing::Shared, ms(500));
    let gaps = play(&world, ebb(Kind::Gaps));
    let alone = play(&alone(&world, "bert"), ebb(Kind::Gaps));
    assert!(p99(&gaps, "bert").0 < p99(&alone, "bert").0 * 105 / 100);
}
