//! A set of lanes of one site, as one word: who looks for lanes of a kind need not look at all there could be.

use std::sync::atomic::{AtomicU64, Ordering};

use super::control::LANES;

const _: () = assert!(LANES <= u64::BITS as usize);

pub struct Set(AtomicU64);

impl Set {
    pub const fn new() -> Set {
        Set(AtomicU64::new(0))
    }

    pub fn put(&self, number: usize) {
        // SYNC(lanes): whoever finds a lane in a set finds what was written about it before.
        self.0.fetch_or(bit(number), Ordering::Release);
    }

    pub fn take_out(&self, number: usize) {
        self.0.fetch_and(!bit(number), Ordering::Release);
    }

    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// The numbers of those that are in it now, in their order.
    #[inline]
    pub fn all(&self) -> impl Iterator<Item = usize> + use<> {
        self.but(LANES)
    }

    /// Without this one.
    #[inline]
    pub fn but(&self, number: usize) -> impl Iterator<Item = usize> + use<> {
        // SYNC(lanes): pairs with `put`.
        let mut left = self.0.load(Ordering::Acquire) & !bit(number);
        std::iter::from_fn(move || {
            let next = left.trailing_zeros();
            // Nothing is left of nought.
            left &= left.wrapping_sub(1);
            (next < u64::BITS).then_some(next as usize)
        })
    }
}

/// Nought for one that no lane has.
fn bit(number: usize) -> u64 {
    u32::try_from(number).ok().and_then(|number| 1_u64.checked_shl(number)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_found_until_it_is_taken_out() {
        let set = Set::new();
        assert_eq!(set.all().next(), None);
        [63, 0, 7, 7].into_iter().for_each(|number| set.put(number));
        assert_eq!(set.all().collect::<Vec<_>>(), [0, 7, 63]);
        assert_eq!(set.but(7).collect::<Vec<_>>(), [0, 63]);
        assert_eq!(set.but(8).collect::<Vec<_>>(), [0, 7, 63]);
        set.take_out(0);
        set.take_out(1);
        assert_eq!(set.all().collect::<Vec<_>>(), [7, 63]);
        set.clear();
        assert_eq!(set.all().next(), None);
    }
}
