//! Spans as tenants make them, by a seed.

#![allow(dead_code, reason = "every test is a program of its own, and needs some of it")]

use model::Nanos;

/// Numbers that look like chance and are the same in every run (splitmix64).
#[derive(Clone, Debug)]
pub struct Chance(pub u64);

impl Chance {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From nought to one, without the one.
    pub fn part(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// A span between two others.
    pub fn between(&mut self, low: Nanos, high: Nanos) -> Nanos {
        low + Nanos(self.below(high.since(low).0 + 1))
    }

    /// Without memory, as customers come.
    pub fn exponential(&mut self, mean: Nanos) -> Nanos {
        Nanos((-(1.0 - self.part()).ln() * mean.0 as f64) as u64)
    }

    /// Around a span, with a long tail upwards.
    pub fn jittered(&mut self, span: Nanos, by: f64) -> Nanos {
        let normal = (0..12).map(|_| self.part()).sum::<f64>() - 6.0;
        Nanos((span.0 as f64 * (normal * by).exp()) as u64)
    }
}
