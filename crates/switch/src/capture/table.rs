//! A table of fixed size that nobody locks.
//!
//! A place has a state, which is a phase and a version, and the fields of a record. Who puts a record claims an empty
//! place, writes the fields and then says that it lives; who reads looks at the state before and after, and takes a
//! place whose state has changed for changed. A version never comes again, so a state names one record for ever.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// So many objects at most. A context has about 30 of the kinds that are kept, and a process with eight GPUs may have a
/// few on each.
pub const PLACES: usize = 1024;

/// How often a place that changes under the reader's eyes is looked at again.
const LOOKS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub fd: i32,
    pub client: u32,
    pub handle: u32,
    pub parent: u32,
    pub class: u32,
    /// Counts insertions, so that what is younger than a call can be told from what it freed.
    pub born: u64,
}

/// A record and the one state of the one place in which it is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub record: Record,
    place: usize,
    state: u64,
}

pub struct Table {
    places: [Place; PLACES],
    /// No place from here on was ever used.
    reach: AtomicUsize,
}

struct Place {
    state: AtomicU64,
    fd: AtomicI32,
    client: AtomicU32,
    handle: AtomicU32,
    parent: AtomicU32,
    class: AtomicU32,
    born: AtomicU64,
}

const EMPTY: u64 = 0;
const CLAIMED: u64 = 1;
const ALIVE: u64 = 2;
const PHASE: u64 = 3;

/// The state after `state`, in a phase, with a version that was never there.
fn next(state: u64, phase: u64) -> u64 {
    (state & !PHASE).wrapping_add(PHASE + 1) | phase
}

impl Table {
    pub const fn new() -> Table {
        Table { places: [const { Place::new() }; PLACES], reach: AtomicUsize::new(0) }
    }

    /// `None` when there is no room.
    pub fn insert(&self, record: Record) -> Option<Found> {
        for (index, place) in self.places.iter().enumerate() {
            let Some(claimed) = place.claim() else { continue };
            self.reach.fetch_max(index + 1, Ordering::Relaxed);
            let state = place.fill(claimed, record);
            return Some(Found { record, place: index, state });
        }
        None
    }

    /// Whether it was still there.
    pub fn remove(&self, found: &Found) -> bool {
        let Some(place) = self.places.get(found.place) else { return false };
        let gone = next(found.state, EMPTY);
        place.state.compare_exchange(found.state, gone, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    pub fn holds(&self, found: &Found) -> bool {
        let place = self.places.get(found.place);
        place.and_then(Place::read) == Some((found.state, found.record))
    }

    pub fn iter(&self) -> impl Iterator<Item = Found> {
        let reach = self.reach.load(Ordering::Relaxed).min(PLACES);
        let places = self.places.iter().take(reach).enumerate();
        places.filter_map(|(index, place)| {
            let (state, record) = place.read()?;
            Some(Found { record, place: index, state })
        })
    }

    /// In the child of a fork also what another thread was just putting there.
    pub fn clear(&self) {
        for place in &self.places {
            let state = place.state.load(Ordering::Relaxed);
            if state & PHASE != EMPTY {
                place.state.store(next(state, EMPTY), Ordering::Release);
            }
        }
    }
}

impl Place {
    const fn new() -> Place {
        Place {
            state: AtomicU64::new(EMPTY),
            fd: AtomicI32::new(0),
            client: AtomicU32::new(0),
            handle: AtomicU32::new(0),
            parent: AtomicU32::new(0),
            class: AtomicU32::new(0),
            born: AtomicU64::new(0),
        }
    }

    fn claim(&self) -> Option<u64> {
        let state = self.state.load(Ordering::Relaxed);
        if state & PHASE != EMPTY {
            return None;
        }
        let claimed = next(state, CLAIMED);
        self.state.compare_exchange(state, claimed, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(claimed)
    }

    fn fill(&self, claimed: u64, record: Record) -> u64 {
        // SYNC(place-claim): whoever reads a field written below also sees that the place was claimed.
        fence(Ordering::Release);
        self.fd.store(record.fd, Ordering::Relaxed);
        self.client.store(record.client, Ordering::Relaxed);
        self.handle.store(record.handle, Ordering::Relaxed);
        self.parent.store(record.parent, Ordering::Relaxed);
        self.class.store(record.class, Ordering::Relaxed);
        self.born.store(record.born, Ordering::Relaxed);
        let state = next(claimed, ALIVE);
        // SYNC(place-alive): whoever sees this state sees the fields. A place that was cleared meanwhile stays empty.
        let _ = self.state.compare_exchange(claimed, state, Ordering::Release, Ordering::Relaxed);
        state
    }

    fn read(&self) -> Option<(u64, Record)> {
        for _ in 0..LOOKS {
            // SYNC(place-alive): pairs with the exchange in `fill`.
            let state = self.state.load(Ordering::Acquire);
            if state & PHASE != ALIVE {
                return None;
            }
            let record = Record {
                fd: self.fd.load(Ordering::Relaxed),
                client: self.client.load(Ordering::Relaxed),
                handle: self.handle.load(Ordering::Relaxed),
                parent: self.parent.load(Ordering::Relaxed),
                class: self.class.load(Ordering::Relaxed),
                born: self.born.load(Ordering::Relaxed),
            };
            // SYNC(place-claim): pairs with the fence in `fill`.
            fence(Ordering::Acquire);
            if self.state.load(Ordering::Relaxed) == state {
                return Some((state, record));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    fn record(number: u32) -> Record {
        let born = u64::from(number);
        Record { fd: number as i32, client: number, handle: number, parent: number, class: number, born }
    }

    #[test]
    fn there_is_room_for_so_many_and_no_more() {
        let table = Table::new();
        let all: std::vec::Vec<_> = (0..PLACES as u32).map(|n| table.insert(record(n)).unwrap()).collect();
        assert_eq!(table.insert(record(1)), None);
        assert_eq!(table.iter().count(), PLACES);
        assert!(table.remove(&all[7]));
        assert!(!table.remove(&all[7]));
        assert!(table.insert(record(1)).is_some());
    }

    #[test]
    fn a_place_that_is_used_again_is_not_taken_for_the_old_one() {
        let table = Table::new();
        let old = table.insert(record(1)).unwrap();
        assert!(table.remove(&old));
        let new = table.insert(record(1)).unwrap();
        assert!(!table.holds(&old));
        assert!(table.holds(&new));
        assert!(!table.remove(&old));
        assert!(table.holds(&new));
    }

    #[test]
    fn what_was_cleared_is_gone() {
        let table = Table::new();
        let found = table.insert(record(1)).unwrap();
        table.clear();
        assert!(!table.holds(&found));
        assert_eq!(table.iter().count(), 0);
    }

    #[test]
    fn no_reader_sees_half_a_record() {
        let table = Table::new();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let table = &table;
                scope.spawn(move || {
                    for number in 0..2000 {
                        let found = table.insert(record(number * 3 + thread)).unwrap();
                        for seen in table.iter() {
                            assert_eq!(seen.record, record(seen.record.client));
                        }
                        assert!(table.remove(&found));
                    }
                });
            }
        });
        assert_eq!(table.iter().count(), 0);
    }
}
