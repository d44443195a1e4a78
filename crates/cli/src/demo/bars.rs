//! What ebb promises, and whether this run kept it.
//!
//! A bar holds a row against rows of the same run, so that it means the same on a fast machine and on a slow one. On a machine
//! that is busy with other things all rows suffer, and not equally: a bar that was missed is said, and is no error.

use std::fmt::{self, Display, Formatter};

use lab::Scene;

use super::table::{Table, permille};
use crate::json::Json;

/// The rows that are judged, and one against which that is done.
pub const TOGETHER: &str = "together, ebb";
pub const LAUNCH_BOUND: &str = "launch-bound alone";
pub const IN_GAPS: &str = "in its gaps, ebb";

/// Best-effort work gets at least this share of what it could have.
const OF_IDEAL: f64 = 0.9;
/// So many more requests may be late than alone.
const LATE: f64 = 0.01;
/// Of the time for which a launch-bound request leaves the GPU idle, at least this share is used, and its p99 is no more than so many times
/// that alone.
const FILLED: f64 = 0.5;
const STRETCHED: f64 = 1.05;

/// A figure and what it has to be.
pub struct Bar {
    what: &'static str,
    key: &'static str,
    value: f64,
    bar: f64,
    /// Whether less is better.
    at_most: bool,
}

/// All that this run has figures for.
pub fn judged(table: &Table) -> Vec<Bar> {
    let together = table.row(TOGETHER);
    let in_gaps = table.row(IN_GAPS);
    let late = together.and_then(|row| {
        let in_time = |report| table.attainment(Scene::Bursts, report);
        Some(in_time(table.latency_alone(Scene::Bursts)?)? - in_time(row.outcome.latency.as_ref()?)?)
    });
    let ideal = together.and_then(|row| table.share_of_ideal(row));
    let filled = in_gaps.and_then(|row| table.share_of_ideal(row));
    let stretched = in_gaps.and_then(|row| median(table.slowdowns_by_round(row)));
    [
        ("late that would not be alone", "late_beyond_alone", late, LATE, true),
        ("best-effort, of ideal", "of_ideal", ideal, OF_IDEAL, false),
        ("gaps of launch-bound requests filled", "gaps_filled", filled, FILLED, false),
        ("launch-bound p99, of alone", "launch_bound_p99", stretched, STRETCHED, true),
    ]
    .into_iter()
    .filter_map(|(what, key, value, bar, at_most)| Some(Bar { what, key, value: value?, bar, at_most }))
    .collect()
}

/// Of an even number, the worse of the two in the middle.
fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

impl Bar {
    fn is_kept(&self) -> bool {
        if self.at_most { self.value <= self.bar } else { self.value >= self.bar }
    }

    pub fn json(&self) -> Json {
        Json::object([
            ("name", self.key.into()),
            ("value_permille", permille(self.value.max(0.0)).into()),
            ("bar_permille", permille(self.bar).into()),
            ("at_most", Json::Bool(self.at_most)),
            ("kept", Json::Bool(self.is_kept())),
        ])
    }
}

impl Display for Bar {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let side = if self.at_most { "at most" } else { "at least" };
        let verdict = if self.is_kept() { "kept" } else { "missed" };
        let [value, bar] = [self.value, self.bar].map(|share| share * 100.0);
        write!(out, "{:38} {value:6.1}%  {side:8} {bar:3.0}%  {verdict}", self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_figures_are_no_worse_than_the_median() {
        assert_eq!(median(vec![1.2, 1.0, 1.1]), Some(1.1));
        assert_eq!(median(vec![1.2, 1.0]), Some(1.2));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn a_bar_is_kept_on_its_side() {
        let bar = |value, at_most| Bar { what: "w", key: "k", value, bar: 0.5, at_most };
        assert!(bar(0.5, true).is_kept() && bar(0.4, true).is_kept() && !bar(0.6, true).is_kept());
        assert!(bar(0.5, false).is_kept() && !bar(0.4, false).is_kept() && bar(0.6, false).is_kept());
        assert!(bar(0.6, true).to_string().ends_with("missed"));
        assert!(bar(-0.1, true).json().to_string().contains("\"value_permille\":0"));
    }
}
