//! Short texts: of fixed size, so that they need no heap and have a place in shared memory.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// A text of at most `N` bytes, by value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label<const N: usize> {
    length: u8,
    bytes: [u8; N],
}

impl<const N: usize> Label<N> {
    const FITS: () = assert!(N <= u8::MAX as usize);

    /// The beginning of `text`, as far as it fits and up to the first zero.
    pub fn new(text: &[u8]) -> Label<N> {
        const { Self::FITS };
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len()).min(N);
        let mut bytes = [0; N];
        bytes[..end].copy_from_slice(&text[..end]);
        Label { length: u8::try_from(end).expect("at most N, which fits"), bytes }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// As a person may see it: what is not text, and what would move a cursor or turn the direction of letters, is replaced.
    pub fn printable(&self) -> String {
        model::text::printable_bytes(self.as_bytes())
    }
}

impl<const N: usize> Default for Label<N> {
    fn default() -> Label<N> {
        Label::new(b"")
    }
}

impl<const N: usize> fmt::Debug for Label<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.as_bytes().escape_ascii())
    }
}

/// A text in the segment. It changes only together with the occupant of its seat, so the seat's generation, read before
/// and after, tells whether what was read belongs together.
#[repr(C)]
pub(crate) struct Text<const N: usize> {
    length: AtomicU32,
    bytes: [AtomicU8; N],
}

impl<const N: usize> Text<N> {
    pub(crate) fn write(&self, text: &Label<N>) {
        self.length.store(u32::from(text.length), Ordering::Relaxed);
        for (place, &byte) in self.bytes.iter().zip(&text.bytes) {
            place.store(byte, Ordering::Relaxed);
        }
    }

    /// Whatever lies there, cut to what can be: the length is an allegation.
    pub(crate) fn read(&self) -> Label<N> {
        let claimed = usize::try_from(self.length.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        let mut bytes = [0; N];
        for (byte, place) in bytes.iter_mut().zip(&self.bytes) {
            *byte = place.load(Ordering::Relaxed);
        }
        Label::new(&bytes[..claimed.min(N)])
    }
}
