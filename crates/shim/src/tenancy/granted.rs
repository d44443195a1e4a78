//! What the daemon has granted to this process on a GPU, for all of its threads.
//!
//! It comes on the connection to the daemon and from nowhere else. The board has a copy, which everybody at the board can
//! write: to go by that would be to let any tenant choose our class, our limit of memory, or our domain.
//!
//! The keeper writes, and any thread reads at any time. Each word is a value by itself; a thread may see one from before a change
//! and another from after it.

use std::sync::atomic::{AtomicU64, Ordering};

use board::{HIGHEST_PRIORITY, HIGHEST_WEIGHT, Terms};
use model::{Bytes, Class, Domain, Nanos};

pub struct PublishedTerms {
    word: AtomicU64,
    /// 0: none.
    slo: AtomicU64,
    /// In bytes; 0: no limit.
    memory: AtomicU64,
}

/// There was a grant. Without it everything else is as the program asked.
const GRANTED: u64 = 1;
const LATENCY: u64 = 2;
const SHARED: u64 = 4;
const PAUSED: u64 = 8;
const PRIORITY: u32 = 8;
const WEIGHT: u32 = 16;

impl PublishedTerms {
    pub const fn new() -> PublishedTerms {
        PublishedTerms { word: AtomicU64::new(0), slo: AtomicU64::new(0), memory: AtomicU64::new(0) }
    }

    /// For a process that was granted nothing yet.
    pub fn forget(&self) {
        [&self.word, &self.slo, &self.memory].into_iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    pub fn set(&self, terms: &Terms, domain: Domain) {
        let flags = [
            (terms.class == Class::Latency, LATENCY),
            (domain == Domain::Shared, SHARED),
            (terms.paused, PAUSED),
        ];
        let flags: u64 = flags.into_iter().map(|(is_so, flag)| u64::from(is_so) * flag).sum();
        let weight = u64::from(terms.weight.clamp(1, HIGHEST_WEIGHT)) << WEIGHT;
        let priority = u64::from(terms.priority.min(HIGHEST_PRIORITY)) << PRIORITY;
        self.slo.store(terms.slo.map_or(0, |slo| slo.0), Ordering::Relaxed);
        self.memory.store(terms.memory.map_or(0, |memory| memory.0), Ordering::Relaxed);
        // SYNC(granted-terms): who sees the grant sees the limit that came with it.
        self.word.store(weight | priority | flags | GRANTED, Ordering::Release);
    }

    /// `None`: no daemon has granted anything yet.
    pub fn get(&self) -> Option<(Terms, Domain)> {
        // SYNC(granted-terms): pairs with the store in `set`.
        let word = self.word.load(Ordering::Acquire);
        if word & GRANTED == 0 {
            return None;
        }
        let [_, priority, low, high, ..] = word.to_le_bytes();
        let (slo, memory) = (self.slo.load(Ordering::Relaxed), self.memory.load(Ordering::Relaxed));
        let terms = Terms {
            class: if word & LATENCY != 0 { Class::Latency } else { Class::BestEffort },
            weight: u32::from(u16::from_le_bytes([low, high])),
            priority: u32::from(priority),
            slo: (slo != 0).then_some(Nanos(slo)),
            memory: (memory != 0).then_some(Bytes(memory)),
            paused: word & PAUSED != 0,
        };
        Some((terms, if word & SHARED != 0 { Domain::Shared } else { Domain::Isolated }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_is_what_is_read() {
        let granted = PublishedTerms::new();
        assert_eq!(granted.get(), None);
        for class in [Class::Latency, Class::BestEffort] {
            for (domain, paused) in [(Domain::Shared, false), (Domain::Isolated, true)] {
                let slo = paused.then_some(Nanos(7));
                let memory = Some(Bytes(1 << 40));
                let terms = Terms { class, weight: 1_000, priority: 9, slo, memory, paused };
                granted.set(&terms, domain);
                assert_eq!(granted.get(), Some((terms, domain)));
            }
        }
        granted.forget();
        assert_eq!(granted.get(), None);
    }
}
