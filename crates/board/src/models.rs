//! The rules of the board in a model checker.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --target-dir target/loom -p board --lib models`
//!
//! Each model is a few threads doing a few steps; the checker runs it in every order that the memory model allows, up to a
//! number of preemptions. A sleeper that is never woken is found as a deadlock, for time does not pass here: what the
//! product would survive by its bounded waits is a failure.

use std::sync::atomic::Ordering as Plain;

use loom::thread;
use model::{Class, Nanos};

use crate::layout::{Layout, SEATS};
use crate::memory::Taken;
use crate::seat_set::SeatSet;
use crate::standing::Standing;
use crate::stop_word::{HANDLE_BYTES, Published};
use crate::sync::{AtomicU32, AtomicU64, Ordering, SLEPT};
use crate::token::Token;
use crate::{Board, Change, Claim, Gpu, Occupant, Place, Seat, Settings, Turn, UsedTime, bell::Bell, layout};

pub(crate) const NOW: Nanos = Nanos::from_millis(1_000);

/// Long enough after `NOW` for everybody to seem dead.
const MUCH_LATER: Nanos = Nanos::from_millis(10_000);

/// Runs a model on a new board in every order.
fn explore(steps: impl Fn(Board) + Sync + Send + 'static) {
    let mut checker = loom::model::Builder::new();
    checker.preemption_bound = Some(3);
    checker.check(move || {
        let layout = Box::into_raw(empty());
        // SAFETY: made the line before, and given back only after all threads of the model are joined.
        let board = Board { layout: unsafe { &*layout } };
        steps(board.begin(Gpu([7; 16]), &Settings::default()));
        // SAFETY: as above; nobody has a board any more.
        drop(unsafe { Box::from_raw(layout) });
    });
}

fn sit(board: &Board, pid: u32) -> Seat {
    let occupant = Occupant {
        pid,
        tenant: u64::from(pid),
        class: Class::BestEffort,
        weight: 1,
        priority: 0,
        slo: None,
        memory: None,
        name: b"",
        program: b"",
    };
    let place = board.take(&occupant).unwrap();
    let seat = board.sit(place).unwrap();
    seat.beat(NOW);
    seat
}

/// Two processes of one tenant that ask at once never have more than the limit together.
#[test]
fn siblings_stay_within_their_limit() {
    let mut checker = loom::model::Builder::new();
    checker.preemption_bound = Some(2);
    checker.check(|| {
        let shared = loom::sync::Arc::new([Taken::new(), Taken::new()]);
        let ask = |own: usize| {
            let shared = shared.clone();
            move || {
                let (own, other) = (&shared[own], &shared[1 - own]);
                own.say_asking(6);
                let others = other.look();
                let granted = 6 + others.0 + others.1 <= 10;
                own.settle(granted.then_some(6));
                granted
            }
        };
        let one = thread::spawn(ask(0));
        let two = ask(1)();
        assert!(!(one.join().unwrap() && two));
        assert!(shared[0].used().0 + shared[1].used().0 <= 10);
    });
}

/// As a tenant waits for its turn.
fn await_turn(seat: &Seat) {
    loop {
        let seen = seat.bell();
        if let Turn::Mine { .. } = seat.try_hold(NOW) {
            return;
        }
        seat.wait(seen, Nanos::MAX);
    }
}

fn first_other(seat: Seat) -> impl FnMut(&[Claim]) -> Option<usize> {
    move |claims| claims.iter().position(|claim| claim.place != seat.place())
}

fn holder(board: &Board) -> Option<u16> {
    Token::of(&board.layout.round.token).holder()
}

#[test]
fn a_bell_is_heard_and_its_news_seen() {
    SLEPT.store(false, Plain::Relaxed);
    loom::model(|| {
        let shared = loom::sync::Arc::new((Bell::new(), AtomicU32::new(0)));
        let sleeper = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (bell, news) = &*shared;
                loop {
                    let seen = bell.count();
                    if news.load(Ordering::Relaxed) == 1 {
                        return;
                    }
                    bell.wait(seen, Nanos::MAX);
                }
            })
        };
        shared.1.store(1, Ordering::Relaxed);
        shared.0.ring();
        sleeper.join().unwrap();
    });
    assert!(SLEPT.load(Plain::Relaxed), "nobody slept, so nothing was shown");
}

