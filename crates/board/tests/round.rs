//! The round: whose turn it is, and what it costs.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use board::{Board, Change, Place, Seat, Settings, Turn, UsedTime};
use common::{board, fairly, ms, sit};
use model::{Class, Nanos};

fn holds(seat: &Seat, now: Nanos) -> bool {
    matches!(seat.try_hold(now), Turn::Mine { .. })
}

/// Turns of a quantum each, all wanting all the time; the token time of each.
fn rotate(board: &Board, seats: &[Seat], turns: usize) -> Vec<u64> {
    let mut now = ms(1_000);
    let mut used = vec![0; seats.len()];
    for seat in seats {
        seat.want(now);
    }
    let mut holder = seats.iter().position(|seat| holds(seat, now)).unwrap();
    for _ in 0..turns {
        now += ms(30);
        used[holder] += 30;
        for seat in seats {
            seat.beat(now);
        }
        let heir = seats[holder].heir(now, UsedTime::new(ms(30), seats[holder].terms().weight), &mut fairly);
        let next = seats[holder]
            .pass(now, UsedTime::new(ms(30), seats[holder].terms().weight), &mut fairly)
            .unwrap();
        assert_eq!(heir, Some(next), "who would have it has it");
        assert_eq!(board.token(), Some((next, now)));
        holder = seats.iter().position(|seat| seat.place() == next).unwrap();
    }
    used
}

#[test]
fn shares_are_as_the_weights() {
    let board = board();
    let seats = [sit(&board, 1, 1), sit(&board, 2, 3), sit(&board, 3, 4)];
    let used = rotate(&board, &seats, 800);
    assert_eq!(used.iter().sum::<u64>(), 800 * 30);
    for (used, expected) in used.iter().zip([100, 300, 400]) {
        assert!(used.abs_diff(expected * 30) <= 30, "{used:?}");
    }
}

#[test]
fn siblings_divide_their_tenants_share() {
    let board = board();
    let seats = [sit(&board, 1, 1), sit(&board, 1, 1), sit(&board, 1, 1), sit(&board, 2, 1)];
    let used = rotate(&board, &seats, 600);
    assert!(used[3].abs_diff(300 * 30) <= 60, "{used:?}");
    assert!(used[..3].iter().all(|used| used.abs_diff(100 * 30) <= 60), "{used:?}");
}

#[test]
fn to_ask_for_the_heir_changes_nothing() {
    let board = board();
    let (a, b) = (sit(&board, 1, 1), sit(&board, 2, 1));
    assert!(holds(&a, ms(10)) && !holds(&b, ms(10)));
    for _ in 0..3 {
        assert_eq!(a.heir(ms(40), UsedTime::new(ms(30), a.terms().weight), &mut fairly), Some(b.place()));
        assert_eq!(a.holds(), Some(ms(10)));
    }
    assert_eq!(board.seats().map(|(_, seat)| seat.virtual_time).max(), Some(Nanos::ZERO));
}

#[test]
fn company_is_another_best_effort_seat_and_nobody_else() {
    let board = board();
    let (a, b) = (sit(&board, 1, 1), sit(&board, 2, 1));
    assert!(a.has_company() && b.has_company());
    board.change(b.place(), Change::Class(Class::Latency));
    assert!(!a.has_company() && b.has_company());
    board.free(a.place());
    assert!(!b.has_company());
}

#[test]
fn a_free_token_is_taken_and_a_held_one_is_not() {
    let board = board();
    let (a, b) = (sit(&board, 1, 1), sit(&board, 2, 1));
    assert_eq!(board.token(), None);
    assert_eq!(a.try_hold(ms(10)), Turn::Mine { since: ms(10) });
    assert_eq!(a.try_hold(ms(20)), Turn::Mine { since: ms(10) });
    assert!(!a.others_want());
    let Turn::Others { look_again } = b.try_hold(ms(30)) else { panic!("two have it") };
    // It last showed life at 20 and may be silent for 50.
    assert_eq!(look_again, ms(40));
    assert!(a.others_want());
    assert_eq!((a.holds(), b.holds()), (Some(ms(10)), None));
}

#[test]
fn a_token_is_passed_with_a_ring() {
    let board = board();
    let (a, b) = (sit(&board, 1, 1), sit(&board, 2, 1));
    assert!(holds(&a, ms(10)));
    let heard = b.bell();
    b.want(ms(11));
    assert_eq!(a.pass(ms(20), UsedTime::new(ms(10), a.terms().weight), &mut fairly), Some(b.place()));
    assert_ne!(b.bell(), heard);
    assert_eq!(b.try_hold(ms(21)), Turn::Mine { since: ms(20) });
    assert_eq!(
        a.pass(ms(22), UsedTime::new(ms(1), a.terms().weight), &mut fairly),
        None,
        "it is not a's to pass"
    );
    assert_eq!(board.token(), Some((b.place(), ms(20))));
}

