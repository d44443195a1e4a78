//! Timeslices by class and priority.

use model::{Class, Nanos};
use policy::slice::{BESIDE_STRAYS, BEST_EFFORT, DEFAULT, SHORTEST, WITHOUT_BOARD, timeslice};
use proptest::prelude::*;

#[test]
fn best_effort_has_the_shortest_slice_whatever_its_priority() {
    for priority in 0..=9 {
        assert_eq!(timeslice(Class::BestEffort, priority, 0), Some(Nanos::from_micros(1)));
        assert_eq!(timeslice(Class::BestEffort, priority, 9), Some(BEST_EFFORT));
    }
}

#[test]
fn each_level_below_the_highest_has_a_quarter_of_the_slice() {
    let slices: Vec<_> = (0..=6).rev().map(|priority| timeslice(Class::Latency, priority, 6)).collect();
    let micros = |micros| Some(Nanos::from_micros(micros));
    assert_eq!(slices, [None, micros(512), micros(128), micros(32), micros(32), micros(32), micros(32)]);
}

#[test]
fn where_turns_cannot_be_taken_the_slice_lies_between() {
    for slice in [WITHOUT_BOARD, BESIDE_STRAYS] {
        assert!(BEST_EFFORT < slice && slice < DEFAULT);
    }
}

proptest! {
    #[test]
    fn a_higher_priority_never_has_a_shorter_slice(low: u32, high: u32, highest: u32) {
        let (low, high) = (low.min(high), low.max(high));
        let slice = |priority| timeslice(Class::Latency, priority, highest).unwrap_or(DEFAULT);
        prop_assert!(slice(low) <= slice(high));
        prop_assert!(slice(low) >= SHORTEST && slice(high) <= DEFAULT);
    }

    #[test]
    fn the_highest_present_keeps_the_drivers_slice(priority in 0u32..=9, below in 0u32..=9) {
        prop_assert_eq!(timeslice(Class::Latency, priority, priority), None);
        prop_assert_eq!(timeslice(Class::Latency, priority, priority.saturating_sub(below)), None);
    }
}
