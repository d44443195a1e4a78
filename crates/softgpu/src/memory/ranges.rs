//! Which parts of a numbered stretch are free.

use std::collections::{BTreeMap, BTreeSet};

/// The free ranges of a stretch, merged with their neighbours, findable by place and by size.
#[derive(Debug)]
pub(super) struct Ranges {
    by_start: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
}

impl Ranges {
    pub(super) fn new(start: u64, bytes: u64) -> Ranges {
        let mut ranges = Ranges { by_start: BTreeMap::new(), by_size: BTreeSet::new() };
        ranges.insert(start, bytes);
        ranges
    }

    /// Takes the smallest free range that holds `bytes` at a multiple of `align`.
    pub(super) fn take(&mut self, bytes: u64, align: u64) -> Option<u64> {
        let fits = |&&(size, start): &&(u64, u64)| {
            start
                .checked_next_multiple_of(align)
                .is_some_and(|at| at - start <= size && bytes <= size - (at - start))
        };
        let &(_, start) = self.by_size.range((bytes, 0)..).find(fits)?;
        let at = start.next_multiple_of(align);
        self.take_at(at, bytes).then_some(at)
    }

    /// Takes exactly `[at, at + bytes)`; false when some of it is not free.
    pub(super) fn take_at(&mut self, at: u64, bytes: u64) -> bool {
        let Some(end) = at.checked_add(bytes) else { return false };
        let Some((&start, &size)) = self.by_start.range(..=at).next_back() else { return false };
        if bytes == 0 || end > start + size {
            return false;
        }
        self.remove(start, size);
        self.insert(start, at - start);
        self.insert(end, start + size - end);
        true
    }

    pub(super) fn give(&mut self, start: u64, bytes: u64) {
        let (mut start, mut bytes) = (start, bytes);
        if let Some((&before, &size)) = self.by_start.range(..start).next_back()
            && before + size == start
        {
            self.remove(before, size);
            (start, bytes) = (before, size + bytes);
        }
        if let Some(&size) = self.by_start.get(&(start + bytes)) {
            self.remove(start + bytes, size);
            bytes += size;
        }
        self.insert(start, bytes);
    }

    fn insert(&mut self, start: u64, bytes: u64) {
        if bytes > 0 {
            self.by_start.insert(start, bytes);
            self.by_size.insert((bytes, start));
        }
    }

    fn remove(&mut self, start: u64, bytes: u64) {
        self.by_start.remove(&start);
        self.by_size.remove(&(bytes, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbours_merge() {
        let mut ranges = Ranges::new(0, 100);
        let taken: Vec<u64> = (0..10).map(|_| ranges.take(10, 1).unwrap()).collect();
        assert_eq!(ranges.take(1, 1), None);
        for start in taken.iter().step_by(2).chain(taken.iter().skip(1).step_by(2)) {
            ranges.give(*start, 10);
        }
        assert_eq!(ranges.take(100, 1), Some(0));
    }

    #[test]
    fn hostile_sizes_find_nothing() {
        let mut ranges = Ranges::new(64, 1024);
        assert_eq!(ranges.take(u64::MAX, 1), None);
        assert_eq!(ranges.take(1, 1 << 63), None);
        assert!(!ranges.take_at(u64::MAX, 2));
        assert!(!ranges.take_at(64, 0));
        assert!(!ranges.take_at(0, 65));
    }

    proptest! {
        /// Whatever is taken is disjoint and aligned, and giving everything back leaves one whole range.
        #[test]
        fn taken_ranges_are_disjoint(wishes in prop::collection::vec((1u64..5000, 0u32..8, any::<bool>()), 1..60)) {
            let mut ranges = Ranges::new(0, 1 << 20);
            let mut held: Vec<(u64, u64)> = Vec::new();
            for (bytes, shift, give) in wishes {
                if give && !held.is_empty() {
                    let (start, bytes) = held.swap_remove(bytes as usize % held.len());
                    ranges.give(start, bytes);
                } else if let Some(start) = ranges.take(bytes, 1 << shift) {
                    prop_assert_eq!(start % (1 << shift), 0);
                    prop_assert!(held.iter().all(|&(s, b)| start + bytes <= s || s + b <= start));
                    held.push((start, bytes));
                }
            }
            for (start, bytes) in held {
                ranges.give(start, bytes);
            }
            prop_assert_eq!(ranges.take(1 << 20, 1), Some(0));
        }
    }
}
