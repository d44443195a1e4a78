//! How long blocks of a kernel were lately, and which of that counts.
//!
//! What is promised of a kernel follows from the longest of its blocks. But a launch may also be long by accident: somebody else had the
//! GPU meanwhile, or the kernel had yet to be loaded. Such a one, taken at its word, would keep the kernel's program out for thousands of
//! launches. An accident comes alone, and a long block comes again: so what counts is the *second longest* of the last 32 to 64 that were
//! timed. Of a kernel that was timed once there is nothing better than that one.

use std::sync::atomic::{AtomicU32, Ordering};

use model::Nanos;

/// After so many, those before them are forgotten.
const MANY: u32 = 32;

/// The two longest, in nanoseconds, up to the four seconds that a word holds.
struct Two {
    longest: AtomicU32,
    second: AtomicU32,
}

impl Two {
    const fn new() -> Two {
        Two { longest: AtomicU32::new(0), second: AtomicU32::new(0) }
    }

    fn get(&self) -> [u32; 2] {
        [self.longest.load(Ordering::Relaxed), self.second.load(Ordering::Relaxed)]
    }

    fn set(&self, [longest, second]: [u32; 2]) {
        self.longest.store(longest, Ordering::Relaxed);
        self.second.store(second, Ordering::Relaxed);
    }

    fn add(&self, span: u32) {
        self.set(two_longest(self.get(), [span, 0]));
    }
}

/// What was seen of one kernel. Of two threads that add at once, one may add nothing.
pub struct Lately {
    count: AtomicU32,
    now: Two,
    before: Two,
}

impl Lately {
    pub const fn new() -> Lately {
        Lately { count: AtomicU32::new(0), now: Two::new(), before: Two::new() }
    }

    /// Earlier runs have seen blocks of this length. It is believed until it would have been seen again.
    pub fn expect(&self, block: Nanos) {
        let block = word(block);
        self.before.set(two_longest(self.before.get(), [block, block]));
    }

    /// A block took so long; how long is to be counted upon.
    pub fn see(&self, block: Nanos) -> Nanos {
        let count = self.count.load(Ordering::Relaxed);
        if count > 0 && count.is_multiple_of(MANY) {
            self.before.set(self.now.get());
            self.now.set([0; 2]);
        }
        self.count.store(count.wrapping_add(1), Ordering::Relaxed);
        self.now.add(word(block));
        let [longest, second] = two_longest(self.now.get(), self.before.get());
        Nanos(u64::from(if second > 0 { second } else { longest }))
    }
}

fn word(span: Nanos) -> u32 {
    // Nought is that nothing was seen.
    u32::try_from(span.0).unwrap_or(u32::MAX).max(1)
}

/// The two longest of two pairs, each with its longest first.
fn two_longest([a, b]: [u32; 2], [c, d]: [u32; 2]) -> [u32; 2] {
    if a >= c { [a, b.max(c)] } else { [c, a.max(d)] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn micros(count: u64) -> Nanos {
        Nanos::from_micros(count)
    }

    #[test]
    fn one_is_taken_at_its_word_and_an_accident_is_not() {
        let lately = Lately::new();
        assert_eq!(lately.see(micros(2_000)), micros(2_000), "there is nothing better");
        assert_eq!(lately.see(micros(10)), micros(10));
        assert_eq!(lately.see(micros(12)), micros(12));
        assert_eq!(lately.see(micros(3_000)), micros(2_000), "the second of its kind");
    }

    #[test]
    fn what_does_not_come_again_is_forgotten() {
        let lately = Lately::new();
        let spans = [2_000; 2].into_iter().chain([10; 64]);
        let counted: Vec<Nanos> = spans.map(|span| lately.see(micros(span))).collect();
        assert_eq!((counted[31], counted[65]), (micros(2_000), micros(10)));
    }

    #[test]
    fn what_is_expected_holds_until_it_would_have_been_seen() {
        let lately = Lately::new();
        lately.expect(micros(500));
        let counted: Vec<Nanos> = (0..40).map(|_| lately.see(micros(10))).collect();
        assert_eq!((counted[0], counted[31]), (micros(500), micros(500)));
        assert_eq!(counted[32], micros(10));
    }

    #[test]
    fn what_no_word_holds_is_as_long_as_can_be_and_nothing_is_something() {
        let lately = Lately::new();
        assert_eq!(lately.see(Nanos::MAX), Nanos(u32::MAX.into()));
        assert_eq!(lately.see(Nanos::ZERO), Nanos(1));
    }

    proptest! {
        /// Whatever comes: never more than the longest, and nothing that came twice among the last 32 is missed.
        #[test]
        fn the_second_longest_of_the_last_counts(spans in prop::collection::vec(1_u64..1_000, 2..200)) {
            let lately = Lately::new();
            let counted = spans.iter().map(|&span| lately.see(Nanos(span)).0).last().unwrap();
            let second_of = |last: usize| {
                let mut last: Vec<u64> = spans.iter().rev().take(last).copied().collect();
                last.sort_unstable();
                last[last.len() - 2]
            };
            prop_assert!((second_of(32)..=second_of(64)).contains(&counted));
        }
    }
}
