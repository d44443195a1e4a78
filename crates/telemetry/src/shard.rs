//! In which of several places a thread writes.
//!
//! Where many threads change one word, its line goes back and forth between processors, which takes longer than the change.
//! So what every launch changes is there several times, and threads that run at the same time seldom meet.
//!
//! Threads are given their places in turn, so that as many as there are places have one each. The thread pointer tells
//! threads apart and costs one instruction, where a thread-local variable of a loaded library costs a call; which place goes
//! with it stands in a small table. A hash of the pointer alone would do badly: stacks lie at equal distances, and with those
//! of eight megabytes eight threads met in four of sixteen places.
//!
//! Any place is right for any thread at any time; to have one of its own is only faster. So nothing here waits or is undone:
//! whoever has ended leaves its line of the table to the next thread on the same stack, and who finds no line goes by a hash.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How many places there are.
pub(crate) const SHARDS: usize = 16;

/// Lines of the table, and how many of them are looked at.
const LINES: usize = 256;
const NEAR: usize = 8;

/// The place is kept where a thread pointer has zeros.
const PLACE: u64 = SHARDS as u64 - 1;

struct Places {
    /// Thread pointers, each with a place. Zero: free.
    lines: [AtomicU64; LINES],
    /// How many were given.
    given: AtomicUsize,
}

static PLACES: Places = Places::new();

/// The place of this thread.
#[inline]
pub(crate) fn of_this_thread() -> usize {
    PLACES.of(thread_pointer())
}

impl Places {
    const fn new() -> Places {
        Places { lines: [const { AtomicU64::new(0) }; LINES], given: AtomicUsize::new(0) }
    }

    #[inline]
    fn of(&self, pointer: u64) -> usize {
        let first = spread(pointer);
        let line = self.lines[first].load(Ordering::Relaxed);
        if line & !PLACE == pointer { (line & PLACE) as usize } else { self.search(pointer, first) }
    }

    #[cold]
    fn search(&self, pointer: u64, first: usize) -> usize {
        let by_hash = first % SHARDS;
        if pointer & PLACE != 0 {
            return by_hash;
        }
        for step in 0..NEAR {
            let place = &self.lines[(first + step) % LINES];
            let line = place.load(Ordering::Relaxed);
            if line & !PLACE == pointer {
                return (line & PLACE) as usize;
            }
            if line == 0 {
                return self.give(place, pointer).unwrap_or(by_hash);
            }
        }
        by_hash
    }

    /// Takes a line for this thread. `None`: another thread was faster; the next time one is looked for again.
    fn give(&self, line: &AtomicU64, pointer: u64) -> Option<usize> {
        let given = self.given.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let taken =
            line.compare_exchange(0, pointer | given as u64, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        taken.then_some(given)
    }
}

#[inline]
fn spread(pointer: u64) -> usize {
    (pointer.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - LINES.ilog2())) as usize
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: the first word behind fs is the thread control block's own address, by the ABI of this system.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly, pure))
    };
    pointer
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: reads a register that every thread has.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, preserves_flags))
    };
    pointer
}

const _: () = assert!(SHARDS.is_power_of_two() && LINES.is_power_of_two());

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Stacks with the pages that guard them, as C libraries make them.
    #[test]
    fn threads_have_places_of_their_own_whatever_their_stacks() {
        for stack in [64 << 10, 256 << 10, 1 << 20, 2 << 20, 8 << 20, 16 << 20, 64 << 20] {
            for guard in [0, 0x1000, 0x2000, 0x10000] {
                let places = Places::new();
                let pointers =
                    || (0..SHARDS as u64).map(|thread| 0x7f12_3456_76c0 - thread * (stack + guard));
                let given: Vec<usize> = pointers().map(|pointer| places.of(pointer)).collect();
                let different: BTreeSet<usize> = given.iter().copied().collect();
                assert_eq!(different.len(), SHARDS, "{stack} and {guard}");
                assert!(pointers().map(|pointer| places.of(pointer)).eq(given), "a thread stays where it is");
            }
        }
    }

    #[test]
    fn more_threads_than_lines_have_places_too() {
        let places = Places::new();
        let count = |threads: u64| {
            let each = (1..=threads).map(|thread| places.of(thread << 12));
            each.fold([0; SHARDS], |mut counts, place| {
                counts[place] += 1;
                counts
            })
        };
        assert!(count(4 * LINES as u64).iter().all(|&threads| threads > 0));
    }

    #[test]
    fn this_thread_has_one_place() {
        let here = of_this_thread();
        assert!(here < SHARDS && (0..100).all(|_| of_this_thread() == here));
    }

    proptest! {
        #[test]
        fn any_pointer_has_a_place(pointers: Vec<u64>) {
            let places = Places::new();
            prop_assert!(pointers.iter().all(|&pointer| places.of(pointer) < SHARDS));
        }
    }
}
