//! The last few spans: how often what they say is exceeded.

mod chance;

use chance::Chance;
use forecast::Recent;
use model::Nanos;
use proptest::prelude::*;

/// How often of a thousand a span is not below what was said, over many.
fn share_not_below<const N: usize>(tenths: u32, count: u32, mut next: impl FnMut() -> Nanos) -> f64 {
    let mut recent = Recent::<N>::new();
    (0..Recent::<N>::ENOUGH).for_each(|_| recent.observe(next()));
    let mut kept = 0;
    for _ in 0..count {
        let (said, span) = (recent.tenth(tenths), next());
        kept += u32::from(span >= said);
        recent.observe(span);
    }
    f64::from(kept) / f64::from(count)
}

#[test]
fn one_in_ten_is_shorter_than_the_first_tenth_whatever_the_distribution() {
    let mut chance = Chance(7);
    let mean = Nanos::from_micros(50);
    let mut tails = chance.clone();
    let shares = [
        share_not_below::<29>(1, 40_000, || chance.exponential(mean)),
        share_not_below::<29>(1, 40_000, || tails.jittered(mean, 2.0)),
        share_not_below::<99>(1, 40_000, || chance.between(mean, Nanos::from_millis(1))),
        share_not_below::<39>(1, 40_000, || {
            if chance.below(3) == 0 { chance.exponential(mean) } else { mean + mean }
        }),
    ];
    assert!(shares.iter().all(|share| (share - 0.9).abs() < 0.01), "{shares:?}");
}

#[test]
fn half_are_shorter_than_the_middle() {
    let mut chance = Chance(8);
    let share = share_not_below::<29>(5, 40_000, || chance.exponential(Nanos::from_millis(2)));
    assert!((share - 0.5).abs() < 0.01, "{share}");
}

#[test]
fn shorter_spans_are_noticed_at_once_and_longer_ones_in_time() {
    let mut recent = Recent::<29>::new();
    (0..100).for_each(|_| recent.observe(Nanos::from_micros(100)));
    (0..5).for_each(|_| recent.observe(Nanos::from_micros(10)));
    assert!(recent.tenth(1) < Nanos::from_micros(11));
    (0..120).for_each(|_| recent.observe(Nanos::from_micros(200)));
    assert!(recent.tenth(1) > Nanos::from_micros(199));
}

#[test]
fn when_more_has_passed_than_was_ever_seen_it_may_be_any_moment() {
    let mut recent = Recent::<29>::new();
    assert_eq!(recent.tenth_after(5, Nanos(9)), Nanos(9));
    (1..=20).for_each(|span| recent.observe(Nanos(span)));
    assert_eq!(recent.tenth_after(1, Nanos(20)), Nanos(20));
    assert_eq!(recent.tenth_after(1, Nanos::MAX), Nanos::MAX);
}

#[test]
fn patience_lasts_for_short_spans_and_not_for_long_ones() {
    let us = Nanos::from_micros;
    let patience = |spans: &[u64]| {
        let mut recent = Recent::<99>::new();
        spans.iter().for_each(|&span| recent.observe(us(span)));
        recent.patience(us(300), us(500)).0.div_ceil(1_000)
    };
    assert_eq!(patience(&[5_000, 7_000, 9_000, 4_000]), 0, "nothing comes soon");
    assert_eq!(patience(&[140, 150, 5_000, 130, 145, 7_000, 138, 142, 9_000]), 150);
    assert_eq!(patience(&[150, 5_000, 7_000, 9_000, 6_000]), 0, "one of five is not worth it");
    assert_eq!(patience(&[10, 20, 30, 600, 600, 600]), 30, "those are longer than anybody waits");
}

proptest! {
    #[test]
    fn no_other_patience_would_have_cost_less(
        spans in prop::collection::vec(1u64..2_000, 1..=99), price in 1u64..500, other in 0u64..1_000,
    ) {
        let mut recent = Recent::<99>::new();
        spans.iter().for_each(|&span| recent.observe(Nanos(span)));
        let cost = |wait: u64| spans.iter().map(|&span| if span <= wait { span } else { wait + price }).sum::<u64>();
        let patience = recent.patience(Nanos(price), Nanos(1_000)).0;
        prop_assert!(patience <= 1_000);
        // Each span is known within a thousandth.
        prop_assert!(cost(patience) * 998 <= cost(other) * 1_000 + 2_000 * 998, "{patience} {other}");
    }

    /// As long as there is room nothing is lost, so what is said is exact but for the step of the scale.
    #[test]
    fn what_fits_is_known_exactly(spans in prop::collection::vec(any::<u64>(), 9..=99), passed: u64, tenths in 1u32..=9) {
        let mut recent = Recent::<99>::new();
        spans.iter().for_each(|&span| recent.observe(Nanos(span)));
        prop_assert_eq!(recent.len(), spans.len());
        let mut longer: Vec<_> = spans.into_iter().filter(|&span| span > passed).collect();
        longer.sort_unstable();
        let said = recent.tenth_after(tenths, Nanos(passed)).0;
        prop_assert!(said >= passed);
        // Those that are hardly longer lie on the same step, and may count as passed.
        let hardly = longer.iter().filter(|&&span| span - passed <= passed >> 10).count();
        let place = |count: usize| (count + 1) * tenths as usize / 10;
        let most = longer.get(place(longer.len())).or(longer.last()).copied().unwrap_or(passed);
        let least = match place(longer.len() - hardly) {
            0 => passed,
            place => longer.get(place - 1).or(longer.last()).map_or(passed, |&span| span - (span >> 10)).max(passed),
        };
        prop_assert!(hardly > 0 || (least..=most).contains(&said), "{least} {said} {most}");
    }

    #[test]
    fn answers_lie_among_the_spans_and_in_order(spans in prop::collection::vec(1u64..1 << 40, 1..300), passed in 0u64..1 << 40) {
        let mut recent = Recent::<29>::new();
        spans.iter().for_each(|&span| recent.observe(Nanos(span)));
        let longest = Nanos(spans.iter().copied().max().unwrap_or(0));
        let answers: Vec<_> = (0..=10).map(|tenths| recent.tenth_after(tenths, Nanos(passed))).collect();
        prop_assert!(answers.is_sorted());
        prop_assert!(answers.iter().all(|&answer| answer >= Nanos(passed) && answer <= longest.max(Nanos(passed))));
        prop_assert!(recent.count_after(Nanos(passed)) <= recent.len());
    }
}
