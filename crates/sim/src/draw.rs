//! Numbers that look random and depend on nothing but the seed and what they are drawn for.
//!
//! A draw is a function of (seed, tenant's name, job, kernel) rather than the next of a stream, so that nothing that happens to one
//! tenant changes what is drawn for another, and so that a stretch of time can be computed twice with one result.

/// Where one tenant's draws come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source(u64);

impl Source {
    pub fn named(seed: u64, name: &str) -> Source {
        // FNV-1a, then mixed, so that near names are far apart.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Source(mix(seed ^ mix(hash)))
    }

    /// From 0 to below 1, for the `item`-th thing of the `group`-th kind.
    pub fn unit(self, group: u64, item: u64) -> f64 {
        self.group(group).unit(Item::new(item))
    }

    /// From 0 to below `bound`.
    pub fn below(self, group: u64, item: u64, bound: usize) -> usize {
        below(self.unit(group, item), bound)
    }

    /// For many things of one kind.
    pub fn group(self, group: u64) -> Group {
        Group { source: self.0, group: group.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }
}

/// Where the draws of one kind come from.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    source: u64,
    group: u64,
}

/// A thing to draw for. What can be done for it once is done, for those who draw for it again and again.
#[derive(Clone, Copy, Debug)]
pub struct Item(u64);

impl Item {
    pub fn new(number: u64) -> Item {
        Item(mix(number))
    }
}

impl Group {
    pub fn unit(self, item: Item) -> f64 {
        let word = mix(self.source ^ mix(self.group ^ item.0));
        (word >> 11) as i64 as f64 / (1u64 << 53) as f64
    }
}

/// A place from 0 to below 1, as a number below `bound`.
pub fn below(unit: f64, bound: usize) -> usize {
    ((unit * bound as f64) as usize).min(bound.saturating_sub(1))
}

/// The finish of splitmix64: every bit of the result depends on every bit of the word.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
