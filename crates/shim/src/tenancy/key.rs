//! Which stream is meant.
//!
//! Most streams are known by their handles. The default stream of a thread is the same handle in every thread, and is known
//! by the thread.

/// A stream, as one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub usize);

/// Handles that mean default streams, whichever way a program was compiled.
pub const LEGACY: usize = 1;
pub const PER_THREAD: usize = 2;

impl Key {
    /// `per_thread`: whether the call was one for which stream 0 means the thread's own.
    #[inline]
    pub fn new(handle: usize, per_thread: bool) -> Key {
        match handle {
            0 if !per_thread => Key(LEGACY),
            0 | PER_THREAD => Key(thread()),
            handle => Key(handle),
        }
    }

    /// Whether it is the default stream of a thread. Handles of streams that were made are addresses of words.
    pub fn is_of_thread(self) -> bool {
        self.0 & 3 == PER_THREAD
    }

    /// Whether it is the default stream that all threads share.
    pub fn is_legacy(self) -> bool {
        self.0 == LEGACY
    }

    /// A handle by which the calling thread may name it in any call.
    pub fn handle(self) -> usize {
        if self.is_of_thread() { PER_THREAD } else { self.0 }
    }

    /// A short number that tells streams apart, but for a chance of one in thousands.
    #[inline]
    pub fn short(self) -> u16 {
        spread(self.0, 1 << 16) as u16
    }

    /// Where to look first, in a table of so many places.
    #[inline]
    pub fn place(self, places: usize) -> usize {
        spread(self.0, places)
    }
}

/// A handle's place in a table.
#[inline]
pub fn spread(handle: usize, places: usize) -> usize {
    (handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % places
}

/// A number that no two threads share, marked as what it is.
fn thread() -> usize {
    crate::lock::thread() << 2 | PER_THREAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_streams_of_threads_differ() {
        let here = Key::new(0, true);
        let there = std::thread::scope(|scope| scope.spawn(|| Key::new(2, false)).join().unwrap());
        assert_ne!(here, there);
        assert_eq!(Key::new(2, false), here);
        assert!(here.is_of_thread() && there.is_of_thread());
    }

    #[test]
    fn others_are_the_same_in_all_threads() {
        assert_eq!(Key::new(0, false), Key(1));
        assert_eq!(Key::new(0x7f00_0010, true), Key(0x7f00_0010));
        assert!(!Key::new(0, false).is_of_thread() && !Key::new(0x7f00_0010, true).is_of_thread());
    }
}
