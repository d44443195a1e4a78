//! Which requests are kept alone, and what is concluded from them.

mod chance;

use chance::Chance;
use forecast::{Slowdown, Solo};
use model::Nanos;
use proptest::prelude::*;

proptest! {
    #[test]
    fn no_more_are_kept_alone_than_the_share_allows(share in 0u32..=1_000, requests in 1u32..5_000) {
        let mut solo = Solo::new();
        let alone = (0..requests).filter(|_| solo.wants_the_next_alone(share)).count() as u32;
        // One for each stretch that has begun; stretches are whole, so it may be somewhat fewer.
        prop_assert!(alone <= requests * share / 1_000 + 1);
        prop_assert!(share == 0 || alone >= requests / 1_000u32.div_ceil(share));
        prop_assert!(share > 0 || alone == 0);
    }

    #[test]
    fn requests_that_are_alone_anyway_leave_the_budget_untouched(every in 1u32..100) {
        let mut solo = Solo::new();
        let mut made = 0;
        for request in 0..10_000 {
            let wanted = solo.wants_the_next_alone(10);
            made += u32::from(wanted);
            solo.observe(Nanos::from_millis(1), wanted || request % every == 0);
        }
        prop_assert!(made <= 1, "{made}");
    }

    #[test]
    fn the_same_requests_are_chosen_in_every_run(shares in prop::collection::vec(0u32..=1_000, 1..500)) {
        let chosen = || {
            let mut solo = Solo::new();
            shares.iter().map(|&share| solo.wants_the_next_alone(share)).collect::<Vec<_>>()
        };
        prop_assert_eq!(chosen(), chosen());
    }

    #[test]
    fn no_spans_break_it(spans in prop::collection::vec((any::<u64>(), any::<bool>()), 1..500)) {
        let mut solo = Solo::new();
        spans.iter().for_each(|&(span, alone)| solo.observe(Nanos(span), alone));
        let alone = spans.iter().filter(|(_, alone)| *alone).count();
        prop_assert_eq!(solo.slowdown().is_some(), alone >= 20);
    }
}

#[test]
fn which_request_is_alone_has_no_rhythm() {
    let mut solo = Solo::new();
    let mut met = [0; 10];
    for request in 0..100_000 {
        if solo.wants_the_next_alone(10) {
            met[request % 10] += 1;
        }
    }
    assert!(
        met.iter().all(|&met| (60..150).contains(&met)),
        "every kind of request is met about as often: {met:?}"
    );
}

#[test]
fn slowdown_is_what_company_costs() {
    let mut solo = Solo::new();
    let mut chance = Chance(3);
    for _ in 0..40_000 {
        let alone = solo.wants_the_next_alone(20);
        let took = chance.jittered(Nanos::from_micros(800), 0.05);
        let disturbed = !alone && chance.below(10) == 0;
        solo.observe(if disturbed { took + Nanos::from_micros(400) } else { took }, alone);
    }
    let Slowdown { p50, p99, alone, all } = solo.slowdown().unwrap();
    assert_eq!(alone, 800);
    assert!(all >= 1_000);
    assert!((995..=1_030).contains(&p50), "{p50}");
    assert!((1_350..=1_500).contains(&p99.unwrap()), "{p99:?}");
}

#[test]
fn few_requests_say_nothing_and_some_more_nothing_about_tails() {
    let mut solo = Solo::new();
    (0..1_000).for_each(|_| solo.observe(Nanos(100), false));
    (0..19).for_each(|_| solo.observe(Nanos(100), true));
    assert_eq!(solo.slowdown(), None);
    solo.observe(Nanos(100), true);
    assert_eq!(solo.slowdown(), Some(Slowdown { p50: 1_000, p99: None, alone: 20, all: 1_020 }));
    (0..180).for_each(|_| solo.observe(Nanos(100), true));
    assert_eq!(solo.slowdown().unwrap().p99, Some(1_000));
}

#[test]
fn a_model_that_was_replaced_is_learned_anew() {
    let mut solo = Solo::new();
    (0..20_000).for_each(|_| solo.observe(Nanos::from_millis(1), true));
    (0..15_000).for_each(|_| solo.observe(Nanos::from_millis(3), true));
    assert_eq!(solo.slowdown().unwrap().p50, 1_000);
}

#[test]
fn a_request_that_takes_no_time_has_no_slowdown() {
    let mut solo = Solo::new();
    (0..100).for_each(|_| solo.observe(Nanos::ZERO, true));
    assert_eq!(solo.slowdown(), None);
}
