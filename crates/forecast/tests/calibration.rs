//! Nine of ten, whatever is forecast and whatever comes.

mod chance;

use chance::Chance;
use forecast::{Calibration, Record};
use model::Nanos;
use proptest::prelude::*;

proptest! {
    /// Somebody forecasts badly, in either direction and differently as time goes on; nine of ten come later all the same, as
    /// long as they are not beyond what a factor can mend.
    #[test]
    fn a_bad_forecaster_is_corrected(seed: u64, bold in 0.9f64..4.0, worse in 0.9f64..2.0) {
        let mut chance = Chance(seed);
        let mut calibration = Calibration::new();
        let mut kept = 0;
        let (usual, count) = (Nanos::from_micros(300), 6_000);
        for turn in 0..count {
            let bold = if turn < count / 2 { bold } else { bold * worse };
            let raw = Nanos((usual.0 as f64 * bold) as u64);
            let said = calibration.correct(raw, raw);
            prop_assert!(said.early <= said.likely);
            let outcome = chance.jittered(usual, 0.2);
            kept += u32::from(outcome >= said.early);
            calibration.score(said, outcome);
        }
        let share = f64::from(kept) / f64::from(count);
        prop_assert!((share - 0.9).abs() < 0.02, "{share}");
        prop_assert!(calibration.error().unwrap() < 20);
    }

    #[test]
    fn no_numbers_break_it(spans in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 1..200)) {
        let mut calibration = Calibration::new();
        for &(early, likely, outcome) in &spans {
            let said = calibration.correct(Nanos(early), Nanos(likely));
            prop_assert!(said.early <= said.likely);
            prop_assert!(said.early.0 >> 1 <= early, "no more than a quarter is added");
            prop_assert!(said.from(Nanos(outcome)).early >= Nanos(outcome));
            calibration.score(said, Nanos(outcome));
        }
        prop_assert_eq!(calibration.record().scored, spans.len() as u32);
    }
}

#[test]
fn short_spans_do_not_make_up_for_long_ones() {
    let mut calibration = Calibration::new();
    let (short, long) = (Nanos::from_micros(5), Nanos::from_micros(500));
    for turn in 0..50_000 {
        let raw = if turn % 50 == 0 { long } else { short };
        let said = calibration.correct(raw, raw);
        // Short ones are right; long ones last half as long as they are said to.
        let outcome = if turn % 50 == 0 { long.scaled(1, 2) } else { short + short };
        calibration.score(said, outcome);
    }
    let said = calibration.correct(long, long);
    assert!(said.early <= long.scaled(53, 100), "{}", said.early);
    assert!(calibration.record_from(long).error().unwrap() <= 50, "it takes a while to come down to a half");
    assert!(calibration.correct(short, short).early > short);
}

#[test]
fn records_say_what_became_of_forecasts() {
    let mut calibration = Calibration::new();
    assert_eq!((calibration.error(), calibration.record()), (None, Record::default()));
    for outcome in [5, 15, 25, 35] {
        let said = calibration.correct(Nanos(10), Nanos(20));
        calibration.score(said, Nanos(outcome));
    }
    let record = calibration.record();
    assert_eq!(record, Record { scored: 4, not_before_early: 3, not_before_likely: 2 });
    assert_eq!(
        (record.early_share(), record.likely_share(), record.error()),
        (Some(750), Some(500), Some(150))
    );
    assert_eq!(record.and(record).early_share(), record.early_share());
}

#[test]
fn old_forecasts_are_forgotten() {
    let mut calibration = Calibration::new();
    let raw = Nanos::from_micros(100);
    (0..100_000).for_each(|_| calibration.score(calibration.correct(raw, raw), Nanos::MAX));
    assert_eq!(calibration.error(), Some(100), "all came later");
    let record = calibration.record();
    assert!(record.scored <= 8_192);
}
