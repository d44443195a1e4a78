//! What is held, by what it is known by.
//!
//! Open addressing, at most half full, all of it under one lock: a program allocates far less often than it launches, and
//! the driver takes longer than we do. What is removed leaves no gap behind, so a program may allocate and free for ever.
//! Places lie in the arena. A table that grows leaves its old places there, which together are no more than the new ones.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::arena;
use crate::lock::{Held, Lock};

/// What a number is. Handles of different kinds may be the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Memory with an address.
    Pointer = 1,
    Array,
    Mipmap,
    /// A handle of physical memory.
    Handle,
    /// Where physical memory is mapped.
    Mapping,
    /// Physical memory, by our own number: handles are used again while what they meant is still mapped.
    Physical,
    Pool,
}

const KINDS: [Kind; 7] =
    [Kind::Pointer, Kind::Array, Kind::Mipmap, Kind::Handle, Kind::Mapping, Kind::Physical, Kind::Pool];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub kind: Kind,
    pub number: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub device: usize,
    pub bytes: u64,
    /// What else belongs to it, which differs by kind.
    pub of: u64,
}

pub struct Table {
    lock: Lock,
    places: AtomicPtr<Places>,
}

struct Places {
    all: &'static [Place],
    taken: AtomicU64,
}

/// Atomics only because they are shared under the lock; nothing is ordered by them.
struct Place {
    /// The kind; nought is an empty place.
    kind: AtomicU64,
    number: AtomicU64,
    device: AtomicU64,
    bytes: AtomicU64,
    of: AtomicU64,
}

const FIRST: usize = 256;

/// A table that nobody else changes meanwhile.
pub struct Open<'a> {
    table: &'a Table,
    _held: Held<'a>,
}

/// There was no memory for it.
#[derive(Debug, PartialEq, Eq)]
pub struct NoRoom;

impl Table {
    pub const fn new() -> Table {
        Table { lock: Lock::new(), places: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// `None` when it cannot be had in time.
    pub fn open(&self) -> Option<Open<'_>> {
        let held = self.lock.acquire()?;
        Some(Open { table: self, _held: held })
    }

    /// In the child of a fork.
    pub fn forget(&self) {
        self.lock.reset();
        self.places.store(std::ptr::null_mut(), Ordering::Relaxed);
    }
}

impl Open<'_> {
    pub fn get(&self, key: Key) -> Option<Entry> {
        let places = self.places()?;
        Some(places.all[places.find(key).ok()?].entry())
    }

    /// Puts an entry under a key; what was there before, if anything was.
    pub fn put(&self, key: Key, entry: Entry) -> Result<Option<Entry>, NoRoom> {
        if let Some(places) = self.places()
            && let Ok(at) = places.find(key)
        {
            let before = places.all[at].entry();
            places.all[at].write(Some((key, entry)));
            return Ok(Some(before));
        }
        let places = self.with_room().ok_or(NoRoom)?;
        places.insert(key, entry);
        Ok(None)
    }

    pub fn take(&self, key: Key) -> Option<Entry> {
        let places = self.places()?;
        let at = places.find(key).ok()?;
        let entry = places.all[at].entry();
        places.remove(at);
        Some(entry)
    }

    /// Any entry that is wanted.
    pub fn find(&self, wanted: impl Fn(Key, Entry) -> bool) -> Option<(Key, Entry)> {
        let mut all = self.places()?.all.iter().filter_map(Place::read);
        all.find(|(key, entry)| wanted(*key, *entry))
    }

    /// Takes all entries that are wanted.
    pub fn take_all(&self, wanted: impl Fn(Key, Entry) -> bool, mut taken: impl FnMut(Entry)) {
        let Some(places) = self.places() else { return };
        let mut at = 0;
        while at < places.all.len() {
            match places.all[at].read() {
                // Another entry may come into the place.
                Some((key, entry)) if wanted(key, entry) => {
                    places.remove(at);
                    taken(entry);
                }
                _ => at += 1,
            }
        }
    }

    fn places(&self) -> Option<&'static Places> {
        // SAFETY: null, or places in the arena, which stay.
        unsafe { self.table.places.load(Ordering::Relaxed).as_ref() }
    }

    fn with_room(&self) -> Option<&'static Places> {
        let old = self.places();
        if let Some(places) = old.filter(|places| !places.is_full()) {
            return Some(places);
        }
        let new = Places::new(old.map_or(FIRST, |old| old.all.len() * 2))?;
        let entries = old.into_iter().flat_map(|old| old.all.iter().filter_map(Place::read));
        entries.for_each(|(key, entry)| new.insert(key, entry));
        self.table.places.store(std::ptr::from_ref(new).cast_mut(), Ordering::Relaxed);
        Some(new)
    }
}