#[test]
fn a_holder_hears_that_somebody_comes_to_want_it() {
    let board = board();
    let (a, b) = (sit(&board, 1, 1), sit(&board, 2, 1));
    assert!(holds(&a, ms(10)));
    let heard = a.bell();
    b.want(ms(11));
    assert_ne!(a.bell(), heard);
    let heard = a.bell();
    b.want(ms(12));
    assert!(!holds(&b, ms(12)));
    assert_eq!(a.bell(), heard, "once is enough");
}

#[test]
fn who_is_alone_keeps_it_and_pays_nothing() {
    let board = board();
    let a = sit(&board, 1, 1);
    assert!(holds(&a, ms(10)));
    assert_eq!(a.pass(ms(40), UsedTime::new(ms(30), a.terms().weight), &mut fairly), Some(a.place()));
    assert_eq!(a.holds(), Some(ms(40)));
    assert_eq!(virtual_time(&board, a.place()), Nanos::ZERO);
}

#[test]
fn an_hour_alone_is_not_held_against_anybody() {
    let board = board();
    let (a, b) = (sit(&board, 1, 1), sit(&board, 2, 1));
    assert!(holds(&a, ms(10)));
    let hour = ms(3_600_000);
    b.want(hour);
    // Nobody wanted it for all but the last 5 ms.
    assert_eq!(a.pass(hour + ms(5), UsedTime::new(hour, a.terms().weight), &mut fairly), Some(b.place()));
    assert_eq!(virtual_time(&board, a.place()), ms(5));
}

#[test]
fn nobody_saves_up_while_away() {
    let board = board();
    let seats = [sit(&board, 1, 1), sit(&board, 2, 1)];
    rotate(&board, &seats, 100);
    let late = sit(&board, 3, 1);
    let now = ms(1_000 + 100 * 30);
    late.want(now);
    let least = seats.iter().map(|seat| virtual_time(&board, seat.place())).min().unwrap();
    assert!(virtual_time(&board, late.place()) + ms(30) >= least);
    assert!(least > ms(1_000));
}

#[test]
fn who_leaves_does_not_get_it_back() {
    let board = board();
    let (a, b) = (sit(&board, 1, 1), sit(&board, 2, 1000));
    assert!(holds(&a, ms(10)));
    b.want(ms(10));
    assert_eq!(a.leave(ms(11), UsedTime::new(ms(1), a.terms().weight), &mut fairly), Some(b.place()));
    assert_eq!(b.leave(ms(12), UsedTime::new(ms(1), b.terms().weight), &mut fairly), None);
    assert_eq!(board.token(), None);
    assert!(board.seats().all(|(_, reading)| !reading.wanting));
}

#[test]
fn who_unwants_gives_it_up_and_the_others_are_rung() {
    let board = board();
    let (a, b) = (sit(&board, 1, 1), sit(&board, 2, 1));
    assert!(holds(&a, ms(10)));
    b.want(ms(10));
    let heard = b.bell();
    a.unwant();
    assert_ne!(b.bell(), heard);
    assert_eq!(board.token(), None);
    assert!(holds(&b, ms(11)));
}

#[test]
fn a_holder_without_life_loses_it_after_the_grace() {
    let board = board();
    let (a, b) = (sit(&board, 1, 1), sit(&board, 2, 1));
    assert!(holds(&a, ms(10)));
    a.beat(ms(100));
    assert!(!holds(&b, ms(150)), "within the grace");
    assert!(holds(&b, ms(151)));
    assert_eq!(a.holds(), None);
    assert_eq!((a.tally().lost.get(), b.tally().taken_over.get()), (1, 1));
    assert_eq!(a.pass(ms(152), UsedTime::new(ms(1), a.terms().weight), &mut fairly), None);
    assert_eq!(b.holds(), Some(ms(151)));
}

#[test]
fn a_new_holder_has_the_whole_grace_to_wake_up() {
    let board = board();
    let (a, b, c) = (sit(&board, 1, 1), sit(&board, 2, 1), sit(&board, 3, 1));
    assert!(holds(&a, ms(10)));
    b.want(ms(10));
    assert_eq!(a.leave(ms(59), UsedTime::new(ms(1), a.terms().weight), &mut fairly), Some(b.place()));
    assert!(!holds(&c, ms(100)));
    assert!(holds(&c, ms(110)));
}

#[test]
fn it_is_not_passed_to_the_lifeless() {
    let board = board();
    let (a, b) = (sit(&board, 1, 1), sit(&board, 2, 1));
    assert!(holds(&a, ms(1_000)));
    b.want(ms(10));
    assert_eq!(a.pass(ms(1_030), UsedTime::new(ms(30), 1), &mut fairly), Some(a.place()));
    assert_eq!(a.leave(ms(1_031), UsedTime::new(ms(1), 1), &mut fairly), None);
}

