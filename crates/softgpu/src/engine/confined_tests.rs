//! Grids that are confined to some of the SMs.

use std::sync::Arc;

use model::Domain;

use super::tests::{Bench, four_sms};
use super::{Context, Task, Work};
use crate::card::{Defaults, SmSet};

/// Two milliseconds: long enough to be looked at, however slow the host is.
const WAVE: u64 = 2_000_000;

fn submit(bench: &Bench, context: &Context, sms: SmSet, blocks: u32, length: u64, priority: i32) -> Task {
    let mut launch = bench.launch("sleep", blocks, length);
    Arc::get_mut(&mut launch).expect("nobody else has it yet").sms = Some(sms);
    context.submit(Work::Launch(launch), &[], priority)
}

fn wait_until_resident(bench: &Bench, blocks: u32) {
    while bench.engine.card().resident_blocks().iter().sum::<u32>() < blocks {
        std::thread::yield_now();
    }
}

fn both_domains() -> [Bench; 2] {
    [Domain::Isolated, Domain::Shared].map(|domain| Bench::new(Defaults { domain, ..four_sms() }))
}

#[test]
fn blocks_stay_on_their_sms() {
    for bench in both_domains() {
        let task = submit(&bench, &bench.context, SmSet::of(1..3), 32 * 10, WAVE, 0);
        let mut looks = 0;
        while !task.is_done() {
            let resident = bench.engine.card().resident_blocks();
            assert_eq!((resident[0], resident[3]), (0, 0), "{resident:?}");
            looks += u32::from(resident[1] > 0 && resident[2] > 0);
            std::thread::yield_now();
        }
        assert!(looks > 0, "both SMs were used");
        assert_eq!(bench.count(), 32 * 10);
    }
}

#[test]
fn others_take_the_sms_that_a_confined_grid_leaves() {
    for bench in both_domains() {
        let confined = submit(&bench, &bench.context, SmSet::of(0..1), 32 * 20, WAVE, 0);
        wait_until_resident(&bench, 32);
        let free = bench.submit("sleep", 3 * 32, WAVE, &[], 0);
        bench.context.wait(&free).unwrap();
        assert!(bench.count() < 3 * 32 + 32 * 10, "{} blocks ended first", bench.count());
        let elsewhere = submit(&bench, &bench.context, SmSet::of(1..4), 32, 0, 0);
        bench.context.wait(&elsewhere).unwrap();
        assert!(!confined.is_done());
        bench.context.wait(&confined).unwrap();
        assert_eq!(bench.count(), 32 * 20 + 3 * 32 + 32);
    }
}

#[test]
fn an_urgent_confined_grid_overtakes_on_its_sms() {
    for bench in both_domains() {
        let slow = bench.submit("sleep", 4 * 32 * 20, WAVE, &[], 0);
        wait_until_resident(&bench, 4 * 32);
        let urgent = submit(&bench, &bench.context, SmSet::of(2..3), 32 * 2, WAVE, -5);
        bench.context.wait(&urgent).unwrap();
        assert!(bench.count() < 4 * 32 * 10, "{} blocks ended first", bench.count());
        bench.context.wait(&slow).unwrap();
        assert_eq!(bench.count(), 4 * 32 * 20 + 32 * 2);
    }
}

#[test]
fn a_confined_grid_that_waits_keeps_no_other_context_out() {
    let bench = Bench::new(Defaults { domain: Domain::Shared, ..four_sms() });
    let other = bench.engine.create_context().unwrap();
    let confined = submit(&bench, &bench.context, SmSet::of(0..1), 32 * 20, WAVE, -5);
    wait_until_resident(&bench, 32);
    let free = other.submit(Work::Launch(bench.launch("sleep", 3 * 32, WAVE)), &[], 0);
    other.wait(&free).unwrap();
    assert!(!confined.is_done());
    bench.context.wait(&confined).unwrap();
}

#[test]
fn a_confined_grid_gets_the_room_that_another_context_leaves() {
    let bench = Bench::new(Defaults { domain: Domain::Shared, ..four_sms() });
    let other = bench.engine.create_context().unwrap();
    let first = other.submit(Work::Launch(bench.launch("sleep", 4 * 32, 10 * WAVE)), &[], 0);
    wait_until_resident(&bench, 4 * 32);
    let confined = submit(&bench, &bench.context, SmSet::of(3..4), 32, 0, 0);
    bench.context.wait(&confined).unwrap();
    other.wait(&first).unwrap();
    assert_eq!(bench.count(), 5 * 32);
}
