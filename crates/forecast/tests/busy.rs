//! When what was launched is done.

mod chance;

use chance::Chance;
use forecast::{Busy, Kernel};
use model::Nanos;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Chains of kernels of several kinds: nine of ten are done by then, and not long before.
    #[test]
    fn nine_of_ten_chains_are_done_in_time(seed: u64, length in 1u64..60) {
        let mut busy = Box::new(Busy::<64>::new());
        let mut chance = Chance(seed);
        let usual = |kernel: u64| Nanos::from_micros(3 + kernel * 5);
        for _ in 0..100 {
            (0..8).for_each(|kernel| busy.took(Kernel(kernel), chance.jittered(usual(kernel), 0.2)));
        }
        let (mut in_time, mut now, chains) = (0, Nanos::ZERO, 2_000);
        let (mut said, mut took_in_all) = (Nanos::ZERO, Nanos::ZERO);
        for _ in 0..chains {
            now += Nanos::from_millis(100);
            let mut done = now;
            for place in 0..length {
                let kernel = place % 8;
                busy.launched(now, Kernel(kernel));
                let took = chance.jittered(usual(kernel), 0.2);
                done += took;
                busy.took(Kernel(kernel), took);
            }
            in_time += u32::from(done <= busy.until());
            (said, took_in_all) = (said + busy.until().since(now), took_in_all + done.since(now));
        }
        let share = f64::from(in_time) / f64::from(chains);
        prop_assert!((0.85..0.95).contains(&share), "{share}");
        prop_assert!(said < took_in_all.scaled(14, 10), "{said} for {took_in_all}");
    }

    #[test]
    fn no_durations_break_it(calls in prop::collection::vec((0u8..3, any::<u64>(), 0u64..50), 1..500)) {
        let mut busy = Busy::<8>::new();
        for (call, number, kernel) in calls {
            match call {
                0 => busy.took(Kernel(kernel), Nanos(number)),
                1 => busy.launched(Nanos(number), Kernel(kernel)),
                _ => busy.at_rest(Nanos(number)),
            }
            prop_assert!(busy.duration(Kernel(kernel)).is_none_or(|(usual, long)| usual <= long));
        }
    }
}

#[test]
fn a_kernel_begins_when_those_before_it_have_ended() {
    let mut busy = Busy::<64>::new();
    (0..10).for_each(|_| busy.took(Kernel(1), Nanos(1_000)));
    busy.launched(Nanos(5_000), Kernel(1));
    busy.launched(Nanos(5_100), Kernel(1));
    assert_eq!(busy.until(), Nanos(7_000));
    busy.launched(Nanos(9_000), Kernel(1));
    assert_eq!(busy.until(), Nanos(10_000), "it had nothing to do for a while");
}

#[test]
fn a_kernel_nobody_has_timed_is_like_the_others() {
    let mut busy = Busy::<64>::new();
    assert_eq!(busy.duration(Kernel(2)), None);
    (0..10).for_each(|_| busy.took(Kernel(1), Nanos(1_000)));
    assert_eq!(busy.duration(Kernel(2)), Some((Nanos(1_000), Nanos(1_000))));
}

#[test]
fn a_tenant_of_which_nothing_is_known_is_busy_until_it_is_seen_at_rest() {
    let mut busy = Busy::<64>::new();
    assert_eq!(busy.until(), Nanos::ZERO);
    busy.launched(Nanos(5), Kernel(1));
    assert_eq!(busy.until(), Nanos::MAX);
    busy.took(Kernel(1), Nanos(1_000));
    assert_eq!(busy.until(), Nanos::MAX, "that may have been another");
    busy.at_rest(Nanos(2_000));
    assert_eq!(busy.until(), Nanos(5));
}
