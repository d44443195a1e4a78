//! Which domain suits whom.

use model::{Domain, Nanos, Rung};
use policy::domain::{Because, Choice, Circumstances, ENOUGH, MOST, Profile, choose, together};
use proptest::prelude::*;

/// Ordinary kernels with short blocks, all of them guarded.
const EASY: Profile = Profile { seen: ENOUGH, guarded: 1_000, long_blocks: 0, cooperative: 0, graphs: 0 };

/// A switch takes longer than the latency tenants can bear.
const TIGHT: Circumstances = Circumstances {
    slack: Some(Nanos::from_micros(100)),
    switch: Some(Nanos::from_micros(320)),
    can_share: true,
    may_share: true,
};

fn because(profile: Profile, around: Circumstances) -> (Domain, Because) {
    let Choice { domain, because, .. } = choose(&profile, &around);
    (domain, because)
}

#[test]
fn short_guarded_blocks_beside_little_slack_belong_into_the_shared_domain() {
    let expected = Choice { domain: Domain::Shared, rung: Rung::Guard, because: Because::GuardIsFaster };
    assert_eq!(choose(&EASY, &TIGHT), expected);
}

#[test]
fn a_switch_that_is_fast_enough_keeps_everybody_apart() {
    let around = Circumstances { slack: TIGHT.switch, ..TIGHT };
    let expected =
        Choice { domain: Domain::Isolated, rung: Rung::Switch, because: Because::SwitchIsFastEnough };
    assert_eq!(choose(&EASY, &around), expected);
}

#[test]
fn what_cannot_be_stopped_between_blocks_stays_isolated_and_says_why() {
    let isolated = |because| (Domain::Isolated, because);
    let over = MOST + 1;
    assert_eq!(because(Profile { long_blocks: over, ..EASY }, TIGHT), isolated(Because::LongBlocks));
    assert_eq!(because(Profile { cooperative: over, ..EASY }, TIGHT), isolated(Because::Cooperative));
    assert_eq!(because(Profile { graphs: over, ..EASY }, TIGHT), isolated(Because::Graphs));
    assert_eq!(because(Profile { guarded: 1_000 - over, ..EASY }, TIGHT), isolated(Because::Unguarded));
    let a_little =
        Profile { seen: ENOUGH, guarded: 1_000 - MOST, long_blocks: MOST, cooperative: MOST, graphs: MOST };
    assert_eq!(because(a_little, TIGHT), (Domain::Shared, Because::GuardIsFaster));
}

#[test]
fn nobody_is_judged_unseen_or_shares_a_fate_unasked() {
    let isolated = |because| (Domain::Isolated, because);
    assert_eq!(because(Profile::default(), TIGHT), isolated(Because::NotSeenEnough));
    assert_eq!(because(EASY, Circumstances { may_share: false, ..TIGHT }), isolated(Because::NotAllowed));
    assert_eq!(because(EASY, Circumstances { slack: None, ..TIGHT }), isolated(Because::NobodyToProtect));
}

#[test]
fn where_no_switch_can_be_made_the_guard_is_all_there_is() {
    let around = Circumstances { switch: None, ..TIGHT };
    assert_eq!(because(EASY, around), (Domain::Shared, Because::NoSwitch));
    let hard = choose(&Profile { graphs: 500, ..EASY }, &around);
    assert_eq!(hard, Choice { domain: Domain::Isolated, rung: Rung::Hold, because: Because::Graphs });
}

#[test]
fn reasons_have_names_of_their_own_and_are_all_there() {
    let mut names: Vec<_> = Because::ALL.iter().map(|because| because.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Because::ALL.len());
    assert!(Because::ALL.is_sorted());
}

prop_compose! {
    fn any_profile()(
        seen in 0u64..2_000, (guarded, long_blocks, cooperative, graphs) in any::<(u32, u32, u32, u32)>(), small: bool,
    ) -> Profile {
        let share = |share: u32| if small { share % 20 } else { share };
        Profile {
            seen: Nanos::from_millis(seen), guarded: 1_000u32.saturating_sub(share(guarded)), long_blocks: share(long_blocks),
            cooperative: share(cooperative), graphs: share(graphs),
        }
    }
}

proptest! {
    #[test]
    fn one_tenant_that_does_not_belong_there_keeps_all_from_the_shared_domain(
        profiles in proptest::collection::vec(any_profile(), 0..6),
    ) {
        let mut choices: Vec<Choice> = profiles.iter().map(|profile| choose(profile, &TIGHT)).collect();
        let all = together(choices.iter().copied());
        let shared = !choices.is_empty() && choices.iter().all(|choice| choice.domain == Domain::Shared);
        prop_assert_eq!(all.is_some_and(|choice| choice.domain == Domain::Shared), shared);
        choices.reverse();
        prop_assert_eq!(together(choices), all);
    }
}
