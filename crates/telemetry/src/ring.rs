//! A ring of slots that any thread writes and nobody waits for.
//!
//! A writer takes the next number, and with it a slot. The slot's *stamp* says whose it is: odd while the words of that
//! number are being written, the next even number when they are complete. Stamps of a slot only grow. So a reader who
//! finds the same even stamp before and after the words, and the one it expects, has the words of that number; anything
//! else is an event that is not there yet, or not there any more.
//!
//! Who was asleep for a whole round between taking a number and writing finds the slot in newer hands, and drops its
//! event. Who finds somebody asleep *in* the slot drops its own: to write there together would make a slot of two halves.
//! Either is seen by the reader as a number that never comes.

use crate::sync::{AtomicU64, Ordering, fence};

/// The words of an event behind its stamp.
pub(crate) type Words = [u64; 3];

#[repr(C, align(32))]
pub(crate) struct Slot {
    stamp: AtomicU64,
    words: [AtomicU64; 3],
}

#[repr(C)]
pub(crate) struct Ring<const N: usize> {
    pub head: Head,
    pub slots: Slots<N>,
}

/// How many numbers were taken. On lines of its own: every writer changes it, and processors fetch lines in pairs.
#[repr(C, align(128))]
pub(crate) struct Head(pub AtomicU64);

#[repr(C)]
pub(crate) struct Slots<const N: usize>(pub [Slot; N]);

/// The stamp of a slot whose words of this number are complete.
pub(crate) fn done(number: u64) -> u64 {
    number.wrapping_mul(2).wrapping_add(2)
}

/// And while they are being written.
fn open(number: u64) -> u64 {
    done(number).wrapping_sub(1)
}

/// What a reader has found in the slot of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Complete(Words),
    /// It may still come.
    NotYet,
    /// A later one is there.
    Gone,
}

#[cfg(test)]
impl Found {
    pub fn complete(self) -> Option<Words> {
        match self {
            Found::Complete(words) => Some(words),
            Found::NotYet | Found::Gone => None,
        }
    }
}

/// What the words are that were read between two looks at the stamp.
pub(crate) fn judge(number: u64, before: u64, words: Words, after: u64) -> Found {
    match done(number) {
        done if before == done && after == done => Found::Complete(words),
        done if before > done || after > done => Found::Gone,
        _ => Found::NotYet,
    }
}

impl<const N: usize> Ring<N> {
    #[inline]
    pub fn write(&self, words: Words) {
        let number = self.head.0.fetch_add(1, Ordering::Relaxed);
        self.slots.fill(number, words);
    }
}

impl<const N: usize> Slots<N> {
    /// Writes the words of a number that was taken.
    #[inline]
    pub fn fill(&self, number: u64, words: Words) {
        let slot = &self.0[number as usize % N];
        let found = slot.stamp.load(Ordering::Relaxed);
        if found % 2 == 1 || found >= open(number) {
            return;
        }
        // SYNC(event-done): whoever opens a slot has the words of its last writer behind them, so that none of those can
        // come after ours.
        let opened =
            slot.stamp.compare_exchange(found, open(number), Ordering::Acquire, Ordering::Relaxed).is_ok();
        if !opened {
            return;
        }
        // SYNC(event-open): whoever sees one of our words sees, when it looks again, that the slot was opened.
        fence(Ordering::Release);
        for (place, word) in slot.words.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        // SYNC(event-done): whoever sees the stamp sees the words.
        slot.stamp.store(done(number), Ordering::Release);
    }

    /// As a reader in the same memory reads it. Readers of files do the same with three reads of the file.
    #[cfg(test)]
    pub fn read(&self, number: u64) -> Found {
        let slot = &self.0[number as usize % N];
        // SYNC(event-done): pairs with the store at the end of `fill`.
        let before = slot.stamp.load(Ordering::Acquire);
        let words = std::array::from_fn(|at| slot.words[at].load(Ordering::Relaxed));
        // SYNC(event-open): pairs with the fence in `fill`.
        fence(Ordering::Acquire);
        judge(number, before, words, slot.stamp.load(Ordering::Relaxed))
    }
}

