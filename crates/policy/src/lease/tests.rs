//! The lease over a GPU that is made of rates.

use super::*;

const LOOK: Nanos = Nanos::from_millis(20);

/// A GPU made of rates: what a tenant hands over in a look with a slice.
struct World {
    now: Nanos,
    lease: SliceLease,
}

impl World {
    fn new() -> World {
        World { now: Nanos::from_millis(1), lease: SliceLease::default() }
    }

    fn look(&mut self, company: GpuCompany, given: impl Fn(Nanos) -> u64) {
        let slice = self.lease.slice(self.now);
        self.now += LOOK;
        let progress = Progress { ran: LOOK, given: given(slice), done: false };
        self.lease.look(&progress, company, self.now);
    }

    fn run(&mut self, looks: usize, given: impl Fn(Nanos) -> u64) {
        (0..looks).for_each(|_| self.look(GpuCompany::Unknown, &given));
    }
}

/// Beside a tenant that has lengthened its slice.
fn beside_long(slice: Nanos) -> u64 {
    if slice == slice::BEST_EFFORT { 4 } else { 35 }
}

#[test]
fn alone_the_short_slice_is_kept() {
    let mut world = World::new();
    world.run(10_000, |_| 80);
    assert!(!world.lease.is_lengthened());
    assert_eq!(world.lease.lengthened(), 0);
}

#[test]
fn who_has_the_lock_and_knows_everybody_never_tries_the_long_slice() {
    let mut world = World::new();
    for _ in 0..10_000 {
        world.look(GpuCompany::Nobody, |_| 80);
        assert_eq!(world.lease.slice(world.now), slice::BEST_EFFORT);
    }
    let mut world = World::new();
    (0..60).for_each(|_| world.look(GpuCompany::Nobody, |_| 0));
    assert!(world.lease.is_lengthened(), "a standstill is a standstill");
    (0..100).for_each(|_| world.look(GpuCompany::Nobody, |_| 5));
    assert_eq!(world.lease.slice(world.now), slice::BEST_EFFORT, "and over when it is over");
}

#[test]
fn a_standstill_lengthens_the_slice_within_a_quarter_of_a_second_of_running() {
    let mut world = World::new();
    world.run(12, |slice| if slice == slice::BEST_EFFORT { 0 } else { 30 });
    assert!(world.lease.is_lengthened());
    assert_eq!(world.lease.slice(world.now), STEPS[0]);
}

#[test]
fn a_standstill_that_goes_on_takes_the_next_step() {
    let mut world = World::new();
    world.run(70, |_| 0);
    assert_eq!(world.lease.slice(world.now), STEPS[1]);
}

#[test]
fn a_tenant_that_is_only_slow_beside_a_long_slice_finds_out() {
    let mut world = World::new();
    world.run(100, beside_long);
    assert!(world.lease.is_lengthened());
}

#[test]
fn the_short_slice_is_tried_again_with_growing_pauses() {
    let mut world = World::new();
    let mut trials = 0;
    for _ in 0..15_000 {
        world.run(1, beside_long);
        trials += u32::from(world.lease.is_lengthened() && world.lease.trial.is_some());
    }
    assert!(world.lease.is_lengthened());
    // Each takes ten looks; in 300 s there is room for a trial a second, and there are few.
    assert!((10..=150).contains(&trials), "{trials} looks with a trial");
}

#[test]
fn alone_again_the_short_slice_comes_back() {
    let mut world = World::new();
    world.run(100, |slice| if slice == slice::BEST_EFFORT { 0 } else { 30 });
    assert!(world.lease.is_lengthened());
    world.run(3_500, |_| 80);
    assert!(!world.lease.is_lengthened());
}

