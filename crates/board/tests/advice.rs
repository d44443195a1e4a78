//! What tenants say of what they expect, want and have seen, and how the dials stand.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use board::{Board, Change, Decided, Experience, Need, Outlook, Reading, Seat, Settings, Spans};
use common::{GPU, board, ms, sit};
use model::{Class, Dials, Forecast, Kind, Nanos};
use proptest::prelude::*;

fn sit_latency(board: &Board, tenant: u64) -> Seat {
    let seat = sit(board, tenant, 1);
    assert!(board.change(seat.place(), Change::Class(Class::Latency)));
    seat
}

fn reading(seat: &Seat) -> Reading {
    let found = seat.board().seats().find(|(place, _)| *place == seat.place());
    found.unwrap().1
}

fn nanos() -> impl Strategy<Value = Nanos> {
    any::<u64>().prop_map(Nanos)
}

fn dials() -> impl Strategy<Value = Dials> {
    let kind = (0..Kind::ALL.len()).prop_map(|place| Kind::ALL[place]);
    let spans = (nanos(), nanos(), nanos(), nanos());
    (kind, spans, any::<u32>(), any::<u32>()).prop_map(
        |(kind, (quiet, threshold, in_flight, beside), confine, solo_share)| Dials {
            kind,
            quiet,
            threshold,
            in_flight,
            beside,
            confine,
            solo_share,
        },
    )
}

proptest! {
    #[test]
    fn dials_are_read_as_they_were_set_within_what_makes_sense(dials in dials()) {
        let board = board();
        board.set_dials(&dials);
        prop_assert_eq!(board.dials(), dials.sane());
    }

    #[test]
    fn an_outlook_is_read_as_it_was_said(
        times in [nanos(), nanos(), nanos(), nanos(), nanos(), nanos()], deadline in proptest::option::of(1..u64::MAX), solo: u32, whole: bool, in_line: bool,
    ) {
        let [early, likely, busy_until, slack, lull, spell] = times;
        let next = Forecast { early, likely };
        let outlook = Outlook { next, busy_until, slack, lull, spell, deadline: deadline.map(Nanos), solo_wait: Nanos::from_micros(solo.into()), whole, in_line };
        let board = board();
        let seat = sit_latency(&board, 1);
        seat.beat(ms(10));
        seat.say_outlook(outlook);
        let seen = board.latency_tenants(ms(10)).next().unwrap();
        prop_assert_eq!(seen.outlook, outlook);
        prop_assert_eq!(reading(&seat).outlook, outlook);
    }

    #[test]
    fn a_need_and_a_decision_are_read_as_they_were_said(
        wants: bool, runs: bool, certificate in nanos(), piece in proptest::option::of(1..u64::MAX), why: u8,
        longest in nanos(),
    ) {
        let need = Need { wants, runs, certificate, piece: piece.map(Nanos) };
        let board = board();
        let seat = sit(&board, 1, 1);
        prop_assert_eq!(reading(&seat).decided, None);
        seat.beat(ms(10));
        seat.say_need(need, ms(10));
        seat.say_decision(why, longest);
        let seen = reading(&seat);
        prop_assert_eq!((seen.need, seen.decided), (need, Some(Decided { why, longest })));
        let tenant = board.best_effort_tenants(ms(10)).next().unwrap();
        prop_assert_eq!((tenant.wants, tenant.runs), (wants, runs));
        prop_assert_eq!((tenant.certificate, tenant.piece), (certificate, piece.map(Nanos)));
    }

    #[test]
    fn an_experience_is_read_as_it_was_said(counts: [u64; 3], spans in [nanos(), nanos(), nanos(), nanos()]) {
        let [a, b, c, d] = spans;
        let of = |count, a: Nanos, b: Nanos| Spans { count, p50: a.min(b), p99: a.max(b) };
        let experience = Experience { all: of(counts[0], a, b), alone: of(counts[1], c, d), alone_needed: counts[2] };
        let seat = sit_latency(&board(), 1);
        prop_assert_eq!(reading(&seat).experience, Experience::default());
        seat.say_experience(experience);
        prop_assert_eq!(reading(&seat).experience, experience);
    }
}