#[test]
fn what_somebody_writes_of_ones_terms_takes_no_turn_and_no_share() {
    let board = board();
    let (a, b) = (sit(&board, 1, 1), sit(&board, 2, 100));
    assert!(holds(&a, ms(10)));
    b.want(ms(10));
    let heard = b.bell();
    for forged in [Change::Paused(true), Change::Weight(1), Change::Class(model::Class::Latency)] {
        assert!(board.change(b.place(), forged));
    }
    assert_ne!(b.bell(), heard);
    assert_eq!(
        a.pass(ms(40), UsedTime::new(ms(30), 1), &mut fairly),
        Some(b.place()),
        "it is next, paused or not"
    );
    // It is charged by the weight that it knows itself to have.
    [a, b].iter().for_each(|seat| seat.beat(ms(140)));
    assert_eq!(b.heir(ms(140), UsedTime::new(ms(100), 100), &mut fairly), Some(b.place()));
    assert_eq!(b.heir(ms(140), UsedTime::new(ms(100), 1), &mut fairly), Some(a.place()));
    assert_eq!(b.leave(ms(140), UsedTime::new(ms(100), 100), &mut fairly), Some(a.place()));
    assert!(matches!(b.try_hold(ms(141)), Turn::Others { .. }));
    assert_eq!(a.leave(ms(142), UsedTime::new(ms(1), 1), &mut fairly), Some(b.place()));
}

#[test]
fn the_token_of_an_unseated_holder_is_free_and_others_are_rung() {
    let board = board();
    let (a, b) = (sit(&board, 1, 1), sit(&board, 2, 1));
    assert!(holds(&a, ms(10)));
    b.want(ms(10));
    let heard = b.bell();
    assert!(board.free(a.place()));
    assert_ne!(b.bell(), heard);
    assert!(holds(&b, ms(11)));
    assert_eq!(b.tally().taken_over.get(), 0);
    // A process that does not know yet that it lost its seat can do no harm.
    a.want(ms(12));
    a.unwant();
    assert!(!holds(&a, ms(12)));
    assert_eq!(a.pass(ms(13), UsedTime::new(ms(1), a.terms().weight), &mut fairly), None);
    assert_eq!(a.leave(ms(13), UsedTime::new(ms(1), a.terms().weight), &mut fairly), None);
    assert!(holds(&b, ms(14)));
}

#[test]
fn a_policy_that_picks_nobody_or_nonsense_frees_it() {
    let board = board();
    let (a, b) = (sit(&board, 1, 1), sit(&board, 2, 1));
    for pick in [None, Some(usize::MAX)] {
        assert!(holds(&a, ms(10)));
        b.want(ms(10));
        let heard = b.bell();
        assert_eq!(a.pass(ms(11), UsedTime::new(ms(1), a.terms().weight), &mut |_| pick), None);
        assert_ne!(b.bell(), heard);
        assert_eq!(board.token(), None);
    }
}

#[test]
fn terms_change_one_at_a_time_and_stay_within_bounds() {
    let board = board();
    let a = sit(&board, 1, 1);
    let changes = [
        Change::Class(Class::Latency),
        Change::Weight(5_000),
        Change::Priority(12),
        Change::Slo(Some(ms(20))),
    ];
    assert!(changes.into_iter().all(|change| board.change(a.place(), change)));
    let terms = a.terms();
    assert_eq!((terms.class, terms.weight, terms.priority), (Class::Latency, 1_000, 9));
    assert_eq!((terms.slo, terms.paused), (Some(ms(20)), false));
}

#[test]
fn settings_that_cannot_work_are_brought_to_ones_that_can() {
    let board = board();
    let nought = Nanos::ZERO;
    let none =
        Settings { quantum: nought, idle: nought, grace: nought, tolerance: u32::MAX, ..Settings::default() };
    board.set_settings(&none);
    assert!(board.settings().grace >= ms(1));
    assert!(board.settings().quantum >= Nanos::from_micros(100));
    assert_eq!(board.settings().tolerance, 9_000);
}

#[test]
fn busy_time_of_latency_tenants_adds_up_and_never_goes_back() {
    let board = board();
    let a = sit(&board, 1, 1);
    assert!(board.change(a.place(), Change::Class(Class::Latency)));
    assert_eq!(board.latency_busy(ms(10)), Nanos::ZERO);
    a.activate(ms(10));
    assert!(board.latency_active(ms(10)));
    assert_eq!(board.latency_busy(ms(14)), ms(4));
    a.deactivate(ms(15), ms(10));
    assert!(!board.latency_active(ms(15)));
    assert_eq!(board.latency_busy(ms(50)), ms(5));
    a.activate(ms(60));
    assert_eq!(board.latency_busy(ms(70)), ms(15));
    assert!(board.free(a.place()));
    assert!(board.latency_busy(ms(70)) >= ms(15));
    // Of a process whose seat was taken from it, nothing counts.
    a.activate(ms(1));
    assert!(!board.latency_active(ms(70)));
}

fn virtual_time(board: &Board, place: Place) -> Nanos {
    board.seats().find(|(one, _)| *one == place).unwrap().1.virtual_time
}
