//! The standing of a seat: who sits there, and whether it wants the token, in one word.
//!
//! The generation is the upper half, and changes with every occupant. Because it is in the same word, no change made in
//! the name of one occupant can fall upon the next: it is a compare-and-exchange, and the next one's word differs.

use crate::sync::{AtomicU64, Ordering, fence};

/// A standing, read once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing(u64);

const TAKEN: u64 = 1;
const WANTS: u64 = 2;
/// Being made ready for the next occupant, by the daemon.
const RESERVED: u64 = 4;

impl Standing {
    pub(crate) fn of(word: &AtomicU64) -> Standing {
        // SYNC(board-seat): pairs with `publish`; SYNC(token-want): pairs with `set_wants`.
        Standing(word.load(Ordering::Acquire))
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(crate) fn is_taken(self) -> bool {
        self.0 & TAKEN != 0
    }

    pub(crate) fn wants(self) -> bool {
        self.is_taken() && self.0 & WANTS != 0
    }

    pub(crate) fn is(self, generation: u32) -> bool {
        self.is_taken() && self.generation() == generation
    }

    pub(crate) fn is_free(self) -> bool {
        self.0 & (TAKEN | RESERVED) == 0
    }
}

fn pack(generation: u32, flags: u64) -> u64 {
    u64::from(generation) << 32 | flags
}

/// Takes a free seat out of everybody's sight. The generation of the next occupant, or `None` when it is not free.
pub(crate) fn reserve(word: &AtomicU64) -> Option<u32> {
    let now = Standing::of(word);
    if !now.is_free() {
        return None;
    }
    // Nought is the generation of a seat that nobody ever had.
    let next = now.generation().wrapping_add(1).max(1);
    let reserved = pack(next, RESERVED);
    word.compare_exchange(now.0, reserved, Ordering::Acquire, Ordering::Relaxed).ok()?;
    // SYNC(board-seat-again): pairs with the fence of a reader. Who reads anything that is written about the next occupant
    // finds this generation when it looks again.
    fence(Ordering::Release);
    Some(next)
}

/// Shows a reserved seat, with everything that was written about its occupant.
pub(crate) fn publish(word: &AtomicU64, generation: u32) {
    // SYNC(board-seat): pairs with every reader of the standing.
    word.store(pack(generation, TAKEN), Ordering::Release);
}

/// Ends an occupation; `false` when it was over already.
pub(crate) fn vacate(word: &AtomicU64, generation: u32) -> bool {
    let flags = |now: Standing| now.is(generation).then_some(0);
    change(word, flags).is_some()
}

/// Ends whatever is written there, for a seat that the daemon gave to nobody.
pub(crate) fn clear(word: &AtomicU64) {
    let now = Standing::of(word);
    word.store(pack(now.generation(), 0), Ordering::Release);
}

/// Says that the occupant wants the token, or no longer. `None` when the seat is not its; otherwise whether it is news.
pub(crate) fn set_wants(word: &AtomicU64, generation: u32, wants: bool) -> Option<bool> {
    let flags = if wants { TAKEN | WANTS } else { TAKEN };
    // SYNC(token-want): since when it wants, and its virtual time, were written before.
    let before = change(word, |now| now.is(generation).then_some(flags))?;
    Some(before.wants() != wants)
}

/// Changes the flags of a standing as long as its generation allows; what it was before. Others change a standing once in a
/// while; only one that is attacked changes this often, and then we give up.
fn change(word: &AtomicU64, flags: impl Fn(Standing) -> Option<u64>) -> Option<Standing> {
    let mut now = Standing(word.load(Ordering::Relaxed));
    for _ in 0..TRIES {
        let next = pack(now.generation(), flags(now)?);
        match word.compare_exchange(now.0, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return Some(now),
            Err(other) => now = Standing(other),
        }
    }
    None
}

const TRIES: usize = 1_000;
