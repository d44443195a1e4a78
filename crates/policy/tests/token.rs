//! Over any stretch of turns, shares are as the weights.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

use model::Nanos;
use policy::token::{Claim, charge, choose};
use proptest::prelude::*;

const QUANTUM: Nanos = Nanos::from_millis(30);

/// Somebody in a round that is played in memory.
#[derive(Clone, Debug)]
struct Player {
    tenant: usize,
    weight: u32,
    virtual_time: Nanos,
    waiting_since: Nanos,
    used: Nanos,
    /// The most turns that others had in a row while it waited.
    longest_wait: usize,
    waited: usize,
}

fn player(tenant: usize, weight: u32) -> Player {
    let (virtual_time, waiting_since, used) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
    Player { tenant, weight, virtual_time, waiting_since, used, longest_wait: 0, waited: 0 }
}

/// Everybody wants the token all the time; turn `n` lasts `turns[n]`.
fn play(players: &mut [Player], turns: impl IntoIterator<Item = Nanos>) {
    let mut now = Nanos::ZERO;
    for used in turns {
        let claims = players
            .iter()
            .map(|one| Claim { virtual_time: one.virtual_time, wanted_since: one.waiting_since });
        let next = choose(claims).unwrap();
        now += used;
        let siblings = players.iter().filter(|one| one.tenant == players[next].tenant).count();
        for one in players.iter_mut() {
            one.waited += 1;
            one.longest_wait = one.longest_wait.max(one.waited);
        }
        let chosen = &mut players[next];
        chosen.used += used;
        chosen.virtual_time += charge(used, chosen.weight, u32::try_from(siblings).unwrap());
        (chosen.waiting_since, chosen.waited) = (now, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn shares_match_weights_within_a_quantum(weights in proptest::collection::vec(1u32..=20, 1..12)) {
        let mut players: Vec<Player> =
            weights.iter().enumerate().map(|(tenant, &weight)| player(tenant, weight)).collect();
        let turns = 2_000;
        play(&mut players, (0..turns).map(|_| QUANTUM));
        let (all, sum) = (f64::from(turns) * QUANTUM.as_secs_f64(), f64::from(weights.iter().sum::<u32>()));
        for one in &players {
            let due = all * f64::from(one.weight) / sum;
            // Everybody is at most a turn ahead of everybody else.
            let slack = QUANTUM.as_secs_f64() * (1.0 + f64::from(one.weight) / sum * weights.len() as f64);
            prop_assert!((one.used.as_secs_f64() - due).abs() <= slack, "{one:?}, due {due}");
        }
    }

    /// Turns may be of any length: a kernel that takes long is paid for, not forgiven.
    #[test]
    fn uneven_turns_even_out(
        weights in proptest::collection::vec(1u32..=10, 2..6),
        lengths in proptest::collection::vec(1u64..=100, 1..40),
    ) {
        let mut players: Vec<Player> =
            weights.iter().enumerate().map(|(tenant, &weight)| player(tenant, weight)).collect();
        play(&mut players, lengths.iter().cycle().take(3_000).map(|&millis| Nanos::from_millis(millis)));
        let reach = |one: &Player| one.used.as_secs_f64() / f64::from(one.weight);
        let (least, most) = players.iter().map(reach).fold((f64::MAX, 0.0), |(a, b): (f64, f64), x| (a.min(x), b.max(x)));
        // Nobody is ahead by more than the longest turn with the smallest weight.
        prop_assert!(most - least <= 0.1001, "{least} to {most}");
    }

    #[test]
    fn nobody_starves(weights in proptest::collection::vec(1u32..=200, 1..12)) {
        let mut players: Vec<Player> =
            weights.iter().enumerate().map(|(tenant, &weight)| player(tenant, weight)).collect();
        play(&mut players, (0..8_000).map(|_| QUANTUM));
        let sum: u32 = weights.iter().sum();
        for one in &players {
            // Between two of its turns the others have at most their shares of one round, and one turn each.
            let bound = (sum / one.weight) as usize + weights.len() + 1;
            prop_assert!(one.longest_wait <= bound, "{one:?} waited longer than {bound}");
        }
    }

    #[test]
    fn siblings_divide_what_their_tenant_gets(siblings in 1usize..8, weight in 1u32..=10, other in 1u32..=10) {
        let mut players = vec![player(0, weight); siblings];
        players.push(player(1, other));
        let turns = 4_000;
        play(&mut players, (0..turns).map(|_| QUANTUM));
        let all = f64::from(turns) * QUANTUM.as_secs_f64();
        let due = all * f64::from(weight) / f64::from(weight + other);
        let family: f64 = players[..siblings].iter().map(|one| one.used.as_secs_f64()).sum();
        let slack = QUANTUM.as_secs_f64() * (2.0 + siblings as f64);
        prop_assert!((family - due).abs() <= slack, "{family} instead of {due}");
        let each = players[..siblings].iter().map(|one| one.used);
        prop_assert!(each.clone().max().unwrap().since(each.min().unwrap()) <= QUANTUM);
    }

    #[test]
    fn a_choice_is_one_of_the_claims(times in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..128)) {
        let claims = times.iter().map(|&(a, b)| Claim { virtual_time: Nanos(a), wanted_since: Nanos(b) });
        let least = times.iter().min();
        prop_assert_eq!(choose(claims).map(|place| &times[place]), least);
    }

    #[test]
    fn a_charge_grows_with_use_and_siblings_and_shrinks_with_weight(
        used in 0..u64::MAX / 200, weight in 1u32..=1_000, siblings in 1u32..=128,
    ) {
        let charged = charge(Nanos(used), weight, siblings);
        prop_assert!(charge(Nanos(used + 1), weight, siblings) >= charged);
        prop_assert!(charge(Nanos(used), weight, siblings + 1) >= charged);
        prop_assert!(charge(Nanos(used), weight + 1, siblings) <= charged);
        prop_assert_eq!(charge(Nanos(used), 1, 1), Nanos(used));
    }
}

#[test]
fn who_waited_longest_is_first_among_equals() {
    let claim = |wanted_since| Claim { virtual_time: Nanos(5), wanted_since: Nanos(wanted_since) };
    assert_eq!(choose([claim(3), claim(1), claim(2)]), Some(1));
    assert_eq!(choose([]), None);
}

#[test]
fn noughts_count_as_ones() {
    assert_eq!(charge(QUANTUM, 0, 0), QUANTUM);
}
