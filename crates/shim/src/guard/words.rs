//! Words in a row, in a place that has room for the most there can be.
//!
//! A launch may have four thousand bytes of parameters, and has a hundred. To clear and to move the room for the rest cost
//! every guarded launch more than all else that is done for it. So only words that are in use are ever written.

use std::mem::MaybeUninit;

pub struct Words<const MOST: usize> {
    /// The first `count` of them have been written.
    room: [MaybeUninit<u64>; MOST],
    count: usize,
}

impl<const MOST: usize> Words<MOST> {
    #[inline(always)]
    pub const fn new() -> Words<MOST> {
        Words { room: [const { MaybeUninit::uninit() }; MOST], count: 0 }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// So many more, which are nought. `None`: there is no room for them.
    #[inline]
    pub fn grow(&mut self, count: usize) -> Option<&mut [u64]> {
        let more = self.room.get_mut(self.count..)?.get_mut(..count)?;
        more.fill(MaybeUninit::new(0));
        self.count += count;
        // SAFETY: all of them were written just now.
        Some(unsafe { more.assume_init_mut() })
    }

    /// Adds these. `None`: there is no room for them.
    #[inline]
    pub fn add(&mut self, words: &[u64]) -> Option<()> {
        self.grow(words.len())?.copy_from_slice(words);
        Some(())
    }

    /// Forgets all but the first so many.
    #[inline]
    pub fn shorten(&mut self, count: usize) {
        self.count = self.count.min(count);
    }

    #[inline]
    pub fn all(&self) -> &[u64] {
        // SAFETY: so many have been written.
        unsafe { self.room[..self.count].assume_init_ref() }
    }

    #[inline]
    pub fn all_mut(&mut self) -> &mut [u64] {
        // SAFETY: so many have been written.
        unsafe { self.room[..self.count].assume_init_mut() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_added_up_to_the_most() {
        let mut words = Words::<4>::new();
        assert_eq!((words.all(), words.count()), (&[][..], 0));
        words.add(&[1, 2, 3]).unwrap();
        assert_eq!(words.add(&[4, 5]), None);
        assert_eq!(words.all(), [1, 2, 3], "what has no room leaves nothing");
        words.add(&[4]).unwrap();
        assert_eq!(words.grow(usize::MAX), None);
        assert_eq!(words.all_mut(), [1, 2, 3, 4]);
    }

    #[test]
    fn what_comes_where_others_were_is_nought() {
        let mut words = Words::<4>::new();
        words.add(&[1, 2, 3]).unwrap();
        words.shorten(1);
        words.shorten(2);
        assert_eq!(words.all(), [1]);
        assert_eq!(words.grow(2).unwrap(), [0, 0]);
        assert_eq!(words.all(), [1, 0, 0]);
    }
}
