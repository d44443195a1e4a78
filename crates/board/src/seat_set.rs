//! A set of seats in shared memory, one bit for each.

use crate::layout::SEATS;
use crate::sync::{AtomicU64, Ordering};

const BITS: usize = 64;
const WORDS: usize = SEATS.div_ceil(BITS);

#[repr(C)]
pub(crate) struct SeatSet {
    words: [AtomicU64; WORDS],
}

impl SeatSet {
    pub(crate) fn insert(&self, seat: u16) {
        if let Some((word, bit)) = self.at(seat) {
            // SYNC(seat-set): whoever finds the seat here sees what was written before.
            word.fetch_or(bit, Ordering::AcqRel);
        }
    }

    pub(crate) fn remove(&self, seat: u16) {
        if let Some((word, bit)) = self.at(seat) {
            // SYNC(seat-set): who inserts it again sees what was written before it was removed.
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    pub(crate) fn contains(&self, seat: u16) -> bool {
        // SYNC(seat-set): pairs with `insert`.
        self.at(seat).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
    }

    pub(crate) fn clear(&self) {
        self.words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// All that are in it. An empty set costs a load for each 64 seats.
    pub(crate) fn for_each(&self, mut each: impl FnMut(usize)) {
        for (number, word) in self.words.iter().enumerate() {
            // SYNC(seat-set): pairs with `insert`.
            let mut left = word.load(Ordering::Acquire);
            while left != 0 {
                each(number * BITS + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }

    fn at(&self, seat: u16) -> Option<(&AtomicU64, u64)> {
        let seat = usize::from(seat);
        self.words.get(seat / BITS).map(|word| (word, 1 << (seat % BITS)))
    }

    #[cfg(all(test, loom))]
    pub(crate) fn new() -> SeatSet {
        SeatSet { words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}
