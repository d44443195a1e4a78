//! The card against what was measured on one (`docs/benchmarks/isolated.md`, `guard.md`): the microbenchmark of bursts beside endless
//! grids. Bounds are what the tables scatter by, and a little.

mod common;

use common::{alone, ebb, every, ms, play, request, tenant, training, us, waves, work, world};
use model::{Kind, Nanos};
use sim::{Kernel, Log, Rung, Sharing, Switch, Tenant, World};

/// A burst of ten launches of 132 blocks of 20 µs, at moments that have nothing to do with slices, beside grids of 20 ms.
fn bursts(sharing: Sharing, block: Nanos) -> World {
    let until = ms(2_000);
    let burst = work((0..10).map(|_| (us(0), waves(1, us(20)))));
    let grid = waves((ms(20).0 / block.0) as u32, block);
    let tenants = vec![request("bursts", every(us(5_117), until), burst), endless("grids", grid)];
    world(sharing, until, tenants)
}

fn endless(name: &str, grid: Kernel) -> Tenant {
    let mut tenant = training(name, work([(us(0), grid)]));
    tenant.work.waits = false;
    tenant
}

fn quantile(log: &Log, q: f64) -> f64 {
    tenant(log, "bursts").quantile(q).expect("there were bursts").as_micros_f64()
}

fn rate(world: &World, log: &Log, name: &str) -> f64 {
    let apart = play(&alone(world, name), Switch::default());
    tenant(log, name).busy.0 as f64 / tenant(&apart, name).busy.0 as f64
}

#[track_caller]
fn within(what: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&what), "{what:.3} is not between {low} and {high}");
}

#[test]
fn a_burst_alone_takes_its_kernels_and_a_launch() {
    let world = bursts(Sharing::Isolated, us(1_000));
    // 216 µs of it on the GPU; 238 to 245 with the host's way of seeing its end.
    within(quantile(&play(&alone(&world, "bursts"), Switch::default()), 0.5), 200.0, 245.0);
}

#[test]
fn the_shortest_slice_costs_a_burst_one_switch_and_its_neighbour_two() {
    for block in [us(20), us(1_000)] {
        let world = bursts(Sharing::Isolated, block);
        let apart = quantile(&play(&alone(&world, "bursts"), Switch::default()), 0.5);
        let log = play(&world, Switch::default());
        within(quantile(&log, 0.5) - apart, 160.0, 205.0);
        within(quantile(&log, 0.99) - apart, 160.0, 240.0);
        // 1,994 of 2,000 ms alone; of each burst 544 to 601 µs are lost, of 5,117.
        within(rate(&world, &log, "grids"), 0.87, 0.91);
    }
}

#[test]
fn default_slices_let_a_burst_wait_for_half_of_one_and_a_whole_one_at_worst() {
    let log = play(&bursts(Sharing::TimeSlicing, us(1_000)), Switch::default());
    within(quantile(&log, 0.5), 1_050.0, 1_500.0);
    within(quantile(&log, 0.99), 2_200.0, 2_650.0);
}

#[test]
fn with_priorities_each_kernel_waits_for_running_blocks() {
    let log = |micros| {
        let mut world = bursts(Sharing::MpsPriority, us(micros));
        world.tenants[0].arrivals = sim::Arrivals::Closed;
        play(&world, Switch::default())
    };
    within(quantile(&log(20), 0.5), 259.0, 410.0);
    within(quantile(&log(100), 0.5), 800.0, 1_000.0);
    within(quantile(&log(1_000), 0.5), 4_985.0, 7_310.0);
}

#[test]
fn without_priorities_each_kernel_waits_for_a_grid() {
    let mut world = bursts(Sharing::Mps, us(1_000));
    world.tenants[0].arrivals = sim::Arrivals::Closed;
    within(quantile(&play(&world, Switch::default()), 0.5) * 1e-3, 150.0, 195.0);
}

