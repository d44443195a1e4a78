//! Some of the SMs of a card.

use std::ops::Range;

use super::layout::MAX_SMS;

const WORDS: usize = MAX_SMS / 64;

/// A set of SMs: those that a grid is confined to. Copied freely, since it is no larger than a few words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmSet([u64; WORDS]);

impl SmSet {
    /// Bytes of the set when it travels through a program's memory.
    pub const BYTES: usize = WORDS * 8;

    /// The SMs with these numbers; no card has any beyond `MAX_SMS`.
    pub fn of(numbers: Range<u32>) -> SmSet {
        let mut set = SmSet::default();
        for sm in numbers.start..numbers.end.min(MAX_SMS as u32) {
            set.0[sm as usize / 64] |= 1 << (sm % 64);
        }
        set
    }

    pub fn contains(&self, sm: u32) -> bool {
        self.0.get(sm as usize / 64).is_some_and(|word| word >> (sm % 64) & 1 != 0)
    }

    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    pub fn is_subset(&self, other: &SmSet) -> bool {
        self.without(other).is_empty()
    }

    pub fn union(&self, other: &SmSet) -> SmSet {
        SmSet(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    pub fn without(&self, other: &SmSet) -> SmSet {
        SmSet(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// The `count` SMs of the set with the lowest numbers, or all of them if there are not that many.
    pub fn lowest(&self, count: u32) -> SmSet {
        let numbers = (0..MAX_SMS as u32).filter(|sm| self.contains(*sm)).take(count as usize);
        numbers.fold(SmSet::default(), |set, sm| set.union(&SmSet::of(sm..sm + 1)))
    }

    pub fn to_bytes(&self) -> [u8; SmSet::BYTES] {
        std::array::from_fn(|byte| self.0[byte / 8].to_le_bytes()[byte % 8])
    }

    /// Any bytes are a set; whether it fits a card is for the caller to say.
    pub fn from_bytes(bytes: &[u8; SmSet::BYTES]) -> SmSet {
        SmSet(std::array::from_fn(|word| {
            u64::from_le_bytes(std::array::from_fn(|byte| bytes[word * 8 + byte]))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_taken_apart_and_put_together() {
        let all = SmSet::of(0..132);
        assert_eq!(all.count(), 132);
        assert!(all.contains(131) && !all.contains(132) && !all.contains(u32::MAX));
        let group = all.lowest(72);
        assert_eq!(group, SmSet::of(0..72));
        let rest = all.without(&group);
        assert_eq!(rest, SmSet::of(72..132));
        assert_eq!(rest.lowest(8), SmSet::of(72..80));
        assert_eq!(rest.lowest(1000), rest);
        assert_eq!(group.union(&rest), all);
        assert!(group.is_subset(&all) && !all.is_subset(&group));
        assert!(group.without(&all).is_empty());
    }

    #[test]
    fn a_set_survives_as_bytes() {
        let set = SmSet::of(3..70).union(&SmSet::of(200..1000));
        assert_eq!(set.count(), 67 + 56);
        assert_eq!(SmSet::from_bytes(&set.to_bytes()), set);
    }
}
