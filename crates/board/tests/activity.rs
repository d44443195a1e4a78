//! What latency and best-effort seats tell each other: who has work, whose stop word is where, who is stopped.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use board::{Board, Change, Seat};
use common::{board, ms, sit};
use model::{Class, Nanos};

fn sit_latency(board: &Board, tenant: u64) -> Seat {
    let seat = sit(board, tenant, 1);
    assert!(board.change(seat.place(), Change::Class(Class::Latency)));
    seat
}

#[test]
fn work_is_known_while_it_lasts_and_its_end_afterwards() {
    let board = board();
    let latency = sit_latency(&board, 1);
    assert_eq!((board.latency_active(ms(9)), board.latency_last_active(ms(9))), (false, None));
    latency.activate(ms(10));
    assert_eq!((board.latency_active(ms(30)), board.latency_last_active(ms(30))), (true, Some(ms(30))));
    latency.deactivate(ms(40), ms(10));
    assert_eq!((board.latency_active(ms(60)), board.latency_last_active(ms(60))), (false, Some(ms(40))));
    board.free(latency.place());
    assert_eq!(board.latency_last_active(ms(70)), Some(ms(40)), "that it was there stays true");
}

#[test]
fn work_of_one_who_shows_no_life_is_not_waited_for() {
    let board = board();
    let latency = sit_latency(&board, 1);
    latency.activate(ms(10));
    assert!(board.latency_active(ms(2_000)));
    latency.beat(ms(2_000));
    assert!(board.latency_active(ms(4_900)), "a request may take long");
    assert!(!board.latency_active(ms(5_100)), "but a keeper that lives says so");
    assert_eq!(board.latency_last_active(ms(5_100)), None, "when it ended, nobody knows");
    latency.beat(ms(5_200));
    assert!(board.latency_active(ms(5_300)));
}

#[test]
fn times_that_have_not_come_are_not_believed() {
    let board = board();
    let latency = sit_latency(&board, 1);
    latency.deactivate(Nanos::MAX, ms(10));
    assert_eq!(board.latency_last_active(ms(20)), Some(ms(20)));
}

#[test]
fn a_stop_word_is_found_until_it_is_forgotten() {
    let board = board();
    let (best_effort, other) = (sit(&board, 1, 1), sit(&board, 2, 1));
    assert_eq!(board.stop_words().count(), 0);
    best_effort.publish_stop_word([3; 64], 96);
    let first = board.stop_words().next().unwrap();
    assert_eq!((first.place, first.handle, first.offset), (best_effort.place(), [3; 64], 96));
    best_effort.publish_stop_word([4; 64], 0);
    let second = board.stop_words().next().unwrap();
    assert_ne!(first.number, second.number);
    other.publish_stop_word([5; 64], 0);
    assert_eq!(board.stop_words().count(), 2);
    best_effort.forget_stop_word();
    assert_eq!(board.stop_words().map(|word| word.place).collect::<Vec<_>>(), [other.place()]);
}

#[test]
fn a_stop_word_goes_with_its_owner_and_is_not_the_next_ones() {
    let board = board();
    let first = sit(&board, 1, 1);
    first.publish_stop_word([3; 64], 96);
    let word = board.stop_words().next().unwrap();
    assert!(board.free(first.place()));
    assert_eq!(board.stop_words().count(), 0);
    let second = sit(&board, 2, 1);
    assert_eq!(second.place().seat, first.place().seat);
    assert_eq!(board.stop_words().count(), 0);
    let latency = sit_latency(&board, 3);
    assert!(!latency.say_raises(&word), "it is another's by now");
}

#[test]
fn a_latency_tenants_own_word_is_nobodys_business() {
    let board = board();
    let seat = sit_latency(&board, 1);
    seat.publish_stop_word([3; 64], 0);
    assert_eq!(board.stop_words().count(), 0);
}

#[test]
fn all_latency_tenants_raise_or_the_board_must_be_watched() {
    let board = board();
    let (best_effort, a, b) = (sit(&board, 1, 1), sit_latency(&board, 2), sit_latency(&board, 3));
    best_effort.publish_stop_word([3; 64], 0);
    let word = board.stop_words().next().unwrap();
    assert!(!best_effort.latency_seats_raise());
    assert!(a.say_raises(&word));
    assert!(!best_effort.latency_seats_raise(), "one does not");
    assert!(b.say_raises(&word) && best_effort.latency_seats_raise());
    let late = sit_latency(&board, 4);
    assert!(!best_effort.latency_seats_raise(), "a newcomer has not opened it yet");
    board.free(late.place());
    assert!(best_effort.latency_seats_raise());
    best_effort.publish_stop_word([4; 64], 0);
    assert!(!best_effort.latency_seats_raise(), "they raise the old one");
    b.say_raises_not(best_effort.place());
    assert!(!sit(&board, 5, 1).latency_seats_raise(), "nobody was shown a word");
}

#[test]
fn the_end_of_work_rings_for_those_who_are_stopped_and_for_nobody_else() {
    let board = board();
    let (stopped, other, latency) = (sit(&board, 1, 1), sit(&board, 2, 1), sit_latency(&board, 3));
    let bells = || (stopped.bell(), other.bell());
    latency.activate(ms(1));
    stopped.say_stopped(true);
    let (first, second) = bells();
    latency.deactivate(ms(2), ms(1));
    assert_eq!(bells(), (first + 1, second));
    stopped.say_stopped(false);
    latency.activate(ms(3));
    latency.deactivate(ms(4), ms(3));
    assert_eq!(bells(), (first + 1, second));
}

#[test]
fn who_does_not_listen_is_woken_when_work_begins() {
    let board = board();
    let (listens, other, latency) = (sit(&board, 1, 1), sit(&board, 2, 1), sit_latency(&board, 3));
    listens.say_stopped(true);
    let before = [listens.bell(), other.bell(), latency.bell()];
    latency.wake_unsuspecting();
    assert_eq!([listens.bell(), other.bell(), latency.bell()], [before[0], before[1] + 1, before[2]]);
}

#[test]
fn whoever_was_stopped_by_one_that_died_goes_on() {
    let board = board();
    let (stopped, latency) = (sit(&board, 1, 1), sit_latency(&board, 2));
    latency.activate(ms(1));
    stopped.say_stopped(true);
    let before = stopped.bell();
    assert!(board.free(latency.place()));
    assert_ne!(stopped.bell(), before);
    assert!(!board.latency_active(ms(1)));
}

#[test]
fn new_words_are_announced_to_latency_tenants() {
    let board = board();
    let (best_effort, latency) = (sit(&board, 1, 1), sit_latency(&board, 2));
    let before = latency.bell();
    best_effort.publish_stop_word([3; 64], 0);
    assert_ne!(latency.bell(), before);
}
