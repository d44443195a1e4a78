//! Many rings, so that threads that write at the same time seldom meet.
//!
//! Whoever writes changes the head of a ring, and a head that two processors change goes back and forth between them, which
//! takes longer than all the rest of writing. So a thread writes at a *desk*, of which there are several, and every desk has
//! a ring in hand that no other has. When it has gone round that ring once it puts it back, and takes the one that was put
//! back the longest time ago.
//!
//! A ring of its own for every desk would be less: then a program that launches from one thread, as most do, would remember
//! only the share of one desk. As it is, what is not in anybody's hand is for whoever needs it, and a desk where nobody
//! writes keeps one ring from the others, no more.
//!
//! Nothing that must hold depends on desks. A ring bears any number of writers (`ring`), so that it does no harm when a
//! thread that was asleep writes into a ring that its desk has put back. A reader reads all rings, and need not know of desks.

use crate::ring::{Head, Slots, Words};
use crate::sync::{AtomicU64, Ordering};

#[repr(C, align(128))]
pub(crate) struct Rings<const DESKS: usize, const RINGS: usize, const N: usize> {
    desks: [Desk; DESKS],
    shelf: Shelf<RINGS>,
    /// Beside each other, so that a reader has them all at once.
    pub heads: [Head; RINGS],
    pub slots: [Slots<N>; RINGS],
}

/// The ring that a desk has in hand, counted from one; zero: none. A number that is no ring's is none too: who can write the
/// file can write it.
#[repr(C, align(128))]
struct Desk(AtomicU64);

/// Where rings are that no desk has.
#[repr(C, align(128))]
struct Shelf<const RINGS: usize> {
    /// In the low half a bit for each ring that is in hand. In the high half how often one was put back, so that who takes
    /// one has chosen among those that are there.
    state: AtomicU64,
    /// What that count was when this one was put back.
    put_back: [AtomicU64; RINGS],
}

impl<const DESKS: usize, const RINGS: usize, const N: usize> Rings<DESKS, RINGS, N> {
    /// Writes at a desk.
    #[inline]
    pub fn write(&self, desk: usize, words: Words) {
        const { assert!(DESKS < RINGS && RINGS <= u32::BITS as usize) };
        let desk = &self.desks[desk % DESKS];
        let word = desk.0.load(Ordering::Relaxed);
        let ring = place::<RINGS>(word).unwrap_or_else(|| self.exchange(desk, word));
        let number = self.heads[ring].0.fetch_add(1, Ordering::Relaxed);
        self.slots[ring].fill(number, words);
        if number % N as u64 == N as u64 - 1 {
            self.exchange(desk, word_of(ring));
        }
    }

    /// Takes another ring in place of the one that was seen at a desk, and says which the desk has then.
    #[cold]
    fn exchange(&self, desk: &Desk, seen: u64) -> usize {
        // Nothing is free only where many threads begin at once. They go on with what there is.
        let Some(taken) = self.shelf.take() else { return place::<RINGS>(seen).unwrap_or(0) };
        match desk.0.compare_exchange(seen, word_of(taken), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                place::<RINGS>(seen).inspect(|&full| self.shelf.put_back(full));
                taken
            }
            // Another thread was faster at this desk.
            Err(there) => {
                self.shelf.give_up(taken);
                place::<RINGS>(there).unwrap_or(taken)
            }
        }
    }
}

impl<const RINGS: usize> Shelf<RINGS> {
    /// The ring that has lain here longest. Several may want it at once; each of them gets another.
    fn take(&self) -> Option<usize> {
        (0..RINGS).find_map(|_| {
            // SYNC(ring-back): whoever sees that a ring lies here sees since when.
            let state = self.state.load(Ordering::Acquire);
            let age =
                |&ring: &usize| count(state).wrapping_sub(self.put_back[ring].load(Ordering::Relaxed) as u32);
            let ring = (0..RINGS).filter(|ring| state & 1 << ring == 0).max_by_key(age)?;
            let taken = state | 1 << ring;
            self.state.compare_exchange(state, taken, Ordering::Relaxed, Ordering::Relaxed).ok().map(|_| ring)
        })
    }

    /// A ring that was written to its end.
    fn put_back(&self, ring: usize) {
        let now = count(self.state.load(Ordering::Relaxed)).wrapping_add(1);
        self.put_back[ring].store(now.into(), Ordering::Relaxed);
        // SYNC(ring-back): pairs with the load in `take`. The bit is set, and taken away together with the count's step.
        self.state.fetch_add((1 << 32) - (1 << ring), Ordering::Release);
    }

    /// A ring into which nothing was written: it is as old as it was.
    fn give_up(&self, ring: usize) {
        self.state.fetch_and(!(1 << ring), Ordering::Relaxed);
    }
}

/// How often a ring was put back, by the state of a shelf.
fn count(state: u64) -> u32 {
    (state >> 32) as u32
}

/// The ring that the word of a desk means.
#[inline]
fn place<const RINGS: usize>(word: u64) -> Option<usize> {
    Some((word as usize).wrapping_sub(1)).filter(|&ring| ring < RINGS)
}

