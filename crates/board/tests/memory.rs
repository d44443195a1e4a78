//! Memory that the processes of a tenant share under one limit.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::sync::Barrier;

use board::Seat;
use common::{board, sit};
use model::Bytes;

const LIMIT: Bytes = Bytes(10);

fn ask(seat: &Seat, used: u64, more: u64) -> bool {
    seat.ask_memory(Bytes(used), Bytes(more), LIMIT)
}

#[test]
fn the_processes_of_a_tenant_share_and_others_do_not() {
    let board = board();
    let (one, two, stranger) = (sit(&board, 1, 1), sit(&board, 1, 1), sit(&board, 2, 1));
    assert!(ask(&stranger, 0, 10));
    assert!(ask(&one, 0, 6) && !ask(&two, 0, 5) && ask(&two, 0, 4));
    assert_eq!((one.memory_of_siblings(), two.memory_of_siblings()), (Bytes(4), Bytes(6)));
    assert!(!ask(&one, 6, 1));
    two.say_memory(Bytes(1));
    assert!(ask(&one, 6, 3) && !ask(&one, 9, u64::MAX));
    let said: Vec<_> = board.seats().map(|(_, reading)| reading.memory.0).collect();
    assert_eq!(said, [9, 1, 10]);
}

#[test]
fn what_a_process_had_goes_with_its_seat() {
    let board = board();
    let (one, two) = (sit(&board, 1, 1), sit(&board, 1, 1));
    assert!(ask(&one, 0, 10) && !ask(&two, 0, 1));
    assert!(board.free(one.place()));
    assert!(ask(&two, 0, 10));
    // Who no longer has the seat says nothing about it.
    one.say_memory(Bytes(99));
    let next = sit(&board, 1, 1);
    assert_eq!((next.memory_of_siblings(), two.memory_of_siblings()), (Bytes(10), Bytes(0)));
}

#[test]
fn of_several_who_ask_at_once_exactly_one_is_granted() {
    let board = board();
    let seats: Vec<Seat> = (0..3).map(|_| sit(&board, 1, 1)).collect();
    let barrier = Barrier::new(seats.len());
    let ask_at_once = |seat| {
        barrier.wait();
        usize::from(ask(seat, 0, 6))
    };
    let ask_at_once = &ask_at_once;
    for _ in 0..500 {
        let granted: usize = std::thread::scope(|scope| {
            let askers: Vec<_> = seats.iter().map(|seat| scope.spawn(move || ask_at_once(seat))).collect();
            askers.into_iter().map(|asker| asker.join().unwrap()).sum()
        });
        assert_eq!(granted, 1);
        seats.iter().for_each(|seat| seat.say_memory(Bytes::ZERO));
    }
}
