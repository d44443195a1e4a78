//! A board on which somebody wrote anything at all.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::os::fd::AsFd;

use board::{Board, Condition, Landmark, Rung, Settings, SliceState, UsedTime, Why};
use common::{GPU, fairly, ms, take};
use model::{Bytes, Nanos};
use proptest::prelude::*;

/// Writes over a whole board, but for its first words.
fn scribble(seed: u64, density: u8) -> Board {
    let (_, file) = Board::create(GPU, &Settings::default()).unwrap();
    let size = usize::try_from(rustix::fs::fstat(&file).unwrap().st_size).unwrap();
    let mut state = seed | 1;
    let mut bytes = vec![0u8; size];
    for byte in &mut bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let value = state.to_le_bytes();
        // Between all zeros and all ones: words with few bits set are the more plausible lies.
        *byte = if value[1] < density {
            value[0]
        } else if density == u8::MAX {
            0xff
        } else {
            0
        };
    }
    assert_eq!(rustix::io::pwrite(&file, &bytes[16..], 16), Ok(size - 16));
    Board::open(file.as_fd()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn is_read_and_used_without_harm(seed: u64, density: u8) {
        let board = scribble(seed, density);
        let settings = board.settings();
        prop_assert_eq!(settings, settings.sane());
        for (_, reading) in board.seats() {
            prop_assert!((1..=1_000).contains(&reading.terms.weight));
            prop_assert!(reading.terms.priority <= 9);
            prop_assert!(!reading.name.contains(char::is_control) && !reading.program.contains(char::is_control));
            prop_assert!(reading.figures.burst_times.quantile(0.99) <= Some(Nanos(1 << 40)));
        }
        let _ = (board.token(), board.latency_busy(ms(1)), board.gpu(), board.latency_active(ms(1)));
        prop_assert!(board.latency_last_active(ms(1)) <= Some(ms(1)));
        prop_assert!(board.stop_words().count() <= board::SEATS);
        prop_assert_eq!(board.dials(), board.dials().sane());
        let now = board::now();
        for tenant in board.latency_tenants(now) {
            prop_assert!(tenant.last_active <= Some(now) && tenant.priority <= 9);
        }
        for tenant in board.best_effort_tenants(now) {
            prop_assert!(tenant.wanted_since <= now && tenant.priority <= 9);
            prop_assert!((1..=board::SEATS as u32).contains(&tenant.siblings));
            prop_assert!((1..=1_000).contains(&tenant.weight));
        }
        for (place, _) in board.seats().take(4).collect::<Vec<_>>() {
            let seat = board.sit(place).unwrap();
            let now = board::now();
            seat.want(now);
            let _ = seat.try_hold(now);
            let _ = seat.others_want();
            let _ = seat.pass(now, UsedTime::new(Nanos::MAX, seat.terms().weight), &mut fairly);
            seat.wait(seat.bell(), Nanos(1));
            let _ = seat.leave(now, UsedTime::new(ms(1), seat.terms().weight), &mut fairly);
            seat.activate(now);
            seat.deactivate(now, Nanos::ZERO);
            seat.publish_stop_word([7; 64], 8);
            let word = board.stop_words().find(|word| word.place == place);
            prop_assert!(word.is_none_or(|word| word.handle == [7; 64] && seat.say_raises(&word)));
            let _ = seat.latency_seats_raise();
            seat.say_stopped(true);
            let _ = (seat.ask_memory(Bytes(1), Bytes(u64::MAX), Bytes(9)), seat.memory_of_siblings());
            prop_assert!(seat.ask_memory(Bytes(1), Bytes(2), Bytes(u64::MAX)));
            board.free(place);
        }
        board.announce();
        // And it is put right by whoever knows what it should be.
        board.restore(GPU, &Settings::default());
        board.sweep(|_| false);
        prop_assert!(board.is_whole() && board.gpu() == GPU && board.settings() == Settings::default());
        prop_assert_eq!((board.seats().count(), board.token(), board.sweep(|_| false)), (0, None, 0));
        let place = take(&board, 1, 1);
        prop_assert!(board.sit(place).is_ok());
    }
}