impl Places {
    fn new(count: usize) -> Option<&'static Places> {
        // SAFETY: a place is a few atomics, for which zeros are values.
        let all = unsafe { arena::zeroed(count) }?;
        arena::place(Places { all, taken: AtomicU64::new(0) })
    }

    fn is_full(&self) -> bool {
        self.taken.load(Ordering::Relaxed) as usize * 2 >= self.all.len()
    }

    fn home(&self, key: Key) -> usize {
        let mixed = (key.number ^ (key.kind as u64) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (u64::BITS - self.all.len().ilog2())) as usize
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.all.len() - 1)
    }

    /// Where a key is, or the empty place where it would be.
    fn find(&self, key: Key) -> Result<usize, usize> {
        let mut at = self.home(key);
        loop {
            match self.all[at].read() {
                None => return Err(at),
                Some((found, _)) if found == key => return Ok(at),
                Some(_) => at = self.after(at),
            }
        }
    }

    /// Of a key that is not there, with room for it.
    fn insert(&self, key: Key, entry: Entry) {
        if let Err(at) = self.find(key) {
            self.all[at].write(Some((key, entry)));
            self.taken.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Empties a place, and moves up what would not be found behind an empty one.
    fn remove(&self, at: usize) {
        let span = |from: usize, to: usize| to.wrapping_sub(from) & (self.all.len() - 1);
        let (mut hole, mut at) = (at, self.after(at));
        while let Some((key, entry)) = self.all[at].read() {
            if span(self.home(key), at) >= span(hole, at) {
                self.all[hole].write(Some((key, entry)));
                hole = at;
            }
            at = self.after(at);
        }
        self.all[hole].write(None);
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Place {
    fn read(&self) -> Option<(Key, Entry)> {
        let kind = self.kind.load(Ordering::Relaxed);
        let kind = *KINDS.get(usize::try_from(kind).ok()?.checked_sub(1)?)?;
        Some((Key { kind, number: self.number.load(Ordering::Relaxed) }, self.entry()))
    }

    fn entry(&self) -> Entry {
        Entry {
            device: self.device.load(Ordering::Relaxed) as usize,
            bytes: self.bytes.load(Ordering::Relaxed),
            of: self.of.load(Ordering::Relaxed),
        }
    }

    fn write(&self, what: Option<(Key, Entry)>) {
        let Some((key, entry)) = what else { return self.kind.store(0, Ordering::Relaxed) };
        self.number.store(key.number, Ordering::Relaxed);
        self.device.store(entry.device as u64, Ordering::Relaxed);
        self.bytes.store(entry.bytes, Ordering::Relaxed);
        self.of.store(entry.of, Ordering::Relaxed);
        self.kind.store(key.kind as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn key(number: u64) -> Key {
        Key { kind: KINDS[number as usize % KINDS.len()], number: number / 7 * 4096 }
    }

    fn entry(bytes: u64) -> Entry {
        Entry { device: 3, bytes, of: bytes * 2 }
    }

    #[test]
    fn kinds_are_numbered_in_order() {
        assert!(KINDS.iter().zip(1..).all(|(kind, number)| *kind as usize == number));
    }

    #[test]
    fn what_was_put_is_there_until_it_is_taken() {
        let table = Table::new();
        let open = table.open().unwrap();
        let mut truth = BTreeMap::new();
        let mut state = 7u64;
        for step in 0..20_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = (state >> 33) % 1_500;
            match state >> 62 {
                0 | 1 => {
                    assert_eq!(open.put(key(number), entry(step)), Ok(truth.insert(number, entry(step))));
                }
                2 => assert_eq!(open.take(key(number)), truth.remove(&number)),
                _ => assert_eq!(open.get(key(number)), truth.get(&number).copied()),
            }
        }
        let mut left = 0;
        open.take_all(|_, entry| entry.bytes % 2 == 0, |_| left += 1);
        assert_eq!(left, truth.values().filter(|entry| entry.bytes % 2 == 0).count());
        for (number, entry) in truth {
            assert_eq!(open.take(key(number)), Some(entry).filter(|entry| entry.bytes % 2 == 1));
        }
        assert_eq!(open.find(|_, _| true), None);
    }

    #[test]
    fn allocating_and_freeing_for_ever_takes_no_more_room() {
        let table = Table::new();
        let open = table.open().unwrap();
        for number in 0..100_000 {
            open.put(key(number), entry(1)).unwrap();
            assert_eq!(open.take(key(number)), Some(entry(1)));
        }
        assert_eq!(open.places().unwrap().all.len(), FIRST);
    }
}
