//! The publication of events in a model checker.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --target-dir target/loom -p telemetry --lib models`
//!
//! Each model is a few threads doing a few steps; the checker runs it in every order that the memory model allows.

use std::sync::atomic::{AtomicU64 as PlainU64, Ordering as Plain};

use loom::sync::Arc;
use loom::thread;

use crate::ring::{Found, Ring, Words, empty};
use crate::rings::{self, Rings};
use crate::sync::Ordering;

/// Words that tell which number they are of, and that they belong together.
fn of(number: u64) -> Words {
    [number + 10, number + 20, number + 30]
}

fn write<const N: usize>(ring: &Ring<N>) {
    let number = ring.head.0.fetch_add(1, Ordering::Relaxed);
    ring.slots.fill(number, of(number));
}

fn assert_whole<const N: usize>(ring: &Ring<N>, number: u64) -> bool {
    match ring.slots.read(number) {
        Found::Complete(words) => {
            assert_eq!(words, of(number), "a slot of two halves");
            true
        }
        Found::NotYet | Found::Gone => false,
    }
}

/// The outcomes that were met in all orders together: a model that meets only one of them proves little.
struct Met(PlainU64);

impl Met {
    fn one(&self, whole: bool) {
        self.0.fetch_or(1 << u32::from(whole), Plain::Relaxed);
    }

    fn both(&self) -> bool {
        self.0.load(Plain::Relaxed) == 0b11
    }
}

/// The next event takes the slot of the last while somebody reads the one or the other. The checker begins with the order in
/// which threads are started and leaves out orders that it takes for the same, so both begin once.
fn overwritten_while_read(number: u64) {
    static MET: [Met; 2] = [const { Met(PlainU64::new(0)) }; 2];
    let met = &MET[number as usize];
    for reader_first in [true, false] {
        loom::model(move || {
            let ring = Arc::new(empty::<1>());
            write(&ring);
            let other = Arc::clone(&ring);
            let read = move |ring: &Ring<1>| met.one(assert_whole(ring, number));
            let thread = thread::spawn(move || if reader_first { write(&other) } else { read(&other) });
            if reader_first {
                read(&ring)
            } else {
                write(&ring)
            }
            thread.join().unwrap();
            assert_eq!((ring.slots.read(0), ring.slots.read(1)), (Found::Gone, Found::Complete(of(1))));
        });
    }
    assert!(met.both(), "the reader was early in some order, and late in another");
}

#[test]
fn who_reads_the_old_event_has_all_of_it_or_nothing() {
    overwritten_while_read(0);
}

#[test]
fn who_reads_the_new_event_has_all_of_it_or_nothing() {
    overwritten_while_read(1);
}

/// Two writers meet in one slot, a round apart. The older one was in it when the newer came, or the newer one is there.
#[test]
fn writers_a_round_apart_do_not_mix() {
    static MET: Met = Met(PlainU64::new(0));
    loom::model(|| {
        let ring = Arc::new(empty::<1>());
        let other = Arc::clone(&ring);
        let writer = thread::spawn(move || write(&other));
        write(&ring);
        writer.join().unwrap();
        let [old, new] = [0, 1].map(|number| assert_whole(&ring, number));
        assert!(old != new);
        MET.one(new);
    });
    assert!(MET.both());
}

/// In different slots nobody disturbs anybody.
#[test]
fn writers_in_slots_of_their_own_lose_nothing() {
    loom::model(|| {
        let ring = Arc::new(empty::<2>());
        let other = Arc::clone(&ring);
        let writer = thread::spawn(move || write(&other));
        write(&ring);
        writer.join().unwrap();
        assert!(assert_whole(&ring, 0) && assert_whole(&ring, 1));
    });
}

/// Two threads write, each at a desk. Whatever they do with rings meanwhile, both events are there in the end, and the desks
/// have rings of their own.
fn write_at_desks<const DESKS: usize, const RINGS: usize, const N: usize>() {
    loom::model(|| {
        let rings: Arc<Rings<DESKS, RINGS, N>> = Arc::new(rings::empty());
        let other = Arc::clone(&rings);
        let writer = thread::spawn(move || other.write(1, of(1)));
        rings.write(0, of(0));
        writer.join().unwrap();
        let mut complete = rings.complete();
        complete.sort();
        assert_eq!(complete, [of(0), of(1)]);
        assert!(rings.is_in_order());
    });
}

#[test]
fn who_begins_at_one_desk_with_another_loses_nothing() {
    write_at_desks::<1, 2, 2>();
}

/// A ring of one slot is full with each event.
#[test]
fn desks_that_exchange_their_rings_lose_nothing() {
    write_at_desks::<2, 5, 1>();
}