/// In the model checker an atomic has to be made; elsewhere zeros are an empty ring.
#[cfg(test)]
pub(crate) fn empty<const N: usize>() -> Ring<N> {
    let slot = |_| Slot { stamp: AtomicU64::new(0), words: std::array::from_fn(|_| AtomicU64::new(0)) };
    Ring { head: Head(AtomicU64::new(0)), slots: Slots(std::array::from_fn(slot)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Words that tell which number they are of, and that they belong together.
    fn of(number: u64) -> Words {
        [number, number ^ 0x5555, number.wrapping_mul(3)]
    }

    #[test]
    fn the_newest_win() {
        let ring = empty::<4>();
        (0..7).for_each(|number| ring.write(of(number)));
        assert!((0..3).all(|number| ring.slots.read(number) == Found::Gone));
        assert!((3..7).all(|number| ring.slots.read(number) == Found::Complete(of(number))));
        assert_eq!(ring.slots.read(7), Found::NotYet);
    }

    #[test]
    fn who_is_a_round_late_writes_nothing() {
        let ring = empty::<4>();
        ring.slots.fill(4, of(4));
        ring.slots.fill(0, of(0));
        assert_eq!((ring.slots.read(0), ring.slots.read(4)), (Found::Gone, Found::Complete(of(4))));
    }

    #[test]
    fn a_slot_with_a_sleeper_in_it_is_left_alone() {
        let ring = empty::<4>();
        ring.slots.0[0].stamp.store(open(0), Ordering::Relaxed);
        ring.slots.fill(4, of(4));
        assert_eq!((ring.slots.read(0), ring.slots.read(4)), (Found::NotYet, Found::NotYet));
        // The sleeper wakes and completes what it began.
        ring.slots.0[0].stamp.store(done(0), Ordering::Relaxed);
        ring.slots.fill(8, of(8));
        assert_eq!((ring.slots.read(4), ring.slots.read(8)), (Found::Gone, Found::Complete(of(8))));
    }

    #[test]
    fn threads_that_write_together_leave_whole_events() {
        let ring = empty::<8>();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let number = ring.head.0.fetch_add(1, Ordering::Relaxed);
                        ring.slots.fill(number, of(number));
                    }
                });
            }
            scope.spawn(|| {
                while ring.head.0.load(Ordering::Relaxed) < 80_000 {
                    let head = ring.head.0.load(Ordering::Relaxed);
                    for number in head.saturating_sub(8)..head {
                        if let Found::Complete(words) = ring.slots.read(number) {
                            assert_eq!(words, of(number));
                        }
                    }
                }
            });
        });
        let whole = (79_992..80_000).filter(|&number| ring.slots.read(number) == Found::Complete(of(number)));
        assert!(whole.count() > 0);
    }

    proptest! {
        /// Whatever order numbers are filled in, a slot holds the newest of them, whole.
        #[test]
        fn a_slot_holds_its_newest_number(numbers in proptest::collection::vec(0u64..40, 1..60)) {
            let ring = empty::<8>();
            numbers.iter().for_each(|&number| ring.slots.fill(number, of(number)));
            for number in 0..40 {
                let newest = numbers.iter().copied().filter(|other| other % 8 == number % 8).max();
                let expected = match newest {
                    Some(newest) if newest == number => Found::Complete(of(number)),
                    Some(newest) if newest > number => Found::Gone,
                    _ => Found::NotYet,
                };
                prop_assert_eq!(ring.slots.read(number), expected);
            }
        }

        /// No stamps can make a reader take what it did not ask for.
        #[test]
        fn words_count_only_between_two_right_stamps(number: u64, before: u64, after: u64) {
            let found = judge(number, before, [1, 2, 3], after);
            prop_assert_eq!(found == Found::Complete([1, 2, 3]), before == done(number) && after == before);
        }
    }
}