#[test]
fn a_sleeper_hears_everyone_who_rings() {
    let mut checker = loom::model::Builder::new();
    checker.preemption_bound = Some(3);
    checker.check(|| {
        let shared = loom::sync::Arc::new((Bell::new(), AtomicU32::new(0)));
        let ring = |shared: &loom::sync::Arc<(Bell, AtomicU32)>| {
            let shared = shared.clone();
            move || {
                shared.1.fetch_add(1, Ordering::Relaxed);
                shared.0.ring();
            }
        };
        let ringers = [thread::spawn(ring(&shared)), thread::spawn(ring(&shared))];
        let (bell, news) = &*shared;
        loop {
            let seen = bell.count();
            if news.load(Ordering::Relaxed) == 2 {
                break;
            }
            bell.wait(seen, Nanos::MAX);
        }
        ringers.into_iter().for_each(|ringer| ringer.join().unwrap());
    });
}

#[test]
fn whoever_comes_to_want_is_not_forgotten_by_one_who_leaves() {
    SLEPT.store(false, Plain::Relaxed);
    explore(|board| {
        let (first, second) = (sit(&board, 1), sit(&board, 2));
        assert!(matches!(first.try_hold(NOW), Turn::Mine { .. }));
        let waiter = thread::spawn(move || await_turn(&second));
        first.leave(NOW, UsedTime::new(Nanos(5), first.terms().weight), &mut first_other(first));
        waiter.join().unwrap();
        assert_eq!(holder(&board), Some(second.place().seat));
    });
    assert!(SLEPT.load(Plain::Relaxed), "nobody slept, so nothing was shown");
}

#[test]
fn a_passed_token_comes_with_what_its_last_holder_wrote() {
    explore(|board| {
        let (first, second) = (sit(&board, 1), sit(&board, 2));
        assert!(matches!(first.try_hold(NOW), Turn::Mine { .. }));
        second.want(NOW);
        let before = first_time(&board);
        let waiter = thread::spawn(move || {
            await_turn(&second);
            first_time(&board)
        });
        let next = first.pass(
            NOW + Nanos(9),
            UsedTime::new(Nanos(9), first.terms().weight),
            &mut first_other(first),
        );
        assert_eq!(next, Some(second.place()));
        assert_eq!(waiter.join().unwrap(), before + Nanos(9));
    });
}

fn first_time(board: &Board) -> Nanos {
    Nanos(board.layout.seats[0].virtual_time.load(Ordering::Relaxed))
}

#[test]
fn an_idle_holder_hears_that_somebody_wants_it() {
    explore(|board| {
        let (first, second) = (sit(&board, 1), sit(&board, 2));
        assert!(matches!(first.try_hold(NOW), Turn::Mine { .. }));
        let waiter = thread::spawn(move || await_turn(&second));
        loop {
            let seen = first.bell();
            if first.others_want() {
                break;
            }
            first.wait(seen, Nanos::MAX);
        }
        first.leave(NOW, UsedTime::new(Nanos(5), first.terms().weight), &mut first_other(first));
        waiter.join().unwrap();
    });
}

#[test]
fn one_who_no_longer_wants_does_not_keep_the_token() {
    explore(|board| {
        let (first, second) = (sit(&board, 1), sit(&board, 2));
        assert!(matches!(first.try_hold(NOW), Turn::Mine { .. }));
        second.want(NOW);
        let fickle = thread::spawn(move || second.unwant());
        first.leave(NOW, UsedTime::new(Nanos(5), first.terms().weight), &mut first_other(first));
        fickle.join().unwrap();
        assert_eq!(holder(&board), None);
    });
}

