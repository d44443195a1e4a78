//! The tables against what they stand for.

use std::cell::OnceCell;

use model::{Class, Nanos};
use proptest::prelude::*;

use super::*;
use crate::{Arrivals, Card, Kernel, Means, Rung, Sharing, Step, Tenant, Work};

fn score(kernels: &[(u32, u64)], class: Class) -> Score {
    let steps = kernels.iter().map(|&(blocks, block)| Step {
        host: Nanos::ZERO,
        kernel: Kernel { blocks, block: Nanos(block), per_sm: 1, spread: 0.0, rung: Rung::Guard },
    });
    let steps = steps.collect();
    let work =
        Work { steps, ahead: 1_024, graph: false, waits: true, syncs: Vec::new(), factors: Vec::new() };
    let (name, arrivals) = (String::new(), Arrivals::Closed);
    let tenant = Tenant { name, class, priority: 0, weight: 1, slo: None, arrivals, work };
    Score::new(&tenant, &Card::h200(), Sharing::MpsPriority, &Means::ebb())
}

/// How long a kernel waits, by a search through all that it may meet.
fn searched(source: Source, score: &Score, job: u64, kernel: usize, others: &[Score], among: &Among) -> u64 {
    let draw = kernel as u64 * 4;
    let which = if others.len() > 1 { source.below(1 + job, draw, others.len()) } else { 0 };
    let other = &others[which];
    let at = (source.unit(1 + job, draw + 1) * other.total() as f64) as u64;
    let met = &other.grids[other.work.partition_point(|&work| work <= at).clamp(1, other.kernels()) - 1];
    if met.share + score.grids[kernel].share <= 1.0 || met.longest_residue() > among.longest {
        return 0;
    }
    let least = (2.0 * among.mean - 1.0).max(0.0);
    let drawn = least + (1.0 - least) * source.unit(1 + job, draw + 2);
    (met.block as f64 * drawn) as u64
}

fn kernels(most: usize) -> impl Strategy<Value = Vec<(u32, u64)>> {
    let block = prop_oneof![1..50u64, 1_000..100_000u64];
    prop::collection::vec((1..300u32, block), 1..most)
}

proptest! {
    #[test]
    fn waits_are_those_that_a_search_finds(
        request in kernels(200),
        others in prop::collection::vec(kernels(60), 1..4),
        (seed, job, from) in (any::<u64>(), 0..1_000u64, any::<prop::sample::Index>()),
        longest in prop_oneof![Just(u64::MAX), 0..100_000u64],
    ) {
        let score_of_request = score(&request, Class::Latency);
        let others: Vec<Score> = others.iter().map(|kernels| score(kernels, Class::BestEffort)).collect();
        let strips: Vec<OnceCell<Strip>> =
            others.iter().map(|other| OnceCell::from(Strip::new(other, false))).collect();
        let on: Vec<usize> = (0..others.len()).collect();
        let among = Among { strips: &strips, on: &on, longest, epoch: 1, mean: 0.65 };
        let source = Source::named(seed, "request");
        let from = from.index(request.len());
        let mut waits = Waits::default();
        waits.find(source, &score_of_request, job, from, &among);
        let expected: Vec<u64> = (from..request.len())
            .map(|kernel| searched(source, &score_of_request, job, kernel, &others, &among))
            .collect();
        prop_assert_eq!(waits.from(from), &expected[..]);
    }
}
