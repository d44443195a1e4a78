//! A lock that nobody waits for without a bound.
//!
//! What it guards is short: no call of the driver is made under it but the opening itself, and what must come into a
//! stream in the order in which it is written down (`guard`). Who cannot have it in time does without: a call is then
//! forwarded and not counted, which is better than a program that hangs.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use rustix::thread::futex;
use rustix::time::Timespec;

/// Free, held, or held with somebody waiting.
pub struct Lock {
    state: AtomicU32,
    /// The thread that holds it, to see when one asks for what it has.
    owner: AtomicUsize,
}

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// The longest wait, in steps of a second.
const SECONDS: u32 = 10;

pub struct Held<'a>(&'a Lock);

impl Lock {
    pub const fn new() -> Lock {
        Lock { state: AtomicU32::new(FREE), owner: AtomicUsize::new(0) }
    }

    /// `None` when this thread has it already, or somebody else for too long.
    pub fn acquire(&self) -> Option<Held<'_>> {
        let own = thread();
        // SYNC(lock): pairs with the release in `Held::drop`.
        if self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            if self.owner.load(Ordering::Relaxed) == own {
                return None;
            }
            self.wait()?;
        }
        self.owner.store(own, Ordering::Relaxed);
        Some(Held(self))
    }

    fn wait(&self) -> Option<()> {
        let step = Timespec { tv_sec: 1, tv_nsec: 0 };
        let mut timeouts = 0;
        // SYNC(lock): pairs with the release in `Held::drop`.
        while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
            let woken = futex::wait(&self.state, futex::Flags::PRIVATE, CONTENDED, Some(&step));
            if woken == Err(rustix::io::Errno::TIMEDOUT) {
                timeouts += 1;
                if timeouts == SECONDS {
                    return None;
                }
            }
        }
        Some(())
    }

    /// In the child of a fork, where the thread that held it does not exist.
    pub fn reset(&self) {
        self.owner.store(0, Ordering::Relaxed);
        self.state.store(FREE, Ordering::Relaxed);
    }
}

/// A number that no other thread of this process ever had. The kernel's own number would cost a system call.
#[inline]
pub fn thread() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static NUMBER: Cell<usize> = const { Cell::new(0) });
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(COUNT.fetch_add(1, Ordering::Relaxed) + 1);
        }
        number.get()
    })
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.owner.store(0, Ordering::Relaxed);
        // SYNC(lock): what was done under the lock is seen by whoever has it next.
        if self.0.state.swap(FREE, Ordering::Release) == CONTENDED {
            let _ = futex::wake(&self.0.state, futex::Flags::PRIVATE, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        static LOCK: Lock = Lock::new();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let _held = LOCK.acquire().unwrap();
                        // Two steps, so that two at a time would lose one.
                        let count = COUNT.load(Ordering::Relaxed);
                        COUNT.store(count + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(COUNT.load(Ordering::Relaxed), 8000);
    }

    #[test]
    fn who_has_it_does_not_wait_for_himself() {
        let lock = Lock::new();
        let held = lock.acquire();
        assert!(held.is_some());
        assert!(lock.acquire().is_none());
        drop(held);
        assert!(lock.acquire().is_some());
    }
}