#[test]
fn a_third_gets_what_a_second_no_longer_wants() {
    explore(|board| {
        let (first, second, third) = (sit(&board, 1), sit(&board, 2), sit(&board, 3));
        assert!(matches!(first.try_hold(NOW), Turn::Mine { .. }));
        second.want(NOW);
        let fickle = thread::spawn(move || second.unwant());
        let waiter = thread::spawn(move || await_turn(&third));
        let mut choose_second =
            |claims: &[Claim]| claims.iter().position(|claim| claim.place == second.place());
        first.leave(NOW, UsedTime::new(Nanos(5), first.terms().weight), &mut choose_second);
        fickle.join().unwrap();
        waiter.join().unwrap();
        assert_eq!(holder(&board), Some(third.place().seat));
    });
}

#[test]
fn the_dead_do_not_keep_what_is_passed_to_them() {
    explore(|board| {
        let (first, second) = (sit(&board, 1), sit(&board, 2));
        assert!(matches!(first.try_hold(NOW), Turn::Mine { .. }));
        second.want(NOW);
        let daemon = thread::spawn(move || board.free(second.place()));
        first.leave(NOW, UsedTime::new(Nanos(5), first.terms().weight), &mut first_other(first));
        assert!(daemon.join().unwrap());
        assert_eq!(holder(&board), None);
    });
}

#[test]
fn who_takes_a_free_token_as_it_is_unseated_does_not_keep_it() {
    explore(|board| {
        let first = sit(&board, 1);
        let daemon = thread::spawn(move || board.free(first.place()));
        first.try_hold(NOW);
        assert!(daemon.join().unwrap());
        assert_eq!(holder(&board), None);
    });
}

#[test]
fn the_token_of_a_dead_holder_wakes_who_waits() {
    explore(|board| {
        let (first, second) = (sit(&board, 1), sit(&board, 2));
        assert!(matches!(first.try_hold(NOW), Turn::Mine { .. }));
        let waiter = thread::spawn(move || await_turn(&second));
        assert!(board.free(first.place()));
        waiter.join().unwrap();
        assert_eq!(holder(&board), Some(second.place().seat));
    });
}

#[test]
fn taken_over_and_passed_on_at_once_it_is_with_one() {
    explore(|board| {
        let (first, second, third) = (sit(&board, 1), sit(&board, 2), sit(&board, 3));
        assert!(matches!(first.try_hold(NOW), Turn::Mine { .. }));
        third.want(MUCH_LATER);
        let taker = thread::spawn(move || matches!(second.try_hold(MUCH_LATER), Turn::Mine { .. }));
        let mut choose_third =
            |claims: &[Claim]| claims.iter().position(|claim| claim.place == third.place());
        let passed = first.pass(MUCH_LATER, UsedTime::new(Nanos(5), first.terms().weight), &mut choose_third);
        let taken = taker.join().unwrap();
        assert!(!(taken && passed.is_some()), "two succeeded");
        let expected = if taken { second } else { third };
        assert_eq!(holder(&board), Some(expected.place().seat));
    });
}

/// The two ways in which a best-effort tenant sees that there is work: one word, and as a policy sees it.
const LOOKS: [fn(&Board) -> bool; 2] = [
    |board| board.latency_active(NOW),
    |board| board.latency_tenants(NOW).any(|tenant| tenant.active_since.is_some()),
];

#[test]
fn whoever_is_stopped_hears_that_the_work_is_done() {
    LOOKS.into_iter().for_each(hears_that_the_work_is_done);
}

fn hears_that_the_work_is_done(there_is_work: fn(&Board) -> bool) {
    SLEPT.store(false, Plain::Relaxed);
    explore(move |board| {
        let (latency, stopped) = (sit(&board, 1), sit(&board, 2));
        board.change(latency.place(), Change::Class(Class::Latency));
        latency.activate(NOW);
        let waiter = thread::spawn(move || {
            stopped.say_stopped(true);
            loop {
                let seen = stopped.bell();
                if !there_is_work(&board) {
                    return;
                }
                stopped.wait(seen, Nanos::MAX);
            }
        });
        latency.deactivate(NOW, NOW);
        waiter.join().unwrap();
    });
    assert!(SLEPT.load(Plain::Relaxed), "nobody slept, so nothing was shown");
}

#[test]
fn whoever_listens_hears_that_there_is_work() {
    LOOKS.into_iter().for_each(hears_that_there_is_work);
}

