//! Random numbers that are the same for the same seed, on every machine and in every version of a library.

/// A stream of numbers: splitmix64, small and good enough for times between arrivals.
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// Above zero and at most one, so that it has a logarithm.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 1.0) / (1u64 << 53) as f64
    }

    /// With mean one.
    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// With mean zero and deviation one, by Marsaglia's polar method.
    fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }

    /// Gamma-distributed with mean one and the given coefficient of variation, after Marsaglia and Tsang.
    ///
    /// Their method wants a shape of at least one. A smaller one, which is what bursty arrivals have, is drawn with the
    /// shape plus one and pulled towards zero by a power of a uniform number, as they propose.
    pub fn gamma(&mut self, cv: f64) -> f64 {
        let shape = 1.0 / (cv * cv);
        if shape >= 1.0 {
            return self.gamma_of_shape(shape) / shape;
        }
        let boosted = self.gamma_of_shape(shape + 1.0);
        boosted * self.uniform().powf(1.0 / shape) / shape
    }

    fn gamma_of_shape(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.uniform().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}

/// The seed of one tenant's arrivals in one repetition. Tenants and repetitions must not draw the same numbers, and a
/// tenant must draw the same ones whoever is beside it: else it could not be compared with itself alone.
pub fn stream_seed(seed: u64, tenant: &str, repetition: u32) -> u64 {
    let name = tenant.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        // FNV-1a: the names are short and nobody chooses them to collide.
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mixed(mixed(seed) ^ mixed(name).rotate_left(17) ^ mixed(u64::from(repetition)).rotate_left(41))
}

fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
