//! Quantiles against exact ones, and words that may be anything.

mod chance;

use chance::Chance;
use forecast::{Error, Sketch};
use model::Nanos;
use proptest::prelude::*;

/// From a nanosecond to minutes, each power of two as likely as the others.
fn spans() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(
        (0u32..39, any::<u64>()).prop_map(|(power, low)| (1 << power) | (low % (1 << power))),
        1..500,
    )
}

fn sketch(spans: &[u64]) -> Sketch {
    let mut sketch = Sketch::remembering(u16::MAX);
    spans.iter().for_each(|&span| sketch.observe(Nanos(span)));
    sketch
}

/// The span that so many thousandths do not exceed.
fn exact(spans: &[u64], thousandths: u32) -> u64 {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * thousandths as usize).div_ceil(1_000).max(1);
    sorted[rank - 1]
}

fn is_close(found: Nanos, exact: u64) -> bool {
    found.0.abs_diff(exact) <= exact / 32
}

proptest! {
    #[test]
    fn a_quantile_is_known_within_a_thirty_second_part(spans in spans(), thousandths in 0u32..=1_000) {
        let (found, exact) = (sketch(&spans).quantile(thousandths).unwrap(), exact(&spans, thousandths));
        prop_assert!(is_close(found, exact), "{found} for {exact}");
    }

    #[test]
    fn merging_is_as_if_all_had_been_observed_here(left in spans(), right in spans(), thousandths in 0u32..=1_000) {
        let mut merged = sketch(&left);
        merged.merge(&sketch(&right));
        let together = [left, right].concat();
        prop_assert_eq!(&merged, &sketch(&together));
        prop_assert!(is_close(merged.quantile(thousandths).unwrap(), exact(&together, thousandths)));
    }

    #[test]
    fn merging_keeps_to_the_memory(left in spans(), right in spans(), memory in 2u16..600) {
        let mut merged = Sketch::remembering(memory);
        merged.merge(&sketch(&left));
        merged.merge(&sketch(&right));
        prop_assert!(merged.count() < u32::from(memory));
        prop_assert_eq!(merged.seen(), (left.len() + right.len()) as u64);
        prop_assert_eq!(Sketch::decode(&merged.encode()), Ok(merged));
    }

    #[test]
    fn what_was_encoded_is_decoded(spans in spans()) {
        let sketch = sketch(&spans);
        prop_assert_eq!(Sketch::decode(&sketch.encode()), Ok(sketch));
    }

    #[test]
    fn words_of_any_kind_are_a_sketch_or_an_error(
        spans in spans(),
        changes in prop::collection::vec((0..Sketch::WORDS, any::<u64>(), 0u32..64), 0..8),
    ) {
        let mut words = sketch(&spans).encode();
        for (place, word, narrowed) in changes {
            words[place] = word >> narrowed;
        }
        if let Ok(mut sketch) = Sketch::decode(&words) {
            prop_assert_eq!(sketch.encode(), words);
            prop_assert_eq!(sketch.quantile(500).is_some(), sketch.count() > 0);
            sketch.merge(&sketch.clone());
            (0..100).for_each(|span| sketch.observe(Nanos(span)));
            prop_assert!(sketch.quantile(1_000).is_some());
        }
    }

    #[test]
    fn any_words_can_be_looked_at(words in prop::collection::vec(any::<u64>(), 0..600)) {
        prop_assert!(Sketch::decode(&words).is_err());
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let sketch = Sketch::remembering(100);
    let mut words = sketch.encode();
    let short = Error::Length { expected: Sketch::WORDS, found: 3 };
    assert_eq!(Sketch::decode(&words[..3]), Err(short));
    words[5] = 1;
    assert_eq!(Sketch::decode(&words), Err(Error::Counts), "more are counted than were seen");
    words[1] = 1;
    assert_eq!(Sketch::decode(&words).unwrap().count(), 1);
    (words[1], words[5]) = (u64::MAX, 0xFFFF);
    assert_eq!(Sketch::decode(&words), Err(Error::Counts), "more are counted than are remembered");
    words[0] ^= 1;
    assert_eq!(Sketch::decode(&words), Err(Error::Kind));
}

#[test]
fn an_empty_sketch_says_nothing() {
    assert_eq!(Sketch::remembering(100).quantile(500), None);
}

#[test]
fn what_is_too_long_is_counted_at_the_end() {
    let sketch = sketch(&[5, u64::MAX]);
    assert_eq!(sketch.quantile(500), Some(Nanos(5)));
    assert!(sketch.quantile(1_000).unwrap() > Nanos(1 << 39));
}

#[test]
fn a_sketch_follows_change_within_its_memory() {
    let mut sketch = Sketch::remembering(1_000);
    (0..10_000).for_each(|_| sketch.observe(Nanos::from_micros(100)));
    (0..1_500).for_each(|_| sketch.observe(Nanos::from_micros(300)));
    assert!(is_close(sketch.quantile(500).unwrap(), 300_000));
}

#[test]
fn halving_keeps_rare_long_spans() {
    let mut sketch = Sketch::remembering(1_000);
    let mut chance = Chance(1);
    for _ in 0..100_000 {
        let rare = chance.below(50) == 0;
        sketch.observe(if rare {
            Nanos::from_millis(10)
        } else {
            chance.jittered(Nanos::from_micros(100), 0.3)
        });
    }
    assert!(is_close(sketch.quantile(995).unwrap(), 10_000_000), "one of fifty is long");
    assert!(sketch.quantile(950).unwrap() < Nanos::from_millis(1));
}

#[test]
fn a_sketch_takes_two_kilobytes_and_a_third() {
    assert_eq!(size_of::<Sketch>(), 2_320);
    assert_eq!(Sketch::WORDS * 8, 2_320);
}
