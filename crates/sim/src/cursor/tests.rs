//! The sums against a walk through every kernel.

use model::{Class, Nanos};
use proptest::prelude::*;

use super::*;
use crate::rate::Rate;
use crate::{Arrivals, Card, Kernel, Means, Rung, Sharing, Step, Tenant, Work};

fn tenant(steps: &[(u64, u64)], graph: bool, syncs: Vec<u32>) -> Tenant {
    let steps = steps.iter().map(|&(host, span)| Step {
        host: Nanos(host),
        kernel: Kernel { blocks: 132, block: Nanos(span), per_sm: 1, spread: 0.0, rung: Rung::Guard },
    });
    let steps = steps.collect();
    let work = Work { steps, ahead: 1_024, graph, waits: true, syncs, factors: Vec::new() };
    let arrivals = Arrivals::Closed;
    Tenant {
        name: String::new(),
        class: Class::BestEffort,
        priority: 0,
        weight: 1,
        slo: None,
        arrivals,
        work,
    }
}

fn score(tenant: &Tenant) -> Score {
    Score::new(tenant, &Card::h200(), Sharing::Isolated, &Means::ebb())
}

/// When the job ends, kernel by kernel, on a GPU that is away during `away`, given in order.
fn walked(tenant: &Tenant, begin: u64, away: &[(u64, u64)]) -> u64 {
    let costs = Card::h200().costs;
    let (mut host, mut end) = (begin, 0);
    for (k, step) in tenant.work.steps.iter().enumerate() {
        let waits = tenant.work.syncs.contains(&(k as u32));
        if waits {
            host = host.max(end);
        }
        if k == 0 || waits || !tenant.work.graph {
            host += step.host.0 + costs.launch_call.0;
        }
        let mut now = end.max(host + costs.launch_to_start.0);
        let mut left = step.kernel.block.0;
        for &(from, to) in away.iter().filter(|&&(_, to)| to > begin) {
            if to <= now {
                continue;
            }
            if from < now + left {
                left -= from.saturating_sub(now);
                now = to;
            }
        }
        end = now + left;
    }
    end
}

/// The same by the cursor: on the GPU until each absence begins, and again from its end on.
fn computed(score: &Score, begin: u64, away: &[(u64, u64)]) -> u64 {
    let mut cursor = Cursor::new(Nanos(begin), ONE, 0);
    for &(from, to) in away.iter().filter(|&&(_, to)| to > begin) {
        if cursor.end(score).0 <= from {
            break;
        }
        cursor.run(score, Nanos(from));
        cursor.resume(score, Nanos(to));
    }
    cursor.end(score).0
}

/// Absences that do not touch each other.
fn absences() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((1..200_000u64, 1..200_000u64), 0..12).prop_map(|spans| {
        let mut now = 0;
        let absences = spans.into_iter().map(|(before, span)| {
            let from = now + before;
            now = from + span;
            (from, now)
        });
        absences.collect()
    })
}

fn jobs() -> impl Strategy<Value = Tenant> {
    let steps = prop::collection::vec((0..60_000u64, 1..60_000u64), 1..12);
    (steps, any::<bool>(), prop::collection::btree_set(1..12u32, 0..3)).prop_map(|(steps, graph, syncs)| {
        let syncs = syncs.into_iter().filter(|&sync| (sync as usize) < steps.len()).collect();
        tenant(&steps, graph, syncs)
    })
}

proptest! {
    #[test]
    fn whatever_comes_between_a_job_ends_when_its_kernels_do(
        tenant in jobs(),
        begin in 0..300_000u64,
        away in absences(),
    ) {
        prop_assert_eq!(computed(&score(&tenant), begin, &away), walked(&tenant, begin, &away));
    }

    #[test]
    fn a_job_is_as_far_as_its_kernels_are(tenant in jobs(), moments in prop::collection::vec(0..1_000_000u64, 1..8)) {
        let score = score(&tenant);
        let mut moments = moments;
        moments.sort_unstable();
        let mut cursor = Cursor::new(Nanos::ZERO, ONE, 0);
        for at in moments {
            cursor.run(&score, Nanos(at));
            let mut apart = Cursor::new(Nanos::ZERO, ONE, 0);
            apart.run(&score, Nanos(at));
            prop_assert_eq!(cursor.done(), apart.done());
            prop_assert_eq!(cursor.is_over(&score), cursor.end(&score) <= Nanos(at));
            let kernel = score.work.partition_point(|&work| work <= cursor.done()).min(score.kernels() + 1) - 1;
            prop_assert_eq!(cursor.kernel(), kernel);
            let busy = cursor.busy_until(&score, Nanos(at));
            prop_assert!(busy >= Nanos(at) && busy <= cursor.end(&score).max(Nanos(at)));
        }
    }

    #[test]
    fn gaps_are_where_the_host_is_late(tenant in jobs()) {
        let score = score(&tenant);
        let mut cursor = Cursor::new(Nanos::ZERO, ONE, 0);
        cursor.run(&score, cursor.start(&score, 0));
        let mut now = cursor.start(&score, 0);
        while let Some((opens, call)) = cursor.next_gap(&score, now, Nanos(1)) {
            prop_assert!(call > opens);
            cursor.run(&score, opens);
            prop_assert!(cursor.under_way(&score).is_none());
            prop_assert_eq!(cursor.busy_until(&score, opens), opens);
            prop_assert_eq!(cursor.call(&score, cursor.kernel()), call);
            now = call;
        }
    }
}

proptest! {
    #[test]
    fn a_sprint_by_sums_gets_as_far_as_one_by_steps(
        steps in prop::collection::vec((0..60_000u64, 1..40_000u64), 1..40),
        cuts in prop::collection::vec(1..300_000u64, 1..20),
        hundredths in 5..=100u64,
        room in 10..=100u64,
        sync in 0..80u32,
        away in 0..400_000u64,
    ) {
        let syncs = if sync > 0 && (sync as usize) < steps.len() { vec![sync] } else { Vec::new() };
        let score = score(&tenant(&steps, false, syncs));
        let rate = Rate::within(room as f64 / 100.0, hundredths as f64 / 100.0);
        let mut track = Track::default();
        (0..100).for_each(|_| track.ask(&score, rate));
        let mut by_sums = Cursor::new(Nanos(1_000), ONE, 0);
        let mut by_steps = by_sums.clone();
        let mut now = Nanos(1_000);
        // From anywhere to anywhere, with absences between: what is not whole is not begun.
        for (number, cut) in cuts.into_iter().enumerate() {
            let to = now + Nanos(cut);
            let one = by_sums.sprint(&score, &track, now, to, rate);
            let other = by_steps.sprint(&score, &Track::default(), now, to, rate);
            prop_assert_eq!((by_sums.kernel, by_sums.done, one), (by_steps.kernel, by_steps.done, other));
            if by_sums.is_over(&score) {
                break;
            }
            now = to;
            if number % 3 == 1 {
                now += Nanos(away);
                by_sums.resume(&score, now);
                by_steps.resume(&score, now);
            }
        }
    }
}
