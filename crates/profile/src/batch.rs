//! A batch: what one process has to say, in one piece.
//!
//! It is a run of frames, the same that lie in a file: appending it is all there is to keeping it, and it may as well travel
//! through a socket first. A child of a fork has its parent's batch, and must clear it, or what is in it counts twice.

use model::{Kernel, Site};

use crate::codec::{self, Payload};
use crate::frame::{self, Damage, Frames};
use crate::{Error, Record};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    bytes: Vec<u8>,
    records: usize,
}

impl Batch {
    /// No batch is longer, in bytes: somebody waits while one is written.
    pub const ROOM: usize = 256 << 10;

    pub const fn new() -> Batch {
        Batch { bytes: Vec::new(), records: 0 }
    }

    /// Adds what was seen of a kernel since the last batch, not in all: whoever reads it adds it up.
    pub fn add(&mut self, kernel: &Kernel<&str>, site: Option<Site>, record: &Record) -> Result<(), Error> {
        let payload = codec::write(kernel, site, record);
        let payload = payload.ok_or(Error::Name { longest: codec::LONGEST_NAME })?;
        if self.bytes.len() + frame::length(payload.len()) > Batch::ROOM {
            return Err(Error::Full);
        }
        if !frame::write(&mut self.bytes, &payload) {
            return Err(Error::Full);
        }
        self.records += 1;
        Ok(())
    }

    /// What somebody else handed over, as far as it is a batch: records that are whole, up to the room of one.
    pub fn read(bytes: &[u8]) -> (Batch, Damage) {
        let (bytes, beyond) = bytes.split_at(bytes.len().min(Batch::ROOM));
        let mut batch = Batch::new();
        let mut frames = Frames::of(bytes);
        let mut wrong = Damage::default();
        for payload in frames.by_ref() {
            match codec::read(payload) {
                Some(Payload::Record(_)) if frame::write(&mut batch.bytes, payload) => batch.records += 1,
                _ => wrong.add(frame::length(payload.len())),
            }
        }
        wrong.add(beyond.len());
        (batch, frames.damage.and(wrong))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many records there are in it.
    pub fn len(&self) -> usize {
        self.records
    }

    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Begins another, in the same memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{gemm, kernel};
    use proptest::prelude::*;

    fn batch(names: &[&str]) -> Batch {
        let mut batch = Batch::new();
        for name in names {
            batch.add(&kernel(name).kernel.borrowed(), None, &gemm().1).unwrap();
        }
        batch
    }

    #[test]
    fn a_batch_that_has_travelled_is_the_same() {
        let sent = batch(&["a", "b", "c"]);
        assert_eq!(Batch::read(sent.as_bytes()), (sent.clone(), Damage::default()));
        assert_eq!(sent.len(), 3);
    }

    #[test]
    fn a_full_batch_says_so_and_stays_as_it_was() {
        let mut full = Batch::new();
        let (key, record) = gemm();
        while full.add(&key.kernel.borrowed(), None, &record).is_ok() {}
        let before = full.clone();
        assert!(matches!(full.add(&key.kernel.borrowed(), None, &record), Err(Error::Full)));
        assert!(full == before && full.as_bytes().len() <= Batch::ROOM && full.len() > 1000);
        full.clear();
        assert_eq!(full, Batch::new());
    }

    #[test]
    fn what_is_no_record_or_too_much_is_left_out() {
        let mut bytes = batch(&["a"]).as_bytes().to_vec();
        frame::write(&mut bytes, b"\x09 of another kind");
        bytes.extend(b"noise");
        let (read, damage) = Batch::read(&bytes);
        assert_eq!((read, damage.places), (batch(&["a"]), 2));
        let long = vec![0; Batch::ROOM + 10];
        assert_eq!(Batch::read(&long), (Batch::new(), Damage { bytes: long.len(), places: 2 }));
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_batch_that_reads_the_same(at: prop::sample::Index, odd: Vec<u8>) {
            let mut bytes = batch(&["a", "b"]).as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes.splice(at..(at + odd.len() / 2).min(bytes.len()), odd);
            let (read, _) = Batch::read(&bytes);
            prop_assert_eq!(Batch::read(read.as_bytes()), (read, Damage::default()));
        }
    }
}
