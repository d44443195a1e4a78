//! Sleeping blocks, ordered by when they go on.
//!
//! Blocks of one kernel mostly sleep equally long, so they come due in the order in which they lay down: a
//! plain queue holds those, and only what comes out of order pays for a heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use model::Nanos;

pub struct Timers<T> {
    orderly: VecDeque<(Nanos, T)>,
    others: BinaryHeap<Reverse<Entry<T>>>,
}

struct Entry<T>(Nanos, T);

impl<T> Timers<T> {
    pub fn new() -> Timers<T> {
        Timers { orderly: VecDeque::new(), others: BinaryHeap::new() }
    }

    pub fn len(&self) -> usize {
        self.orderly.len() + self.others.len()
    }

    pub fn push(&mut self, due: Nanos, item: T) {
        match self.orderly.back() {
            Some((last, _)) if *last > due => self.others.push(Reverse(Entry(due, item))),
            _ => self.orderly.push_back((due, item)),
        }
    }

    pub fn next_due(&self) -> Option<Nanos> {
        let orderly = self.orderly.front().map(|(due, _)| *due);
        let other = self.others.peek().map(|Reverse(Entry(due, _))| *due);
        match (orderly, other) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The earliest item, if it is due at `now`.
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        let due = self.next_due().filter(|due| *due <= now)?;
        if self.orderly.front().is_some_and(|(first, _)| *first == due) {
            return self.orderly.pop_front();
        }
        self.others.pop().map(|Reverse(Entry(due, item))| (due, item))
    }

    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        let others = self.others.drain().map(|Reverse(Entry(_, item))| item);
        self.orderly.drain(..).map(|(_, item)| item).chain(others)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Entry<T>) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Entry<T>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Entry<T>) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn items_come_out_in_order_of_time(times in proptest::collection::vec(0u64..100, 0..200)) {
            let mut timers = Timers::new();
            for time in &times {
                timers.push(Nanos(*time), *time);
            }
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let mut out = Vec::new();
            while let Some((_, item)) = timers.pop_due(Nanos(1000)) {
                out.push(item);
            }
            prop_assert_eq!(out, sorted);
        }
    }

    #[test]
    fn nothing_comes_before_its_time() {
        let mut timers = Timers::new();
        timers.push(Nanos(10), 'a');
        assert_eq!(timers.pop_due(Nanos(9)), None);
        assert_eq!(timers.pop_due(Nanos(10)), Some((Nanos(10), 'a')));
    }
}
