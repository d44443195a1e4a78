//! Where a best-effort tenant's stop word is, for latency tenants that write it themselves.
//!
//! The word lies in device memory of the best-effort process. It is known to others by a handle of CUDA's interprocess
//! memory and an offset, which are more than one word of the board, and half of a handle would be that of nobody knows
//! what. So they are numbered: an even number that is not nought stands for what is written, an odd one for nothing; the
//! writer goes through an odd number, and a reader that does not find the same even number before and after has read
//! nothing. Nobody waits for the other.

use crate::board::Place;
use crate::sync::{AtomicU64, Ordering, fence};

#[cfg(not(all(test, loom)))]
const HANDLE_WORDS: usize = 8;
/// The checker tries all orders of these; with two there are halves.
#[cfg(all(test, loom))]
const HANDLE_WORDS: usize = 2;

/// The bytes of a handle of CUDA's interprocess memory.
pub const HANDLE_BYTES: usize = HANDLE_WORDS * 8;

/// A stop word that can be opened by other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopWord {
    /// Whose it is.
    pub place: Place,
    /// Another one for every word that was ever published from that seat.
    pub number: u64,
    /// The allocation in which the word lies,
    pub handle: [u8; HANDLE_BYTES],
    /// and where in it, in bytes.
    pub offset: u64,
}

#[repr(C)]
pub(crate) struct Published {
    number: AtomicU64,
    offset: AtomicU64,
    handle: [AtomicU64; HANDLE_WORDS],
}

impl Published {
    /// The number of what is published; `None` when nothing is.
    pub(crate) fn number(&self) -> Option<u64> {
        // SYNC(stop-word): pairs with `publish`.
        let number = self.number.load(Ordering::Acquire);
        (number != 0 && number.is_multiple_of(2)).then_some(number)
    }

    /// Only the occupant of the seat, or whoever makes the seat ready, writes.
    pub(crate) fn publish(&self, handle: &[u8; HANDLE_BYTES], offset: u64) {
        self.withdraw();
        let (words, _) = handle.as_chunks::<8>();
        for (place, word) in self.handle.iter().zip(words) {
            place.store(u64::from_le_bytes(*word), Ordering::Relaxed);
        }
        self.offset.store(offset, Ordering::Relaxed);
        let number = self.number.load(Ordering::Relaxed).wrapping_add(1).max(2);
        // SYNC(stop-word): whoever reads the number reads what it stands for.
        self.number.store(number, Ordering::Release);
    }

    /// From now on nothing is published.
    pub(crate) fn withdraw(&self) {
        let odd = self.number.load(Ordering::Relaxed).wrapping_add(1) | 1;
        self.number.store(odd, Ordering::Relaxed);
        // SYNC(stop-word-again): who reads anything that is written behind this finds the odd number when it looks again.
        fence(Ordering::Release);
    }

    /// What is published by the occupant of a place.
    pub(crate) fn read(&self, place: Place) -> Option<StopWord> {
        let number = self.number()?;
        let mut handle = [0; HANDLE_BYTES];
        for (bytes, word) in handle.chunks_exact_mut(8).zip(&self.handle) {
            bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        let offset = self.offset.load(Ordering::Relaxed);
        // SYNC(stop-word-again): pairs with `withdraw`. All loads above stay before this look.
        fence(Ordering::Acquire);
        let same = self.number.load(Ordering::Relaxed) == number;
        same.then_some(StopWord { place, number, handle, offset })
    }

    #[cfg(all(test, loom))]
    pub(crate) fn new() -> Published {
        let nought = || AtomicU64::new(0);
        Published { number: nought(), offset: nought(), handle: std::array::from_fn(|_| nought()) }
    }
}