fn hears_that_there_is_work(there_is_work: fn(&Board) -> bool) {
    SLEPT.store(false, Plain::Relaxed);
    explore(move |board| {
        let (latency, listener) = (sit(&board, 1), sit(&board, 2));
        board.change(latency.place(), Change::Class(Class::Latency));
        let waiter = thread::spawn(move || {
            listener.say_listening(true);
            loop {
                let seen = listener.bell();
                if there_is_work(&board) {
                    return;
                }
                listener.wait(seen, Nanos::MAX);
            }
        });
        latency.activate(NOW);
        waiter.join().unwrap();
    });
    assert!(SLEPT.load(Plain::Relaxed), "nobody slept, so nothing was shown");
}

#[test]
fn a_word_that_is_lowered_is_raised_again_by_one_of_the_two() {
    LOOKS.into_iter().for_each(is_raised_again_by_one_of_the_two);
}

fn is_raised_again_by_one_of_the_two(there_is_work: fn(&Board) -> bool) {
    explore(move |board| {
        let (latency, best_effort) = (sit(&board, 1), sit(&board, 2));
        board.change(latency.place(), Change::Class(Class::Latency));
        // The device's memory: what is written there is written in one order.
        let word = loom::sync::Arc::new(AtomicU32::new(1));
        let device = word.clone();
        let resume = thread::spawn(move || {
            device.swap(0, Ordering::AcqRel);
            if there_is_work(&best_effort.board()) {
                device.swap(1, Ordering::AcqRel);
            }
        });
        latency.activate(NOW);
        word.swap(1, Ordering::AcqRel);
        resume.join().unwrap();
        assert_eq!(word.load(Ordering::Acquire), 1);
    });
}

#[test]
fn a_stop_word_is_read_whole_or_not_at_all() {
    explore(|board| {
        let seat = sit(&board, 1);
        seat.publish_stop_word([1; HANDLE_BYTES], 1);
        let first = board.stop_words().next().unwrap().number;
        let reader = thread::spawn(move || {
            for word in board.stop_words() {
                assert!(word.handle.iter().all(|byte| u64::from(*byte) == word.offset));
                assert_eq!(word.number == first, word.offset == 1);
            }
        });
        seat.publish_stop_word([2; HANDLE_BYTES], 2);
        reader.join().unwrap();
    });
}

#[test]
fn nobody_says_that_it_raises_a_word_that_is_no_more() {
    explore(|board| {
        let (latency, best_effort) = (sit(&board, 1), sit(&board, 2));
        board.change(latency.place(), Change::Class(Class::Latency));
        best_effort.publish_stop_word([1; HANDLE_BYTES], 1);
        let word = board.stop_words().next().unwrap();
        let opener = thread::spawn(move || latency.say_raises(&word));
        best_effort.publish_stop_word([2; HANDLE_BYTES], 2);
        opener.join().unwrap();
        assert!(!best_effort.latency_seats_raise());
    });
}

#[test]
fn a_reading_never_mixes_two_occupants() {
    explore(|board| {
        let first = sit(&board, 1);
        let read = move || {
            for (place, reading) in board.seats() {
                assert_eq!(u64::from(reading.pid), reading.tenant);
                assert_eq!(place.generation, reading.pid);
            }
        };
        // A reading is larger than the checker's stacks are by default; the number is in words.
        let reader = thread::Builder::new().stack_size(1 << 18).spawn(read).unwrap();
        board.free(first.place());
        sit(&board, 2);
        reader.join().unwrap();
    });
}

#[test]
fn the_wish_of_one_occupant_does_not_fall_upon_the_next() {
    explore(|board| {
        let first = sit(&board, 1);
        let late = thread::spawn(move || first.want(NOW));
        board.free(first.place());
        let next = sit(&board, 2);
        late.join().unwrap();
        assert_eq!(next.place(), Place { seat: 0, generation: 2 });
        assert!(!Standing::of(&board.layout.seats[0].standing).wants());
    });
}

