//! Numbers that look random and are the same on every machine: splitmix64, small enough to be read.

/// A stream of draws. Equal seeds give equal streams.
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    /// The stream that belongs to a text, such as the name of what is drawn for.
    pub fn named(seed: u64, name: &str) -> Draw {
        // FNV-1a; then one step, so that near names are far apart.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut draw = Draw(seed ^ hash);
        Draw(draw.word())
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// From 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From 0 to below `bound`; the bias of the multiplication is far below what any figure shows.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.word()) * bound as u128) >> 64) as usize
    }

    /// With mean 1 and a long tail, as the gaps of a Poisson process.
    pub fn gap(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}