#[test]
fn a_new_board_has_the_default_dials_and_keeps_its_settings_apart() {
    let board = Board::private(GPU, &Settings { tolerance: 120, ..Settings::default() }).unwrap();
    assert_eq!((board.dials(), board.settings().tolerance), (Dials::default(), 120));
    let turned = Dials { kind: Kind::Fair, quiet: ms(3), ..Dials::default() };
    board.set_dials(&turned);
    board.set_settings(&Settings::default());
    assert_eq!((board.dials(), board.settings()), (turned, Settings::default()));
}

#[test]
fn who_has_said_nothing_may_launch_at_any_moment_and_can_bear_nothing() {
    let board = board();
    sit_latency(&board, 1).beat(ms(10));
    let tenant = board.latency_tenants(ms(10)).next().unwrap();
    assert_eq!(tenant.outlook, Outlook::default());
    assert!(!tenant.outlook.next.is_known() && tenant.outlook.slack == Nanos::ZERO);
}

#[test]
fn latency_tenants_are_those_who_are_here_and_alive() {
    let board = board();
    let (first, second, other) = (sit_latency(&board, 1), sit_latency(&board, 2), sit(&board, 3, 1));
    [first, second, other].iter().for_each(|seat| seat.beat(ms(10)));
    assert!(board.change(second.place(), Change::Priority(4)));
    first.activate(ms(20));
    second.activate(ms(12));
    second.deactivate(ms(15), ms(12));
    let seen: Vec<_> = board.latency_tenants(ms(30)).collect();
    let told = |at: usize| (seen[at].seat, seen[at].priority, seen[at].active_since, seen[at].last_active);
    assert_eq!(seen.len(), 2);
    assert_eq!(told(0), (first.place().seat, 0, Some(ms(20)), None));
    assert_eq!(told(1), (second.place().seat, 4, None, Some(ms(15))));
    first.beat(ms(4_000));
    let alive: Vec<_> = board.latency_tenants(ms(4_000)).map(|tenant| tenant.seat).collect();
    assert_eq!(alive, [first.place().seat], "the other has shown no life for seconds");
    board.free(first.place());
    assert_eq!(board.latency_tenants(ms(4_000)).count(), 0);
}

#[test]
fn a_seat_says_nothing_in_the_name_of_who_sat_there_before() {
    let board = board();
    let before = sit_latency(&board, 1);
    before.say_outlook(Outlook { slack: ms(5), solo_wait: ms(1), ..Outlook::default() });
    before.say_experience(Experience {
        all: Spans { count: 1, p50: ms(1), p99: ms(2) },
        ..Experience::default()
    });
    before.say_need(Need { wants: true, certificate: ms(1), ..Need::default() }, ms(5));
    before.say_decision(3, ms(1));
    assert!(board.free(before.place()));
    let after = sit(&board, 2, 1);
    assert_eq!(after.place().seat, before.place().seat);
    let seen = reading(&after);
    assert_eq!((seen.outlook, seen.experience), (Outlook::default(), Experience::default()));
    assert_eq!((seen.need, seen.decided), (Need::default(), None));
}

#[test]
fn waiting_begins_with_the_wish_and_again_when_the_work_is_off_the_gpu() {
    let board = board();
    let seat = sit(&board, 1, 3);
    let need = |wants, runs| Need { wants, runs, ..Need::default() };
    let since = |now| {
        seat.beat(now);
        board.best_effort_tenants(now).next().unwrap().wanted_since
    };
    seat.say_need(need(true, false), ms(10));
    seat.say_need(need(true, false), ms(12));
    assert_eq!(since(ms(15)), ms(10));
    seat.say_need(need(true, true), ms(20));
    assert_eq!(since(ms(21)), Nanos::ZERO, "it does not wait");
    seat.say_need(need(true, false), ms(30));
    assert_eq!(since(ms(31)), ms(30));
    seat.say_need(need(true, false), Nanos::MAX);
    assert_eq!(since(ms(40)), ms(30));
}

