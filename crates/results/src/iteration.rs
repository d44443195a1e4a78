//! Best-effort work as it counts.
//!
//! An iteration counts if its digest is that of the iteration of the same number in a run alone. A wrong one is no
//! throughput, and neither is one that nobody can check: otherwise a way of sharing that skips work would look fast.
//!
//! Iterations are long beside a window, so they count by parts: one that began before the window or ends after it counts
//! with the part of its time that lies inside. Iterations queue behind each other, so an iteration's time runs from the end
//! of the one before it. Work counted so is additive: two halves of a window have as much as the whole.
//!
//! How long a latency tenant keeps the GPU busy is counted in the same way. Its requests are served one at a time and in
//! order, so the time of each is its service; one without a start or without an end was not served.

use std::collections::BTreeMap;

use model::Class;

use crate::Archive;
use crate::record::{ALONE, TenantRun};

/// The digests that runs alone gave, by workload and number.
#[derive(Clone, Debug, Default)]
pub struct Checks(BTreeMap<String, Vec<Option<String>>>);

impl Checks {
    /// A number about which the runs alone disagree is one that nobody can check.
    pub fn of(archive: &Archive) -> Checks {
        let mut checks = Checks::default();
        let alone = archive.runs.iter().filter(|run| run.mode == ALONE);
        for tenant in alone.flat_map(|run| &run.tenants).filter(|tenant| tenant.class == Class::BestEffort) {
            let known = checks.0.entry(tenant.workload.clone()).or_default();
            for (index, check) in tenant.checks.iter().enumerate() {
                match known.get_mut(index) {
                    None => known.push(Some(check.clone())),
                    Some(before) if before.as_ref() != Some(check) => *before = None,
                    Some(_) => {}
                }
            }
        }
        checks
    }

    fn verdict(&self, tenant: &TenantRun, number: usize) -> Verdict {
        let expected =
            self.0.get(&tenant.workload).and_then(|known| known.get(number)).and_then(Option::as_ref);
        match (expected, tenant.checks.get(number)) {
            _ if tenant.wrong.contains(&number) => Verdict::Wrong,
            (Some(expected), Some(check)) if expected == check => Verdict::Right,
            (Some(_), Some(_)) => Verdict::Wrong,
            _ => Verdict::Unchecked,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Right,
    Wrong,
    Unchecked,
}

/// One finished iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Iteration {
    /// When it was handed over, or the one before it ended, whichever was later.
    pub from_us: u64,
    pub to_us: u64,
    pub verdict: Verdict,
}

impl Iteration {
    /// Which part of it lies in a window.
    pub fn part(&self, from_us: u64, to_us: u64) -> f64 {
        let inside = self.to_us.min(to_us).saturating_sub(self.from_us.max(from_us));
        match self.to_us - self.from_us {
            // Shorter than the clock can tell: it counts where it ended.
            0 => f64::from(u8::from((from_us..to_us).contains(&self.to_us))),
            length => inside as f64 / length as f64,
        }
    }
}

/// The iterations, or the requests, that a tenant finished, in order.
pub fn finished(tenant: &TenantRun, checks: &Checks) -> Vec<Iteration> {
    let mut before = 0;
    let pairs = tenant.start_us.iter().zip(&tenant.end_us).enumerate();
    pairs
        .map(|(number, (start, end))| {
            let from_us = before.max(*start);
            before = before.max(*end);
            // Clocks of two threads may cross.
            let to_us = from_us.max(*end);
            Iteration { from_us, to_us, verdict: checks.verdict(tenant, number) }
        })
        .collect()
}

/// What was done in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Done {
    /// Iterations that were right, by parts: the only ones that are throughput.
    pub right: f64,
    /// All iterations, by parts: what kept the GPU busy.
    pub all: f64,
    /// How many with a part in the window were wrong, and how many nobody could check.
    pub wrong: usize,
    pub unchecked: usize,
}

pub fn done(iterations: &[Iteration], from_us: u64, to_us: u64) -> Done {
    let mut done = Done::default();
    for iteration in iterations {
        let part = iteration.part(from_us, to_us);
        if part > 0.0 {
            done.all += part;
            match iteration.verdict {
                Verdict::Right => done.right += part,
                Verdict::Wrong => done.wrong += 1,
                Verdict::Unchecked => done.unchecked += 1,
            }
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn work_is_additive_over_windows(lengths in prop::collection::vec(0u64..50, 1..40), cut in 0u64..1000) {
            let mut end = 0;
            let iterations: Vec<Iteration> = lengths.into_iter().map(|length| {
                let from_us = end;
                end += length;
                Iteration { from_us, to_us: end, verdict: Verdict::Right }
            }).collect();
            let (last, count) = (end + 1, iterations.len() as f64);
            let cut = cut.min(last);
            let whole = done(&iterations, 0, last).right;
            let halves = done(&iterations, 0, cut).right + done(&iterations, cut, last).right;
            prop_assert!((whole - halves).abs() < 1e-9, "{} {}", whole, halves);
            prop_assert!((whole - count).abs() < 1e-9);
        }
    }
}
