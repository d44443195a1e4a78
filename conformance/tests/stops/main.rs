//! Kernels that are stopped at random and resumed: `cargo test -p conformance --test stops`.
//!
//! Every kernel of the suite is given a count of its blocks, then the guard's prologue, and runs on the software GPU's
//! executor block by block, instruction by instruction, as a drawn schedule says: which block goes on, how far, when the
//! stop word is raised and lowered. A launch that was cut is launched again until it is whole. Then every block must
//! have run exactly once and every byte of memory be what it is without a guard. A schedule that fails is shrunk.
//!
//! `EBB_STOPS` is how many schedules are drawn for each test instead of the usual number, on the kernels for both
//! targets and both levels of optimisation: `EBB_STOPS=100000 cargo test -p conformance --test stops`. `EBB_STOPS_SEED` is
//! the number that all draws depend on.

mod donor;
mod grid;
mod kernels;
mod schedule;
mod subject;

use std::sync::LazyLock;

use guard::Rule;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use grid::End;
use schedule::{Move, Schedule, any_schedule};
use subject::Subject;

/// How many schedules are drawn, where nobody asks for more.
const USUAL: u32 = 1500;

fn asked_for() -> Option<u32> {
    std::env::var("EBB_STOPS").ok()?.parse().ok()
}

fn config() -> Config {
    let cases = asked_for().unwrap_or(USUAL);
    let seed = std::env::var("EBB_STOPS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let rng_seed = RngSeed::Fixed(seed);
    Config { cases, rng_seed, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() }
}

/// Kernels of the suite whose results do not depend on the order of their blocks, with arguments that suit them.
static SUITE: LazyLock<Vec<Subject>> = LazyLock::new(|| {
    let variants: &[&str] = match asked_for() {
        Some(_) => &["compute_80.O0", "compute_80.O3", "compute_90.O0", "compute_90.O3"],
        None => &["compute_90.O3"],
    };
    kernels::suite(variants)
});

/// Kernels written for this test.
static OWN: LazyLock<Vec<Subject>> = LazyLock::new(kernels::own);

/// What is compiled to machine code.
static DONORS: LazyLock<Vec<Subject>> = LazyLock::new(donor::both);

#[test]
fn most_of_the_suite_takes_part() {
    let (all, taken) =
        (kernels::guarded_in_suite(), SUITE.iter().filter(|subject| subject.is_newest()).count());
    assert!(taken * 10 >= all * 6, "{taken} of {all} guarded kernels can be compared");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn kernels_of_the_suite_survive_any_stops(which in any::<prop::sample::Index>(), schedule in any_schedule()) {
        let subject = which.get(&SUITE);
        prop_assert_eq!(subject.check(&schedule), Ok(()), "{}", subject.name);
    }

    #[test]
    fn kernels_that_count_wait_and_meet_survive_any_stops(
        which in any::<prop::sample::Index>(),
        schedule in any_schedule(),
    ) {
        let subject = which.get(&OWN);
        prop_assert_eq!(subject.check(&schedule), Ok(()), "{}", subject.name);
    }

    #[test]
    fn the_prologue_for_machine_code_survives_any_stops(
        which in any::<prop::sample::Index>(),
        schedule in any_schedule(),
    ) {
        let subject = which.get(&DONORS);
        prop_assert_eq!(subject.check(&schedule), Ok(()), "{}", subject.name);
    }
}

/// What the ordered rule is for: the third block has begun and waits for the second, which is turned away.
#[test]
fn a_chain_of_blocks_hangs_under_the_plain_rule() {
    let chain = OWN.iter().find(|subject| subject.name == "chain").expect("it is one of ours");
    assert_eq!(chain.rule, Rule::Ordered);
    let run = |which| Move::Run { which, budget: 2000 };
    let schedule = Schedule::new(vec![
        Move::Start,
        run(0),
        Move::Start,
        Move::Start,
        run(1),
        Move::Raise,
        run(0),
        Move::Lower,
    ]);
    assert_eq!(chain.attempt_under(Rule::Plain, &schedule), End::Hangs);
    assert_eq!(chain.check(&schedule), Ok(()));
}

/// The test must be able to fail: a launch that is not relaunched lacks blocks.
#[test]
fn a_cut_launch_lacks_what_was_turned_away() {
    for subject in OWN.iter().chain(DONORS.iter()) {
        let schedule = Schedule::new(vec![Move::Raise, Move::Start, Move::Run { which: 0, budget: 5000 }]);
        let end = subject.attempt_under(subject.rule, &schedule);
        assert_eq!(end, End::Cut, "{}", subject.name);
        assert_ne!(subject.tally(), subject.once(), "{}", subject.name);
    }
}
