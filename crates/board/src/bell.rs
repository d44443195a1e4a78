//! A bell: how one seat wakes another.
//!
//! The bell is a count that goes up. A sleeper reads the count, looks whether there is anything to do, and sleeps only as
//! long as the count is what it read: what happens in between changes the count, so nothing is missed. A ringer makes its
//! news visible before it rings.
//!
//! To wake costs a system call, and mostly nobody sleeps. So sleepers say that they are about to sleep, and ringers ask.
//! Each side writes, then looks at what the other wrote, with a full fence between: at least one sees the other.

use model::Nanos;

use crate::sync::{AtomicU32, Dormitory, Ordering, fence};

#[repr(C, align(64))]
pub(crate) struct Bell {
    rung: AtomicU32,
    /// Who is about to sleep or asleep. A sleeper that was killed is still counted, which costs its ringers a system call
    /// and nothing else; the next occupant of the seat starts at nought.
    sleepers: AtomicU32,
    dormitory: Dormitory,
}

impl Bell {
    /// To be read before looking whether there is anything to do.
    pub(crate) fn count(&self) -> u32 {
        // SYNC(bell): pairs with the count going up in `ring`; whoever sees it sees the news.
        self.rung.load(Ordering::Acquire)
    }

    pub(crate) fn ring(&self) {
        // SYNC(bell): the news was written before.
        self.rung.fetch_add(1, Ordering::Release);
        // SYNC(bell-sleepers): this fence and the one in `wait`. Either we see the sleeper or it sees the count.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.dormitory.wake(&self.rung);
        }
    }

    /// Sleeps until the count is no longer `seen`, for so long at most; returns for no reason too.
    pub(crate) fn wait(&self, seen: u32, at_most: Nanos) {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // SYNC(bell-sleepers): see `ring`.
        fence(Ordering::SeqCst);
        if self.rung.load(Ordering::Relaxed) == seen {
            self.dormitory.sleep(&self.rung, seen, at_most);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// For a new occupant. Whoever sleeps here belongs to the last one, and finds out by itself.
    pub(crate) fn hang(&self) {
        self.sleepers.store(0, Ordering::Relaxed);
    }

    #[cfg(all(test, loom))]
    pub(crate) fn new() -> Bell {
        Bell { rung: AtomicU32::new(0), sleepers: AtomicU32::new(0), dormitory: Dormitory::new() }
    }
}