#[test]
fn the_guard_lets_a_burst_wait_for_the_flag_and_one_block() {
    for (block, most) in [(5, 20.0), (20, 35.0), (100, 115.0)] {
        let world = bursts(Sharing::Shared, us(block));
        let apart = quantile(&play(&alone(&world, "bursts"), ebb(Kind::Strict)), 0.99);
        within(quantile(&play(&world, ebb(Kind::Strict)), 0.99) - apart, 0.0, most);
    }
}

#[test]
fn a_kernel_that_can_only_be_held_runs_out() {
    let mut world = bursts(Sharing::Shared, us(1_000));
    world.tenants[1].work.steps[0].kernel = Kernel { rung: Rung::Hold, ..waves(5, us(1_000)) };
    let log = play(&world, ebb(Kind::Strict));
    let longest = tenant(&log, "bursts").longest_wait;
    assert!(longest > us(4_000) && longest < us(5_100), "{longest}");
}

#[test]
fn two_best_effort_tenants_take_turns_at_little_cost_and_stand_still_without() {
    let until = ms(2_000);
    let tenants = || vec![endless("a", waves(5, us(1_000))), endless("b", waves(5, us(1_000)))];
    let both = |world: &World, log: &Log| rate(world, log, "a") + rate(world, log, "b");
    let turns = world(Sharing::Isolated, until, tenants());
    within(both(&turns, &play(&turns, Switch::default())), 0.95, 1.0);
    let slices = world(Sharing::TimeSlicing, until, tenants());
    within(both(&slices, &play(&slices, Switch::default())), 0.87, 0.93);
    // With slices of 200 µs the two of them get on at 0.41 of alone, with 1 µs not at all.
    let mut short = slices.clone();
    short.card.costs.slice = us(200);
    within(both(&short, &play(&short, Switch::default())), 0.35, 0.56);
    short.card.costs.slice = us(1);
    within(both(&short, &play(&short, Switch::default())), 0.0, 0.01);
}

#[test]
fn a_host_that_is_slower_than_the_gpu_loses_less_than_it_waits() {
    // 165 launches, 30 µs apart: while the GPU is on its way, launches pile up, and are caught up with.
    let until = ms(1_000);
    let eager = work((0..165).map(|_| (us(26), waves(1, us(4)))));
    let tenants =
        vec![request("bursts", every(ms(11), until), eager), endless("grids", waves(20, us(1_000)))];
    let world = world(Sharing::Isolated, until, tenants);
    let apart = quantile(&play(&alone(&world, "bursts"), Switch::default()), 0.5);
    let log = play(&world, Switch::default());
    within(quantile(&log, 0.5) / apart, 1.0, 1.1);
    let job = tenant(&log, "bursts").jobs[10];
    assert!(job.waited > us(1_500), "{}", job.waited);
}

#[test]
fn who_was_stopped_comes_back_a_relaunch_later() {
    let mut world = bursts(Sharing::Shared, us(20));
    let costly = play(&world, ebb(Kind::Strict));
    world.card.costs.resume = Nanos::ZERO;
    world.card.costs.turned_away = Nanos::ZERO;
    let free = play(&world, ebb(Kind::Strict));
    let lost = (tenant(&free, "grids").busy - tenant(&costly, "grids").busy).as_micros_f64();
    // 12 µs, and those of 132,000 blocks that ran already: half of them, as bursts come at any moment.
    let stops = tenant(&costly, "grids").stops.len() as f64;
    within(lost / stops, 40.0, 60.0);
}

#[test]
fn the_hardware_goes_round_all_contexts() {
    let names = ["a", "b", "c"];
    let tenants = names.map(|name| endless(name, waves(5, us(1_000))));
    let world = world(Sharing::TimeSlicing, ms(2_000), tenants.to_vec());
    let log = play(&world, Switch::default());
    for name in names {
        within(rate(&world, &log, name), 0.28, 0.32);
    }
}