/// Of two who take turns, one is far ahead by what somebody wrote to its virtual time, or to where newcomers start.
#[test]
fn nobody_is_without_a_turn_for_long_because_of_what_somebody_wrote() {
    for landmark in [Landmark::Claim, Landmark::Round] {
        for far in [u64::MAX, u64::MAX - 1, ms(60_000).0] {
            let (board, file) = Board::create(GPU, &Settings::default()).unwrap();
            let [one, two] = [1, 2].map(|tenant| board.sit(take(&board, tenant, 1)).unwrap());
            let mut now = ms(1_000_000);
            one.try_hold(now);
            let word = landmark.place(two.place().seat).start as u64;
            assert_eq!(rustix::io::pwrite(&file, &far.to_le_bytes(), word), Ok(8));
            let turns = (1..100).find(|_| {
                two.try_hold(now);
                now += ms(50);
                one.beat(now);
                two.beat(now);
                one.pass(now, UsedTime::new(ms(50), 1), &mut fairly) == Some(two.place())
            });
            assert!(turns.is_some_and(|turns| turns < 12), "{landmark:?} of {far}: {turns:?} turns");
        }
    }
}

#[test]
fn what_only_the_daemon_writes_can_be_written_anew_and_the_rest_stays() {
    let board = common::board();
    let (kept, lost) = (take(&board, 1, 1), take(&board, 2, 2));
    let seat = board.sit(kept).unwrap();
    let said = Condition { rung: Rung::Switch, ..Condition::default() };
    seat.say(said);
    let right = board::Occupant { pid: 5, name: b"right", ..common::occupant(6, 7) };
    assert!(board.correct(kept, &right, true));
    let (_, reading) = board.seats().next().unwrap();
    assert_eq!((reading.pid, reading.tenant, reading.name.as_str()), (5, 6, "right"));
    assert_eq!((reading.terms.weight, reading.terms.paused, reading.condition), (7, true, said));
    assert_eq!(board.sweep(|place| place == kept), 1);
    assert!(seat.is_mine() && board.sit(lost).is_err());
    assert!(!board.correct(lost, &right, false), "nobody sits there any more");
}

#[test]
fn numbers_that_mean_nothing_are_read_as_nothing_said() {
    let (board, file) = Board::create(GPU, &Settings::default()).unwrap();
    let seat = board.sit(take(&board, 1, 1)).unwrap();
    let said = Condition {
        rung: Rung::Switch,
        why: Why::Refused,
        detail: 0x56,
        daemon_lost: true,
        paused: true,
        slice: Some(Nanos(1_000)),
        slice_state: SliceState::Lengthened,
    };
    seat.say(said);
    let read = || board.seats().next().unwrap().1.condition;
    assert_eq!(read(), said);
    // Where the layout has it: behind the three lines of the header, the four of the seat's beginning and its pid.
    let place = 192 + 200;
    assert_eq!(rustix::io::pwrite(&file, &[0xee, 0xee], place), Ok(2));
    assert_eq!((read().rung, read().why, read().detail), (Rung::None, Why::Unsaid, 0x56));
}

#[test]
fn every_reason_has_a_name_and_a_sentence() {
    for why in Why::ALL {
        assert!(!why.name().contains(' ') && why.sentence().contains(' '), "{why:?}");
    }
    for rung in Rung::ALL {
        assert!(!rung.name().contains(' ') && rung.sentence().contains(' '), "{rung:?}");
    }
}

#[test]
fn a_text_is_cut_and_made_printable() {
    let board = common::board();
    let name = [b'x'; 100];
    let mut occupant = common::occupant(1, 1);
    (occupant.name, occupant.program) = (&name, b"a\x1b[2J\xff\nb");
    board.take(&occupant).unwrap();
    let (_, reading) = board.seats().next().unwrap();
    assert_eq!(reading.name, "x".repeat(64));
    assert_eq!(reading.program, "a\u{fffd}[2J\u{fffd}\u{fffd}b");
}

#[test]
fn a_seat_that_somebody_freed_does_not_keep_the_token_for_its_next_occupant() {
    let (board, file) = Board::create(GPU, &Settings::default()).unwrap();
    let first = board.sit(take(&board, 1, 1)).unwrap();
    assert!(matches!(first.try_hold(ms(10)), board::Turn::Mine { .. }));
    // One store: the standing of the first seat, without its flags.
    let standing = u64::from(first.place().generation) << 32;
    assert_eq!(rustix::io::pwrite(&file, &standing.to_le_bytes(), 192), Ok(8));
    assert!(!first.is_mine());
    let next = board.sit(take(&board, 2, 1)).unwrap();
    assert_eq!((next.place().seat, next.holds()), (first.place().seat, None));
    assert_eq!(board.token(), None);
}
