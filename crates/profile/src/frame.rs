//! Frames: how records lie in a file, or in a message, one behind the other.
//!
//! ```text
//! marker   u32   where a frame may begin
//! length   u32   of the payload, at most MOST_PAYLOAD
//! sum      u64   of the payload, seeded with its length
//! payload
//! ```
//!
//! Numbers are little-endian. A frame vouches for itself, so what is damaged costs the frames it lies in and no other: a reader
//! that finds no frame looks for the next marker. Two kinds of damage are met. A process that is killed while it appends leaves
//! the beginning of a frame, and whoever appends next writes right behind it. A disk that fails changes anything at all.

use xxhash_rust::xxh3::xxh3_64_with_seed;

const MARKER: [u8; 4] = *b"\xebbF1";
const HEAD: usize = 16;

/// No payload is longer. It also bounds what a lie about a length can make a reader do.
pub(crate) const MOST_PAYLOAD: usize = 16 << 10;

/// So many frames with a sum that is wrong are looked at, each as long as it says. Bytes that were made to look like more of
/// them are not worth the time.
const MOST_WRONG: u32 = 4096;

/// What was not read, of some bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// How many bytes.
    pub bytes: usize,
    /// In how many places. One at the very end may be somebody who is writing just now.
    pub places: usize,
}

impl Damage {
    pub fn is_none(self) -> bool {
        self.places == 0
    }

    pub(crate) fn and(self, other: Damage) -> Damage {
        Damage { bytes: self.bytes + other.bytes, places: self.places + other.places }
    }

    pub(crate) fn add(&mut self, bytes: usize) {
        if bytes > 0 {
            self.bytes += bytes;
            self.places += 1;
        }
    }
}

/// Appends a frame; `false`, and nothing is written, if the payload is too long.
pub(crate) fn write(bytes: &mut Vec<u8>, payload: &[u8]) -> bool {
    if payload.len() > MOST_PAYLOAD {
        return false;
    }
    let length = u32::try_from(payload.len()).expect("it is bounded");
    bytes.extend(MARKER);
    bytes.extend(length.to_le_bytes());
    bytes.extend(sum(payload).to_le_bytes());
    bytes.extend(payload);
    true
}

/// How long a frame with such a payload is.
pub(crate) const fn length(payload: usize) -> usize {
    HEAD + payload
}

fn sum(payload: &[u8]) -> u64 {
    xxh3_64_with_seed(payload, payload.len() as u64)
}

/// The payloads of all frames that are whole. What lay between them is in `damage` when the last has been given.
pub(crate) struct Frames<'a> {
    rest: &'a [u8],
    wrong: u32,
    pub damage: Damage,
}

impl<'a> Frames<'a> {
    pub fn of(bytes: &'a [u8]) -> Frames<'a> {
        Frames { rest: bytes, wrong: 0, damage: Damage::default() }
    }

    /// The payload of a frame at the beginning of some bytes.
    fn first(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let rest = bytes.strip_prefix(&MARKER)?;
        let (length, rest) = rest.split_first_chunk()?;
        let (given, rest) = rest.split_first_chunk()?;
        let length =
            usize::try_from(u32::from_le_bytes(*length)).ok().filter(|&length| length <= MOST_PAYLOAD)?;
        let payload = rest.get(..length)?;
        if sum(payload) == u64::from_le_bytes(*given) {
            return Some(payload);
        }
        self.wrong += 1;
        None
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let mut skipped = 0;
        while skipped < self.rest.len() && self.wrong < MOST_WRONG {
            if let Some(payload) = self.first(&self.rest[skipped..]) {
                self.damage.add(skipped);
                self.rest = &self.rest[skipped + length(payload.len())..];
                return Some(payload);
            }
            skipped += 1 + marker(&self.rest[skipped + 1..]);
        }
        self.damage.add(self.rest.len());
        self.rest = &[];
        None
    }
}

/// How many bytes there are before the next marker, or in all.
fn marker(bytes: &[u8]) -> usize {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|&byte| byte == MARKER[0]) {
        if bytes[from + at..].starts_with(&MARKER) {
            return from + at;
        }
        from += at + 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framed(payloads: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert!(payloads.iter().all(|payload| write(&mut bytes, payload)));
        bytes
    }

    fn read(bytes: &[u8]) -> (Vec<&[u8]>, Damage) {
        let mut frames = Frames::of(bytes);
        let payloads = frames.by_ref().collect();
        (payloads, frames.damage)
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = framed(&[b"one", b"", b"three"]);
        assert_eq!(read(&bytes), (vec![&b"one"[..], b"", b"three"], Damage::default()));
    }

    #[test]
    fn a_payload_that_is_too_long_is_not_written() {
        let mut bytes = Vec::new();
        assert!(write(&mut bytes, &[0; MOST_PAYLOAD]) && !write(&mut bytes, &[0; MOST_PAYLOAD + 1]));
        assert_eq!(bytes.len(), length(MOST_PAYLOAD));
    }

    #[test]
    fn a_changed_byte_costs_its_frame_and_no_other() {
        let whole: [&[u8]; 3] = [b"first", b"second", b"third"];
        let bytes = framed(&whole);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x20;
            let (payloads, damage) = read(&changed);
            assert_eq!((payloads.len(), damage.places), (2, 1), "byte {at}");
            assert!(payloads.iter().all(|payload| whole.contains(payload)));
        }
    }

    #[test]
    fn what_is_appended_behind_a_torn_frame_is_found() {
        let torn = framed(&[b"torn before it was whole"]);
        for cut in 0..torn.len() {
            let bytes = [&framed(&[b"before"])[..], &torn[..cut], &framed(&[b"behind"])].concat();
            let damage = Damage { bytes: cut, places: usize::from(cut > 0) };
            assert_eq!(read(&bytes), (vec![&b"before"[..], b"behind"], damage), "cut at {cut}");
        }
    }

    #[test]
    fn a_payload_may_hold_what_looks_like_a_frame() {
        let inner = framed(&[b"inner"]);
        let bytes = framed(&[&inner, b"next"]);
        assert_eq!(read(&bytes).0, [&inner[..], b"next"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let (payloads, damage) = read(&bytes);
            let read: usize = payloads.iter().map(|payload| length(payload.len())).sum();
            prop_assert_eq!(read + damage.bytes, bytes.len());
        }

        #[test]
        fn frames_are_found_in_any_surroundings(before: Vec<u8>, payload: Vec<u8>, behind: Vec<u8>) {
            let bytes = [&before[..], &framed(&[&payload]), &behind].concat();
            let (payloads, damage) = read(&bytes);
            prop_assert_eq!(payloads, [&payload[..]]);
            prop_assert_eq!(damage.bytes, before.len() + behind.len());
        }
    }
}
