//! What followed in which situation: a table of fixed size from hashes to the last few spans.
//!
//! A hash chooses a set of eight places, in which it may have any. Their tags lie side by side, so that a look-up touches two
//! lines of cache: one of tags, and the entry.
//!
//! Most of what is seen is never seen again. So a situation only gets a place when it is met for the second time; at the first
//! it leaves a mark at the door, where marks are wiped off when there are many. And whoever is there stays while it is
//! used: each use gives it credit, each newcomer who finds the set full takes some from one of them in turn, and only who has
//! none left must go. So a tenant whose situations do not all fit keeps those it has, instead of losing each of them just
//! before it is met again, and what was once in demand does not stay for ever.

use model::Nanos;

use crate::recent::Recent;

const WAYS: usize = 8;
/// What a use is worth, in newcomers, and how much can be saved up.
const CREDIT: u8 = 4;
const MOST_CREDIT: u8 = 16;
/// Marks at the door before they are wiped off, for each slot; there is room for sixteen.
const MARKS: u32 = 6;

/// How many spans an entry keeps: with what else it has they fill a line of cache, and the places asked about are whole.
pub(crate) const KEPT: usize = 29;

/// `SLOTS` entries; a power of two, and at least eight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table<const SLOTS: usize> {
    /// Nought: nobody is there.
    tags: [u32; SLOTS],
    entries: [Entry; SLOTS],
    /// Bits, and how many of them are set.
    door: [u16; SLOTS],
    marks: u32,
    /// Whose credit is taken next.
    turn: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
struct Entry {
    recent: Recent<KEPT>,
    credit: u8,
}

/// Where an entry was when it was looked up. It may have left since; then the place answers no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    slot: u32,
    tag: u32,
}

impl Entry {
    const NEW: Entry = Entry { recent: Recent::new(), credit: 0 };
}

impl Place {
    /// Nobody has this tag: it answers nothing.
    pub(crate) const NOWHERE: Place = Place { slot: 0, tag: 0 };
}

impl<const SLOTS: usize> Table<SLOTS> {
    pub(crate) const fn new() -> Table<SLOTS> {
        const { assert!(SLOTS.is_power_of_two() && SLOTS >= WAYS && SLOTS <= 1 << 24) };
        Table { tags: [0; SLOTS], entries: [Entry::NEW; SLOTS], door: [0; SLOTS], marks: 0, turn: 0 }
    }

    /// The place of a situation, which gets one if it is not met for the first time.
    pub(crate) fn visit(&mut self, hash: u64) -> Option<Place> {
        let tag = tag(hash);
        let first = first::<SLOTS>(hash);
        let slot = match self.slot(first, tag) {
            Some(slot) => slot,
            None if self.is_known_at_the_door(hash) => self.settle(first, tag)?,
            None => return None,
        };
        let entry = self.entries.get_mut(slot)?;
        entry.credit = entry.credit.saturating_add(CREDIT).min(MOST_CREDIT);
        Some(Place { slot: slot as u32, tag })
    }

    /// The place of a situation, if it has one.
    pub(crate) fn find(&self, hash: u64) -> Option<Place> {
        let tag = tag(hash);
        let slot = self.slot(first::<SLOTS>(hash), tag)?;
        Some(Place { slot: slot as u32, tag })
    }

    pub(crate) fn recent(&self, place: Place) -> Option<&Recent<KEPT>> {
        self.is_there(place).then_some(&self.entries.get(place.slot as usize)?.recent)
    }

    pub(crate) fn observe(&mut self, place: Place, span: Nanos) {
        if self.is_there(place)
            && let Some(entry) = self.entries.get_mut(place.slot as usize)
        {
            entry.recent.observe(span);
        }
    }

    /// Where in the set that begins there somebody with this tag is. All are compared, which takes no longer than one, because
    /// no branch depends on it.
    #[inline]
    fn slot(&self, first: usize, tag: u32) -> Option<usize> {
        let set = self.tags.get(first..first.saturating_add(WAYS))?;
        let same = set.iter().rev().fold(0u32, |same, &there| (same << 1) | u32::from(there == tag));
        (same != 0).then(|| first.saturating_add(same.trailing_zeros() as usize))
    }

