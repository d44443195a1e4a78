//! The tenant's half runs inside other people's programs, perhaps inside their allocator.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::CString;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use board::link::{self, Granted, Received, Registration, Reply, Request};
use board::{Board, Condition, Experience, Label, Need, Occupant, Outlook, Settings, Terms, Turn, UsedTime};
use common::{GPU, fairly, ms};
use model::Nanos;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

/// The system's allocator, counting what this thread asks of it.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it came; counting touches a constant-initialised cell only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: passed on to our caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on to our caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A daemon that seats one tenant, and ends when the tenant hangs up.
fn seat_one(listener: rustix::fd::OwnedFd) {
    let connection = rustix::net::accept(&listener).unwrap();
    let (board, file) = Board::create(GPU, &Settings::default()).unwrap();
    let request = loop {
        match link::receive(connection.as_fd()).unwrap() {
            Received::Request(Request::Register(request)) => break request,
            Received::Nothing => std::thread::yield_now(),
            other => panic!("{other:?}"),
        }
    };
    let occupant = Occupant {
        name: request.name.as_bytes(),
        program: request.program.as_bytes(),
        ..common::occupant(request.tenant, request.weight)
    };
    let place = board.take(&occupant).unwrap();
    let terms = Terms { class: request.class, ..Terms::default() };
    let granted = Granted { place, terms, lowered: false, domain: model::Domain::Isolated, generation: 1 };
    link::reply(connection.as_fd(), &Reply::Granted(granted), Some(file.as_fd())).unwrap();
    while link::receive(connection.as_fd()) == Ok(Received::Nothing) {
        std::thread::yield_now();
    }
}

#[test]
fn a_tenant_registers_and_takes_its_turns_without_the_heap() {
    let folder = tempfile::tempdir().unwrap();
    let path = CString::new(folder.path().join("socket").as_os_str().as_bytes()).unwrap();
    let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::bind(&listener, &SocketAddrUnix::new(path.as_c_str()).unwrap()).unwrap();
    rustix::net::listen(&listener, 1).unwrap();
    let daemon = std::thread::spawn(move || seat_one(listener));

    let before = ALLOCATIONS.get();
    assert!(before > 0, "the test itself must be counted");
    let registration = Registration { name: Label::new(b"train"), ..Registration::new(GPU, 7) };
    let (connection, board, granted) = link::register(&path, &registration, None, ms(10_000)).unwrap();
    let seat = board.sit(granted.place).unwrap();
    for _ in 0..3 {
        let (now, seen) = (board::now(), seat.bell());
        seat.beat(now);
        assert!(matches!(seat.try_hold(now), Turn::Mine { .. }));
        assert!(!seat.others_want() && seat.holds().is_some());
        seat.wait(seen, Nanos(1));
        seat.ring();
        assert_eq!(
            seat.pass(now, UsedTime::new(ms(1), seat.terms().weight), &mut fairly),
            Some(seat.place())
        );
        assert_eq!(seat.leave(now, UsedTime::new(ms(1), seat.terms().weight), &mut fairly), None);
        seat.activate(now);
        seat.wake_unsuspecting();
        seat.deactivate(now, now);
        seat.publish_stop_word([1; 64], 0);
        assert!(board.stop_words().all(|word| seat.say_raises(&word)) && seat.latency_seats_raise());
        seat.say_stopped(true);
        assert!(!board.latency_active(board::now()) && board.domain() == model::Domain::Isolated);
        seat.say_stopped(false);
        seat.forget_stop_word();
        seat.say(Condition::default());
        seat.say_outlook(Outlook::default());
        seat.say_experience(Experience::default());
        seat.say_need(Need { wants: true, ..Need::default() }, now);
        seat.say_decision(2, ms(1));
        seat.advance(ms(1));
        assert_eq!((board.latency_tenants(now).count(), board.best_effort_tenants(now).count()), (0, 1));
        assert_eq!(board.dials(), model::Dials::default());
        seat.tally().submissions.add(1);
        seat.tally().wait_times.record(ms(1));
        let _ = (seat.terms(), seat.is_mine(), board.latency_busy(now), board.token(), board.settings());
        seat.unwant();
    }
    assert_eq!(ALLOCATIONS.get(), before);
    drop(connection);
    daemon.join().unwrap();
}
