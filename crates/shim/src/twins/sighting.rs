//! What timed launches have shown, on its way to the smith.
//!
//! It may be a thread of the program that finds a timed launch done. That one must neither wait nor allocate: it leaves what
//! it has seen in a pigeonhole and goes on, and the smith empties them. Where none is free, what was seen is lost; it was one
//! of many.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use cuda_abi::CUdevice;
use model::{Geometry, Nanos, Rung};

use crate::frames::Frame;

/// A launch that was timed.
#[derive(Clone, Copy)]
pub struct Sighting {
    pub frame: &'static Frame,
    pub device: CUdevice,
    pub geometry: Geometry,
    pub rung: Rung,
    /// For how many launches it stands, itself among them.
    pub stands_for: u32,
    /// How long it took, how long each of its blocks, and how soon the kernel stops by all that was seen lately.
    pub launch: Nanos,
    pub block: Nanos,
    pub certificate: Nanos,
}

/// With one launch of 32 timed and the smith awake every second, enough for sixteen thousand launches in a second; the bell
/// makes it enough for more.
const HOLES: usize = 512;
/// So many are tried before something is lost.
const TRIES: usize = 4;
/// The smith is rung for when so many were used.
const RING_EVERY: u32 = HOLES as u32 / 4;

struct Hole {
    state: AtomicU8,
    what: UnsafeCell<Option<Sighting>>,
}

// SAFETY: what is in it belongs to the one thread that has brought its state to `TAKEN`.
unsafe impl Sync for Hole {}

const EMPTY: u8 = 0;
/// Some thread's, for a moment.
const TAKEN: u8 = 1;
const FULL: u8 = 2;

struct Holes {
    all: [Hole; HOLES],
    used: AtomicU32,
}

static ALL: Holes = Holes::new();

/// Leaves something for the smith. Whether it is time to wake him.
pub fn leave(sighting: Sighting) -> bool {
    ALL.leave(sighting)
}

/// Takes out all there is.
pub fn collect(take: impl FnMut(Sighting)) {
    ALL.collect(take);
}

/// In the child of a fork, where another thread may have been cut short in here. What was seen is the parent's to tell.
pub fn in_child() {
    ALL.all.iter().for_each(|hole| hole.state.store(EMPTY, Ordering::Relaxed));
}

impl Holes {
    const fn new() -> Holes {
        Holes { all: [const { Hole::new() }; HOLES], used: AtomicU32::new(0) }
    }

    fn leave(&self, sighting: Sighting) -> bool {
        let used = self.used.fetch_add(1, Ordering::Relaxed);
        for step in 0..TRIES {
            let hole = &self.all[(used as usize + step) % HOLES];
            if hole.exchange(EMPTY, |what| *what = Some(sighting), FULL).is_some() {
                break;
            }
        }
        used % RING_EVERY == RING_EVERY - 1
    }

    fn collect(&self, mut take: impl FnMut(Sighting)) {
        for hole in &self.all {
            if let Some(sighting) = hole.exchange(FULL, Option::take, EMPTY).flatten() {
                take(sighting);
            }
        }
    }
}

impl Hole {
    const fn new() -> Hole {
        Hole { state: AtomicU8::new(EMPTY), what: UnsafeCell::new(None) }
    }

    /// Does something with what is in it, if its state is as expected, and leaves it in another.
    fn exchange<T>(&self, from: u8, work: impl FnOnce(&mut Option<Sighting>) -> T, to: u8) -> Option<T> {
        // SYNC(sighting): who takes it sees what was left in it.
        self.state.compare_exchange(from, TAKEN, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // SAFETY: the state was brought to `TAKEN` here, so nobody else refers to this until it is changed below.
        let done = work(unsafe { &mut *self.what.get() });
        // SYNC(sighting): pairs with the exchange above.
        self.state.store(to, Ordering::Release);
        Some(done)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::tests::{frame, sighting};
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn what_finds_no_room_is_lost_and_the_smith_is_woken_before() {
        let (holes, gemm) = (Holes::new(), frame(7, c"gemm"));
        let rings = (0..2 * HOLES as u64).filter(|&micros| holes.leave(sighting(gemm, 1, micros))).count();
        assert_eq!(rings, 8);
        let mut times = Vec::new();
        holes.collect(|sighting| times.push(sighting.launch));
        times.sort();
        assert_eq!(times, (0..HOLES as u64).map(Nanos::from_micros).collect::<Vec<_>>());
        holes.collect(|_| panic!("they are empty"));
        holes.leave(sighting(gemm, 1, 1));
        let mut left = 0;
        holes.collect(|_| left += 1);
        assert_eq!(left, 1);
    }

    #[test]
    fn nothing_is_seen_twice_or_in_parts() {
        let (holes, gemm, done) = (Holes::new(), frame(7, c"gemm"), AtomicBool::new(false));
        let mut times = Vec::new();
        std::thread::scope(|scope| {
            let leaving: Vec<_> = (0..3)
                .map(|thread| {
                    let holes = &holes;
                    scope.spawn(move || {
                        for number in 0..2000 {
                            holes.leave(sighting(gemm, 1, 2 * (thread * 2000 + number)));
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                leaving.into_iter().for_each(|thread| thread.join().unwrap());
                done.store(true, Ordering::Release);
            });
            loop {
                let last = done.load(Ordering::Acquire);
                holes.collect(|sighting| {
                    assert_eq!(sighting.block.0 * 2, sighting.launch.0);
                    times.push(sighting.launch);
                });
                if last {
                    break;
                }
            }
        });
        let seen = times.len();
        times.sort();
        times.dedup();
        assert!(seen == times.len() && seen >= HOLES, "{seen}");
    }
}