    fn is_there(&self, place: Place) -> bool {
        place.tag != 0 && self.tags.get(place.slot as usize) == Some(&place.tag)
    }

    fn is_known_at_the_door(&mut self, hash: u64) -> bool {
        let (place, bit) = ((hash >> 20) as usize & SLOTS.wrapping_sub(1), 1 << (hash >> 60));
        let Some(there) = self.door.get_mut(place) else { return false };
        if *there & bit != 0 {
            return true;
        }
        *there |= bit;
        self.marks = self.marks.saturating_add(1);
        if self.marks >= MARKS.saturating_mul(SLOTS as u32) {
            self.door = [0; SLOTS];
            self.marks = 0;
        }
        false
    }

    /// Gives a newcomer a place in the set that begins there: a free one, or that of whoever's turn it is and has no credit.
    fn settle(&mut self, first: usize, tag: u32) -> Option<usize> {
        let set = self.tags.get(first..first.saturating_add(WAYS))?;
        let way = set.iter().position(|&there| there == 0).unwrap_or_else(|| {
            self.turn = self.turn.wrapping_add(1);
            usize::from(self.turn) % WAYS
        });
        let slot = first.saturating_add(way);
        let entry = self.entries.get_mut(slot)?;
        if let Some(less) = entry.credit.checked_sub(1) {
            entry.credit = less;
            return None;
        }
        *entry = Entry::NEW;
        *self.tags.get_mut(slot)? = tag;
        Some(slot)
    }
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

fn first<const SLOTS: usize>(hash: u64) -> usize {
    hash as usize & SLOTS.wrapping_sub(WAYS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::mixed;

    #[test]
    fn what_is_met_twice_has_a_place() {
        let mut table = Table::<64>::new();
        assert_eq!(table.visit(mixed(1)), None);
        let place = table.visit(mixed(1)).unwrap();
        table.observe(place, Nanos(7));
        assert_eq!(table.find(mixed(1)), Some(place));
        assert_eq!(table.recent(place).unwrap().tenth(5), Nanos(7));
    }

    #[test]
    fn what_is_in_use_stays_among_many_that_come_once() {
        let mut table = Table::<64>::new();
        for round in 0..10_000 {
            for steady in 0..16 {
                table.visit(mixed(steady));
            }
            table.visit(mixed(1_000 + round));
        }
        assert!((0..16).all(|steady| table.find(mixed(steady)).is_some()));
    }

    #[test]
    fn what_is_in_use_stays_among_many_that_come_twice() {
        let mut table = Table::<64>::new();
        for round in 0..10_000 {
            for steady in 0..16 {
                table.visit(mixed(steady));
            }
            table.visit(mixed(1_000 + round / 2));
        }
        assert!((0..16).all(|steady| table.find(mixed(steady)).is_some()));
    }

    #[test]
    fn of_too_many_that_come_round_some_stay() {
        let mut table = Table::<64>::new();
        let mut found = 0;
        for round in 0..100 {
            found = (0..200).filter(|&one| table.visit(mixed(one)).is_some()).count();
            assert!(round < 10 || found > 40, "{found} in round {round}");
        }
        assert!(found <= 64);
    }

    #[test]
    fn what_is_no_longer_used_leaves() {
        let mut table = Table::<8>::new();
        for _ in 0..100 {
            (0..8).for_each(|old| _ = table.visit(mixed(old)));
        }
        for _ in 0..1_000 {
            (8..16).for_each(|new| _ = table.visit(mixed(new)));
        }
        assert!((8..16).all(|new| table.find(mixed(new)).is_some()));
    }

    #[test]
    fn a_place_whose_entry_has_left_answers_no_more() {
        let mut table = Table::<8>::new();
        table.visit(mixed(0));
        let place = table.visit(mixed(0)).unwrap();
        for other in 1..1_000 {
            table.visit(mixed(other));
            table.visit(mixed(other));
        }
        assert_eq!(table.recent(place), None);
        assert_eq!(table.recent(Place::NOWHERE), None);
    }

    #[test]
    fn an_entry_is_a_line_of_cache() {
        assert_eq!(size_of::<Entry>(), 64);
    }
}