#[test]
fn it_is_known_when_best_effort_work_was_last_on_the_gpu() {
    let board = board();
    let (seat, other) = (sit(&board, 1, 1), sit(&board, 2, 1));
    let runs = |runs| Need { wants: true, runs, ..Need::default() };
    let last = |now| {
        [&seat, &other].into_iter().for_each(|seat| seat.beat(now));
        board.best_effort_last_ran(now)
    };
    assert_eq!(last(ms(10)), None);
    seat.say_need(runs(true), ms(20));
    assert_eq!(last(ms(21)), Some(ms(21)), "it is there now");
    seat.say_need(runs(false), ms(30));
    seat.say_need(runs(false), ms(40));
    assert_eq!(last(ms(50)), Some(ms(30)));
    seat.say_running();
    assert_eq!(last(ms(51)), Some(ms(51)), "also between two looks of its keeper");
    seat.say_need(runs(false), ms(52));
    let before = board::now();
    other.say_need(runs(true), before);
    assert!(board.free(other.place()));
    assert!(board.best_effort_last_ran(board::now()) >= Some(before), "who is gone was there until then");
}

#[test]
fn a_stranger_is_believed_to_be_there_for_a_while() {
    let board = board();
    assert_eq!(board.stranger_seen(ms(10)), None);
    board.say_stranger(ms(50));
    assert_eq!(board.stranger_seen(ms(20)), Some(ms(20)));
    assert_eq!(board.stranger_seen(ms(90)), Some(ms(50)));
}

#[test]
fn siblings_are_the_seats_of_a_tenant_that_want() {
    let board = board();
    let seats =
        [sit(&board, 1, 2), sit(&board, 1, 2), sit(&board, 1, 2), sit(&board, 2, 5), sit_latency(&board, 1)];
    seats.iter().for_each(|seat| seat.beat(ms(10)));
    let wants = Need { wants: true, ..Need::default() };
    [0, 1, 3, 4].into_iter().for_each(|at: usize| seats[at].say_need(wants, ms(10)));
    let siblings = || board.best_effort_tenants(ms(10)).map(|tenant| tenant.siblings).collect::<Vec<_>>();
    assert_eq!(siblings(), [2, 2, 2, 1]);
    assert!(board.change(seats[0].place(), Change::Paused(true)));
    assert_eq!(siblings(), [1, 1, 1, 1]);
    assert!(!board.best_effort_tenants(ms(10)).next().unwrap().wants, "it was told to pause");
    seats[2].want(ms(10));
    assert_eq!(siblings(), [2, 2, 2, 1], "to want the token is to want");
}

#[test]
fn who_was_away_does_not_catch_up_on_those_who_stayed() {
    let board = board();
    let (stayed, away) = (sit(&board, 1, 1), sit(&board, 2, 1));
    let wants = Need { wants: true, ..Need::default() };
    stayed.say_need(wants, ms(1));
    stayed.advance(ms(500));
    away.say_need(wants, ms(600));
    [stayed, away].iter().for_each(|seat| seat.beat(ms(600)));
    let times: Vec<_> = board.best_effort_tenants(ms(600)).map(|tenant| tenant.virtual_time).collect();
    assert_eq!(times, [ms(500), ms(500)]);
    away.advance(ms(10));
    let times: Vec<_> = board.best_effort_tenants(ms(600)).map(|tenant| tenant.virtual_time).collect();
    assert_eq!(times, [ms(500), ms(510)]);
    stayed.advance(Nanos::MAX);
    assert_eq!(board.best_effort_tenants(ms(600)).next().unwrap().virtual_time, Nanos::MAX, "and no further");
}