/// A training that stands still for a while in every step: it waits for its loss, or its kernels are long.
#[test]
fn who_stands_still_by_itself_keeps_the_short_slice() {
    for company in [GpuCompany::Unknown, GpuCompany::Nobody] {
        for looks in [5, 7, 15, 25, 50, 90] {
            let (mut world, mut short, mut all) = (World::new(), 0, 0);
            for step in 0..10_000 / looks {
                (0..looks - 1).for_each(|_| world.look(company, |_| 0));
                world.look(company, |_| 40);
                let settled = step * looks > 1_000;
                all += i32::from(settled);
                short += i32::from(settled && world.lease.slice(world.now) == slice::BEST_EFFORT);
            }
            // A trial of the long slice takes three standstills, with growing pauses.
            assert!(short * 10 >= all * 8, "{company:?}, {looks} looks: short in {short} of {all} steps");
            assert!(!world.lease.is_lengthened(), "{company:?}, {looks} looks");
        }
    }
}

#[test]
fn work_that_comes_and_goes_gets_the_short_slice_back() {
    let mut world = World::new();
    world.run(12, |slice| if slice == slice::BEST_EFFORT { 0 } else { 30 });
    assert!(world.lease.is_lengthened());
    let mut changes = 0;
    for look in 0..1_000 {
        let before = world.lease.slice(world.now);
        world.now += LOOK;
        let progress = Progress { ran: LOOK, given: 5, done: look % 2 == 0 };
        world.lease.look(&progress, GpuCompany::Unknown, world.now);
        changes += u32::from(world.lease.slice(world.now) != before);
    }
    assert!(!world.lease.is_lengthened());
    assert!(changes <= 40, "{changes} changes in 20 s");
}

/// Two that meet again and again: each relapse is paid for with a longer pause.
#[test]
fn who_comes_back_too_early_waits_longer_the_next_time() {
    let mut world = World::new();
    for _ in 0..300 {
        // Stuck whenever the slice is short, and all done whenever it is not.
        let slice = world.lease.slice(world.now);
        world.now += LOOK;
        let long = slice != slice::BEST_EFFORT;
        let progress = Progress { ran: LOOK, given: u64::from(long), done: long };
        world.lease.look(&progress, GpuCompany::Unknown, world.now);
    }
    assert!(world.lease.lengthened() <= 4, "{} times in 6 s", world.lease.lengthened());
}

#[test]
fn who_has_room_beside_others_does_not_rest() {
    let mut world = World::new();
    let company = GpuCompany::Yield { fill: false, starve_after: Some(Nanos::from_millis(500)) };
    for _ in 0..1_000 {
        world.look(company, |_| 0);
        assert!(!world.lease.rests(world.now) && world.lease.starving_since().is_none());
    }
}

#[test]
fn beside_a_program_without_ebb_the_short_slice_is_kept() {
    let mut world = World::new();
    (0..2_000).for_each(|_| world.look(GpuCompany::Yield { fill: true, starve_after: None }, |_| 0));
    assert_eq!(world.lease.slice(world.now), slice::BEST_EFFORT);
    assert_eq!(world.lease.lengthened(), 0);
}

#[test]
fn who_gets_nothing_done_beside_others_rests_most_of_the_time() {
    let mut world = World::new();
    let company = GpuCompany::Yield { fill: true, starve_after: None };
    let mut rested = 0;
    for _ in 0..1_000 {
        world.look(company, |_| 0);
        rested += u32::from(world.lease.rests(world.now));
    }
    assert!((850..=950).contains(&rested), "{rested} of 1,000 looks");
    world.look(company, |_| 5);
    assert!(!world.lease.rests(world.now), "something got done");
    (0..100).for_each(|_| world.look(company, |_| 0));
    world.look(GpuCompany::Nobody, |_| 0);
    assert!(!world.lease.rests(world.now), "they are gone");
}

#[test]
fn a_starving_tenant_takes_a_tenth_of_the_time() {
    let mut world = World::new();
    let company = GpuCompany::Yield { fill: true, starve_after: Some(Nanos::from_millis(1_000)) };
    let mut ordinary = 0;
    for _ in 0..5_050 {
        world.look(company, |_| 0);
        ordinary += u32::from(world.lease.slice(world.now) == slice::DEFAULT);
    }
    assert!((450..=550).contains(&ordinary), "{ordinary} of 5,000 looks");
}
