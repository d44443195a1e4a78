//! The beginning of a file: that it is one, in which format, and of which platform it tells.
//!
//! ```text
//! magic    8 bytes
//! format   u32   another format is another reader's
//! length   u32   of the whole header
//! base     u64   how long the file was when it was last put in order
//! gpu, driver, ebb   each a u16 and so many bytes of text
//! sum      u64   of all before
//! ```

use xxhash_rust::xxh3::xxh3_64;

use crate::Platform;

/// Changes with anything that a reader must know about headers, frames, records or what their numbers mean.
pub const FORMAT: u32 = 1;

const MAGIC: &[u8; 8] = b"ebbprofl";
const FIXED: usize = 24;
const SUM: usize = 8;
/// Three names and their lengths fit easily.
pub(crate) const LONGEST: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub platform: Platform,
    /// What lies behind it in the file was appended since the file was put in order.
    pub base: u64,
}

/// Why some bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    #[error("it does not begin as one")]
    Magic,
    /// Nothing is wrong with such a file, it is not for us.
    #[error("it is of format {0}, another than this ebb writes")]
    Format(u32),
    #[error("its beginning is damaged")]
    Damaged,
}

impl Header {
    pub fn write(&self) -> Vec<u8> {
        let names = [self.platform.gpu(), self.platform.driver(), self.platform.ebb()];
        let length = FIXED + names.iter().map(|name| 2 + name.len()).sum::<usize>() + SUM;
        let mut bytes = Vec::with_capacity(length);
        bytes.extend(MAGIC);
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend(u32::try_from(length).expect("names are short").to_le_bytes());
        bytes.extend(self.base.to_le_bytes());
        for name in names {
            bytes.extend(u16::try_from(name.len()).expect("names are short").to_le_bytes());
            bytes.extend(name.as_bytes());
        }
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    /// The header of a file, and what comes behind.
    pub fn read(file: &[u8]) -> Result<(Header, &[u8]), BadHeader> {
        let rest = file.strip_prefix(MAGIC).ok_or(BadHeader::Magic)?;
        let (format, rest) = rest.split_first_chunk().ok_or(BadHeader::Damaged)?;
        match u32::from_le_bytes(*format) {
            FORMAT => {}
            // Bits that flip make formats that there will never be.
            other @ 1..=0xffff => return Err(BadHeader::Format(other)),
            _ => return Err(BadHeader::Damaged),
        }
        let (length, _) = rest.split_first_chunk().ok_or(BadHeader::Damaged)?;
        let length = u32::from_le_bytes(*length) as usize;
        let fits = (FIXED + SUM..=LONGEST).contains(&length) && length <= file.len();
        let (header, frames) = file.split_at(if fits { length } else { return Err(BadHeader::Damaged) });
        let (covered, sum) = header.split_at(length - SUM);
        if xxh3_64(covered).to_le_bytes() != sum {
            return Err(BadHeader::Damaged);
        }
        let header = names(&covered[FIXED..]).ok_or(BadHeader::Damaged)?;
        let base = covered[FIXED - 8..].first_chunk().ok_or(BadHeader::Damaged)?;
        Ok((Header { platform: header, base: u64::from_le_bytes(*base) }, frames))
    }
}

fn names(bytes: &[u8]) -> Option<Platform> {
    let mut rest = bytes;
    let mut name = || {
        let (length, behind) = rest.split_first_chunk()?;
        let (name, behind) = behind.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        rest = behind;
        std::str::from_utf8(name).ok()
    };
    let platform = Platform::new(name()?, name()?, name()?);
    rest.is_empty().then_some(platform)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> Header {
        Header { platform: Platform::new("NVIDIA H200", "580.159.04", "0.1.0"), base: 77 }
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = [&header().write()[..], b"frames"].concat();
        assert_eq!(Header::read(&bytes), Ok((header(), &b"frames"[..])));
    }

    #[test]
    fn the_longest_names_fit() {
        let long = "x".repeat(1000);
        let header = Header { platform: Platform::new(&long, &long, &long), base: u64::MAX };
        assert_eq!(Header::read(&header.write()), Ok((header, &[][..])));
    }

    #[test]
    fn every_changed_or_missing_byte_is_noticed() {
        let bytes = header().write();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert!(Header::read(&changed).is_err(), "byte {at}");
            assert!(Header::read(&bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn another_format_is_no_damage() {
        let mut bytes = header().write();
        bytes[8] = 9;
        assert_eq!(Header::read(&bytes), Err(BadHeader::Format(9)));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd_to_refuse(odd in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Header::read(&odd);
            let whole = [&MAGIC[..], &FORMAT.to_le_bytes(), &odd].concat();
            let _ = Header::read(&whole);
        }
    }
}
