//! The atomics of the protocol, and sleeping on one.
//!
//! In the product these are the processor's atomics and the kernel's futex. In the crate's own tests under `--cfg loom`
//! they are those of a model checker, which tries every order of events that the memory model allows. Only the words by
//! which seats agree come from here; counters and texts are plain atomics in both.

#[cfg(all(test, loom))]
pub(crate) use modelled::*;
#[cfg(not(all(test, loom)))]
pub(crate) use real::*;

#[cfg(not(all(test, loom)))]
mod real {
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use std::thread::yield_now;

    use model::Nanos;
    use rustix::thread::futex;

    /// Where sleepers lie: in the kernel, by the address of the word, so there is nothing to keep.
    #[repr(C)]
    pub(crate) struct Dormitory;

    impl Dormitory {
        /// Sleeps while the word is `seen`, for so long at most. Wakes for no reason too.
        pub(crate) fn sleep(&self, word: &AtomicU32, seen: u32, at_most: Nanos) {
            let whole = i64::try_from(at_most.0 / 1_000_000_000).unwrap_or(i64::MAX);
            let rest = i64::try_from(at_most.0 % 1_000_000_000).expect("less than a second");
            let timeout = futex::Timespec { tv_sec: whole, tv_nsec: rest };
            // The outcomes (woken, changed, too late, a signal) all mean: look again.
            let _ = futex::wait(word, futex::Flags::empty(), seen, Some(&timeout));
        }

        pub(crate) fn wake(&self, word: &AtomicU32) {
            // There is no failure that the waker could do anything about.
            let _ = futex::wake(word, futex::Flags::empty(), i32::MAX.unsigned_abs());
        }
    }
}

#[cfg(all(test, loom))]
mod modelled {
    use std::sync::atomic::{AtomicBool, Ordering as Plain};

    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
    use loom::sync::{Condvar, Mutex};
    pub(crate) use loom::thread::yield_now;
    use model::Nanos;

    /// A futex as the kernel promises it: to compare and to lie down is one step. Time does not pass here, so whoever is
    /// never woken never goes on, and the checker reports it.
    pub(crate) struct Dormitory {
        beds: Mutex<()>,
        rung: Condvar,
    }

    impl Dormitory {
        pub(crate) fn new() -> Dormitory {
            Dormitory { beds: Mutex::new(()), rung: Condvar::new() }
        }

        pub(crate) fn sleep(&self, word: &AtomicU32, seen: u32, _at_most: Nanos) {
            let beds = self.beds.lock().unwrap();
            if word.load(Ordering::Relaxed) == seen {
                SLEPT.store(true, Plain::Relaxed);
                drop(self.rung.wait(beds).unwrap());
            }
        }

        pub(crate) fn wake(&self, _word: &AtomicU32) {
            let beds = self.beds.lock().unwrap();
            self.rung.notify_all();
            drop(beds);
        }
    }

    /// Whether anybody slept in any of the tries: a model in which nobody does proves nothing about wake-ups.
    pub(crate) static SLEPT: AtomicBool = AtomicBool::new(false);
}
