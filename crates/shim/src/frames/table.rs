//! A table from handles to what is known about them, read without a lock.
//!
//! Open addressing, at most half full. Writers are rare and take a lock; a reader walks from the key's home place
//! until it finds the key or an empty place. A table that grows is copied and replaced: who still reads the old one
//! may miss what came meanwhile, and takes it for unknown, once. Keys are never removed, only their values.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::arena;
use crate::lock::Lock;

pub struct Table<V: 'static> {
    lock: Lock,
    places: AtomicPtr<Places<V>>,
}

struct Places<V: 'static> {
    all: &'static [Place<V>],
    taken: AtomicUsize,
}

struct Place<V> {
    /// Zero: empty. Stored after the value, by `SYNC(table-place)`.
    key: AtomicUsize,
    value: AtomicPtr<V>,
}

const FIRST: usize = 512;

impl<V> Table<V> {
    pub fn new() -> Option<Table<V>> {
        let places = Places::new(FIRST)?;
        Some(Table { lock: Lock::new(), places: AtomicPtr::new(ptr::from_ref(places).cast_mut()) })
    }

    #[inline]
    pub fn get(&self, key: usize) -> Option<&'static V> {
        let value = self.places().find(key)?.value.load(Ordering::Acquire);
        // SAFETY: null, or a value that was put as a reference for ever.
        unsafe { value.as_ref() }
    }

    /// `None` when there is no memory for it, or no lock.
    pub fn put(&self, key: usize, value: &'static V) -> Option<()> {
        if key == 0 {
            return None;
        }
        let _held = self.lock.acquire()?;
        let places = self.places();
        if let Some(place) = places.find(key) {
            place.value.store(ptr::from_ref(value).cast_mut(), Ordering::Release);
            return Some(());
        }
        let places = if places.is_full() { self.grow(places)? } else { places };
        places.insert(key, ptr::from_ref(value).cast_mut());
        Some(())
    }

    pub fn remove(&self, key: usize) -> Option<&'static V> {
        let _held = self.lock.acquire()?;
        let value = self.places().find(key)?.value.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: null, or a value that was put as a reference for ever.
        unsafe { value.as_ref() }
    }

    /// Shows every value that is there.
    pub fn each(&self, look: &mut dyn FnMut(&'static V)) {
        for place in self.places().all {
            // SAFETY: null, or a value that was put as a reference for ever.
            if let Some(value) = unsafe { place.value.load(Ordering::Acquire).as_ref() } {
                look(value);
            }
        }
    }

    /// Forgets the values that are not to be kept.
    pub fn retain(&self, keep: impl Fn(&'static V) -> bool) {
        let Some(_held) = self.lock.acquire() else { return };
        for place in self.places().all {
            // SAFETY: null, or a value that was put as a reference for ever.
            let value = unsafe { place.value.load(Ordering::Acquire).as_ref() };
            if value.is_some_and(|value| !keep(value)) {
                place.value.store(ptr::null_mut(), Ordering::Release);
            }
        }
    }

    #[inline]
    fn places(&self) -> &'static Places<V> {
        // SYNC(table-grow): whoever sees the new places sees what was copied into them.
        // SAFETY: never null, and places stay for ever.
        unsafe { &*self.places.load(Ordering::Acquire) }
    }

    fn grow(&self, old: &Places<V>) -> Option<&'static Places<V>> {
        let new = Places::new(old.all.len() * 2)?;
        for place in old.all {
            let value = place.value.load(Ordering::Relaxed);
            if !value.is_null() {
                new.insert(place.key.load(Ordering::Relaxed), value);
            }
        }
        // SYNC(table-grow): pairs with the load in `places`.
        self.places.store(ptr::from_ref(new).cast_mut(), Ordering::Release);
        Some(new)
    }
}

impl<V> Places<V> {
    fn new(count: usize) -> Option<&'static Places<V>> {
        // SAFETY: a place is two atomics, for which zeros are values.
        let all = unsafe { arena::zeroed(count) }?;
        arena::place(Places { all, taken: AtomicUsize::new(0) })
    }

    fn is_full(&self) -> bool {
        self.taken.load(Ordering::Relaxed) * 2 >= self.all.len()
    }

    #[inline]
    fn home(&self, key: usize) -> usize {
        let mixed = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (u64::BITS - self.all.len().ilog2())) as usize
    }

    #[inline]
    fn find(&self, key: usize) -> Option<&Place<V>> {
        let mut at = self.home(key);
        loop {
            let place = &self.all[at];
            // SYNC(table-place): whoever sees the key sees a value that was put under it.
            match place.key.load(Ordering::Acquire) {
                0 => return None,
                found if found == key => return Some(place),
                _ => at = (at + 1) & (self.all.len() - 1),
            }
        }
    }

    /// Under the lock, of a key that is not there, with room for it.
    fn insert(&self, key: usize, value: *mut V) {
        let mut at = self.home(key);
        while self.all[at].key.load(Ordering::Relaxed) != 0 {
            at = (at + 1) & (self.all.len() - 1);
        }
        self.all[at].value.store(value, Ordering::Relaxed);
        // SYNC(table-place): pairs with the load in `find`.
        self.all[at].key.store(key, Ordering::Release);
        self.taken.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: u64) -> &'static u64 {
        arena::place(value).unwrap()
    }

    #[test]
    fn what_was_put_is_found() {
        let table = Table::new().unwrap();
        for key in 1..5000usize {
            table.put(key * 64, number(key as u64)).unwrap();
        }
        for key in 1..5000usize {
            assert_eq!(table.get(key * 64), Some(&(key as u64)));
        }
        assert_eq!(table.get(1), None);
        assert_eq!(table.get(0), None);
    }

    #[test]
    fn a_handle_that_is_used_again_means_the_new_thing() {
        let table = Table::new().unwrap();
        table.put(64, number(1)).unwrap();
        assert_eq!(table.remove(64), Some(&1));
        assert_eq!(table.get(64), None);
        table.put(64, number(2)).unwrap();
        assert_eq!(table.get(64), Some(&2));
    }

    #[test]
    fn what_is_not_kept_is_forgotten() {
        let table = Table::new().unwrap();
        (1..100usize).for_each(|key| table.put(key, number(key as u64 % 3)).unwrap());
        table.retain(|&value| value != 0);
        assert_eq!((table.get(3), table.get(4)), (None, Some(&1)));
    }

    #[test]
    fn readers_and_writers_do_not_disturb_each_other() {
        let table = Table::new().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                let table = &table;
                scope.spawn(move || {
                    for key in 1..2000 {
                        let key = key * 8 + thread;
                        table.put(key, number(key as u64)).unwrap();
                        assert_eq!(table.get(key), Some(&(key as u64)));
                    }
                });
            }
        });
    }
}