/// A segment as it is made: zero, but for the checker's own atomics, which are made one by one. It never lies on the stack,
/// for the checker's stacks are small.
fn empty() -> Box<Layout> {
    let mut memory = Box::<Layout>::new_zeroed();
    let layout = memory.as_mut_ptr();
    // SAFETY: the place lies in the memory allocated above, which nobody else has.
    unsafe { (&raw mut (*layout).round.token).write(AtomicU64::new(0)) };
    // SAFETY: as above.
    unsafe { (&raw mut (*layout).round.stopped).write(SeatSet::new()) };
    // SAFETY: as above.
    unsafe { (&raw mut (*layout).round.listening).write(SeatSet::new()) };
    for number in 0..SEATS {
        // SAFETY: as above; the number is that of a seat.
        make(unsafe { &raw mut (*layout).seats[number] });
    }
    // SAFETY: all that is not of the checker is made of plain atomics, for which zero is a value.
    unsafe { memory.assume_init() }
}

/// Makes the checker's part of a seat.
fn make(seat: *mut layout::Seat) {
    // SAFETY: the caller gives a seat in memory that nobody else has; so for the rest.
    unsafe { (&raw mut (*seat).standing).write(AtomicU64::new(0)) };
    // SAFETY: as above.
    unsafe { (&raw mut (*seat).virtual_time).write(AtomicU64::new(0)) };
    // SAFETY: as above.
    unsafe { (&raw mut (*seat).held_since).write(AtomicU64::new(0)) };
    // SAFETY: as above.
    unsafe { (&raw mut (*seat).tenant).write(AtomicU64::new(0)) };
    // SAFETY: as above.
    unsafe { (&raw mut (*seat).pid).write(AtomicU32::new(0)) };
    // SAFETY: as above.
    unsafe { (&raw mut (*seat).heart.active_since).write(AtomicU64::new(0)) };
    // SAFETY: as above.
    unsafe { (&raw mut (*seat).heart.memory).write(Taken::new()) };
    // SAFETY: as above.
    unsafe { (&raw mut (*seat).stop_word).write(Published::new()) };
    // SAFETY: as above.
    unsafe { (&raw mut (*seat).raises).write(SeatSet::new()) };
    // SAFETY: as above.
    unsafe { (&raw mut (*seat).bell).write(Bell::new()) };
}

/// What a tenant has on the GPU: work, and the short slice.
const WORK: u32 = 1;
const SHORT: u32 = 2;

/// Two tenants come to a board with work under way, as when both ran unseated or were of another class. Their slices are
/// ordinary until then. Each is given the short one, takes its turn with the token, leaves the GPU and passes the token on.
/// `leaves_first`: it is taken off the GPU before its slice is the short one, as `shim::tenancy::turn` has it.
fn two_come_with_work(leaves_first: bool) {
    explore(move |board| {
        // Both in one word, which nobody sees as it was.
        let on_gpu = loom::sync::Arc::new(AtomicU32::new(WORK | WORK << 2));
        let tenant = move |own: u32| {
            let (seat, on_gpu) = (sit(&board, own + 1), on_gpu.clone());
            let set = move |state: u32| {
                on_gpu.fetch_and(!(3 << (2 * own)), Ordering::Relaxed);
                let before = on_gpu.fetch_or(state << (2 * own), Ordering::Relaxed);
                let other = before >> (2 * (1 - own)) & 3;
                let both = state == WORK | SHORT && other == WORK | SHORT;
                assert!(!both, "two short slices meet on the GPU");
            };
            move || {
                set(if leaves_first { SHORT } else { WORK | SHORT });
                await_turn(&seat);
                set(WORK | SHORT);
                set(SHORT);
                seat.leave(NOW, UsedTime::new(Nanos::ZERO, 1), &mut first_other(seat));
            }
        };
        let other = thread::spawn(tenant(0));
        tenant(1)();
        other.join().unwrap();
    });
}

#[test]
fn two_that_come_with_work_never_meet_with_short_slices() {
    two_come_with_work(true);
}

/// The rule as it was: the short slice came with the seat. The model finds what came of it.
#[test]
#[should_panic(expected = "two short slices meet on the GPU")]
fn who_is_given_the_short_slice_with_work_under_way_meets_another() {
    two_come_with_work(false);
}
