//! What is promised, and what becomes of who does not keep it.

mod chance;

use chance::Chance;
use forecast::{Certificate, Kept};
use model::Nanos;
use proptest::prelude::*;

const ASSUMED: Nanos = Nanos::from_micros(400);

/// A certificate that has seen so many stops of 40 µs.
fn settled(stops: u32) -> Certificate {
    let mut certificate = Certificate::assuming(ASSUMED);
    for _ in 0..stops {
        assert_eq!(certificate.observe(Nanos::from_micros(40)), Kept::Kept);
    }
    certificate
}

proptest! {
    #[test]
    fn whoever_keeps_within_a_quarter_of_the_longest_is_never_demoted(seed: u64, longest in 10u64..1_000) {
        let mut certificate = Certificate::assuming(Nanos::from_micros(longest));
        let mut chance = Chance(seed);
        for _ in 0..5_000 {
            let took = chance.between(Nanos::from_micros(longest * 4 / 5 + 1), Nanos::from_micros(longest));
            prop_assert_eq!(certificate.observe(took), Kept::Kept);
        }
        prop_assert!(certificate.promised() <= Nanos::from_micros(longest + longest / 4 + 3));
        prop_assert_eq!(certificate.broken(), 0);
    }

    #[test]
    fn what_was_just_seen_is_promised(stops in prop::collection::vec(any::<u64>(), 1..1_000)) {
        let mut certificate = Certificate::assuming(ASSUMED);
        let mut broken = 0;
        for &stop in &stops {
            let promised = certificate.promised();
            let kept = certificate.observe(Nanos(stop));
            prop_assert_eq!(kept == Kept::Kept, Nanos(stop) <= promised);
            prop_assert!(certificate.promised() >= Nanos(stop));
            prop_assert_eq!(kept == Kept::Demoted, kept != Kept::Kept && certificate.is_demoted());
            broken += u32::from(kept != Kept::Kept);
        }
        prop_assert_eq!(certificate.broken(), broken);
    }
}

#[test]
fn until_enough_is_known_the_assumption_is_promised() {
    assert_eq!(settled(15).promised(), ASSUMED);
    assert!(!settled(15).is_settled());
    assert_eq!(settled(16).promised(), Nanos::from_micros(50));
    assert!(settled(16).is_settled());
}

#[test]
fn who_is_unknown_gets_no_strikes() {
    let mut certificate = Certificate::assuming(ASSUMED);
    let mut longer = ASSUMED;
    for _ in 0..10 {
        longer = longer + longer;
        assert_eq!(certificate.observe(longer), Kept::Broken);
    }
    assert_eq!(certificate.broken(), 10);
    assert!(!certificate.is_demoted());
}

#[test]
fn three_broken_promises_are_too_many() {
    let mut certificate = settled(100);
    let outcomes = [100, 200, 400, 800].map(|micros| certificate.observe(Nanos::from_micros(micros)));
    assert_eq!(outcomes, [Kept::Broken, Kept::Broken, Kept::Demoted, Kept::Demoted]);
    (0..100_000).for_each(|_| _ = certificate.observe(Nanos::from_micros(40)));
    assert!(certificate.is_demoted(), "who was demoted remains so");
}

#[test]
fn a_slip_is_forgiven_after_long_good_conduct() {
    let mut certificate = settled(100);
    for _ in 0..10 {
        assert_eq!(certificate.observe(Nanos::from_micros(100)), Kept::Broken);
        (0..5_000).for_each(|_| _ = certificate.observe(Nanos::from_micros(40)));
    }
    assert_eq!((certificate.broken(), certificate.is_demoted()), (10, false));
}

#[test]
fn a_single_long_stop_is_believed_for_a_while_and_not_for_ever() {
    let mut certificate = settled(300);
    certificate.observe(Nanos::from_micros(1_000));
    (0..250).for_each(|_| _ = certificate.observe(Nanos::from_micros(40)));
    assert_eq!(certificate.promised(), Nanos::from_micros(1_250));
    (0..300).for_each(|_| _ = certificate.observe(Nanos::from_micros(40)));
    assert_eq!(certificate.promised(), Nanos::from_micros(50));
}

#[test]
fn a_certificate_is_small_enough_for_one_per_kernel() {
    assert!(size_of::<Certificate>() <= 40);
}