fn word_of(ring: usize) -> u64 {
    ring as u64 + 1
}

/// In the model checker an atomic has to be made; elsewhere zeros are empty rings.
#[cfg(test)]
pub(crate) fn empty<const DESKS: usize, const RINGS: usize, const N: usize>() -> Rings<DESKS, RINGS, N> {
    Rings {
        desks: std::array::from_fn(|_| Desk(AtomicU64::new(0))),
        shelf: Shelf { state: AtomicU64::new(0), put_back: std::array::from_fn(|_| AtomicU64::new(0)) },
        heads: std::array::from_fn(|_| Head(AtomicU64::new(0))),
        slots: std::array::from_fn(|_| crate::ring::empty().slots),
    }
}

#[cfg(test)]
impl<const DESKS: usize, const RINGS: usize, const N: usize> Rings<DESKS, RINGS, N> {
    /// All that is there, ring by ring.
    pub fn complete(&self) -> Vec<Words> {
        let of_ring = |(head, slots): (&Head, &Slots<N>)| {
            let head = head.0.load(Ordering::Relaxed);
            let numbers = head.saturating_sub(N as u64)..head;
            numbers.filter_map(|number| slots.read(number).complete()).collect::<Vec<_>>()
        };
        self.heads.iter().zip(&self.slots).flat_map(of_ring).collect()
    }

    /// Whether no two desks have the same ring, and the shelf knows which are in hand.
    pub fn is_in_order(&self) -> bool {
        let held = self.desks.iter().filter_map(|desk| place::<RINGS>(desk.0.load(Ordering::Relaxed)));
        let sum: u64 = held.map(|ring| 1 << ring).sum();
        sum == self.shelf.state.load(Ordering::Relaxed) & u64::from(u32::MAX)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn of(time: u64) -> Words {
        [time, time ^ 0x5555, time.wrapping_mul(3)]
    }

    fn times(rings: &Rings<3, 6, 4>) -> BTreeSet<u64> {
        let complete = rings.complete();
        assert!(complete.iter().all(|&words| words == of(words[0])));
        complete.iter().map(|words| words[0]).collect()
    }

    #[test]
    fn who_writes_alone_has_all_rings() {
        let rings = empty::<3, 6, 4>();
        (0..100).for_each(|time| rings.write(1, of(time)));
        assert_eq!(times(&rings), (100 - 24..100).collect());
    }

    #[test]
    fn what_a_quiet_desk_has_written_stays_and_the_other_has_the_rest() {
        let rings = empty::<3, 6, 4>();
        (0..3).for_each(|desk| rings.write(desk, of(desk as u64)));
        (3..102).for_each(|time| rings.write(0, of(time)));
        let expected = [1, 2].into_iter().chain(102 - 16..102);
        assert_eq!(times(&rings), expected.collect());
    }

    #[test]
    fn threads_at_all_desks_leave_whole_events_and_order() {
        let rings = empty::<3, 6, 4>();
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let rings = &rings;
                scope.spawn(move || (0..20_000).for_each(|time| rings.write(thread, of(time))));
            }
        });
        assert!(!times(&rings).is_empty());
        assert_eq!(rings.heads.iter().map(|head| head.0.load(Ordering::Relaxed)).sum::<u64>(), 120_000);
        assert!(rings.is_in_order());
    }

    proptest! {
        /// Whoever writes when: a desk has a ring of its own, and what was written last is there. Three rings lie on the shelf,
        /// and the one that was put back last is taken last: by then two others were written to their ends.
        #[test]
        fn what_was_written_last_is_there(desks in proptest::collection::vec(0usize..3, 1..200)) {
            let rings = empty::<3, 6, 4>();
            for (time, &desk) in desks.iter().enumerate() {
                rings.write(desk, of(time as u64));
                prop_assert!(rings.is_in_order());
            }
            let there = times(&rings);
            let count = desks.len() as u64;
            prop_assert!((count.saturating_sub(5)..count).all(|time| there.contains(&time)), "{:?}", there);
            for desk in 0..3 {
                let own = desks.iter().enumerate().filter(|&(_, &other)| other == desk).map(|(time, _)| time as u64);
                let written = own.clone().count();
                prop_assert!(own.skip(written / 4 * 4).all(|time| there.contains(&time)), "a ring in hand is the desk's alone");
            }
        }

        /// Who can write the file can write anything there: it costs events, and nothing else.
        #[test]
        fn no_words_of_desks_are_too_odd(words: [u64; 3], state: u64, head: u64) {
            let rings = empty::<3, 6, 4>();
            rings.desks.iter().zip(words).for_each(|(desk, word)| desk.0.store(word, Ordering::Relaxed));
            rings.shelf.state.store(state, Ordering::Relaxed);
            rings.heads[0].0.store(head, Ordering::Relaxed);
            (0..50).for_each(|time| rings.write(time as usize, of(time)));
        }
    }
}
