//! Writing a zip file: what a wheel is inside. Names in order, one time for all, modes as on Unix; no file over 4 GiB.

use std::io::Write as _;

use anyhow::{Context, Result};
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// Version 2.0 of the format, as whoever packs with deflate needs; made on Unix.
const NEEDS: u16 = 20;
const MADE_BY: u16 = 3 << 8 | NEEDS;
const DEFLATED: u16 = 8;
/// Names are UTF-8.
const UTF_8: u16 = 1 << 11;
const REGULAR: u32 = 0o100_000;

pub struct Zip {
    bytes: Vec<u8>,
    /// The list at the end, of everything that was put in.
    list: Vec<u8>,
    count: u16,
    /// Date and time as MS-DOS wrote them.
    time: (u16, u16),
    packing: Compression,
}

impl Zip {
    /// `time` is in seconds since 1970, and not before 1980.
    pub fn new(time: u64, small: bool) -> Zip {
        let ((year, month, day), second) = (date(time / 86_400), time % 86_400);
        let clock = (second / 3600) << 11 | (second / 60 % 60) << 5 | (second % 60 / 2);
        let calendar = year.saturating_sub(1980) << 9 | month << 5 | day;
        let half = |value: u64| u16::try_from(value).unwrap_or(u16::MAX);
        Zip {
            bytes: Vec::new(),
            list: Vec::new(),
            count: 0,
            time: (half(clock), half(calendar)),
            packing: if small { Compression::best() } else { Compression::fast() },
        }
    }

    pub fn put(&mut self, name: &str, bytes: &[u8], mode: u32) -> Result<()> {
        let mut packer = DeflateEncoder::new(Vec::new(), self.packing);
        packer.write_all(bytes)?;
        let packed = packer.finish()?;
        let mut sum = Crc::new();
        sum.update(bytes);
        let small = |length: usize| u32::try_from(length).context("too large for a wheel");
        let place = small(self.bytes.len())?;
        let length = u16::try_from(name.len()).context("a name too long for a wheel")?;
        let mut common = Vec::new();
        for half in [NEEDS, UTF_8, DEFLATED, self.time.0, self.time.1] {
            common.extend(half.to_le_bytes());
        }
        for word in [sum.sum(), small(packed.len())?, small(bytes.len())?] {
            common.extend(word.to_le_bytes());
        }
        common.extend(length.to_le_bytes());
        // Nothing extra.
        common.extend([0; 2]);

        self.bytes.extend(*b"PK\x03\x04");
        self.bytes.extend(&common);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(packed);

        self.list.extend(*b"PK\x01\x02");
        self.list.extend(MADE_BY.to_le_bytes());
        self.list.extend(common);
        // No comment, the first disk, not a text in particular.
        self.list.extend([0; 6]);
        self.list.extend(((REGULAR | mode) << 16).to_le_bytes());
        self.list.extend(place.to_le_bytes());
        self.list.extend(name.as_bytes());
        self.count = self.count.checked_add(1).context("too many files for a wheel")?;
        Ok(())
    }

    pub fn finish(mut self) -> Result<Vec<u8>> {
        let place = u32::try_from(self.bytes.len()).context("too large for a wheel")?;
        let length = u32::try_from(self.list.len()).context("too many files for a wheel")?;
        self.bytes.extend(self.list);
        self.bytes.extend(*b"PK\x05\x06\0\0\0\0");
        self.bytes.extend(self.count.to_le_bytes());
        self.bytes.extend(self.count.to_le_bytes());
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(place.to_le_bytes());
        self.bytes.extend([0; 2]);
        Ok(self.bytes)
    }
}

/// Year, month and day of a day that is counted from the first of 1970.
pub fn date(day: u64) -> (u64, u64, u64) {
    // By eras of 400 years, each beginning with March, so that the odd day of a leap year is the last one.
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + later, month, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(11_017), (2000, 3, 1));
        assert_eq!(date(20_773), (2026, 11, 16));
    }

    #[test]
    fn the_same_files_give_the_same_bytes_and_are_all_in_the_list() {
        let made = || {
            let mut zip = Zip::new(1_794_795_601, true);
            zip.put("a/b.txt", &b"again and ".repeat(50), 0o644).unwrap();
            zip.put("c", b"", 0o755).unwrap();
            zip.finish().unwrap()
        };
        let bytes = made();
        assert_eq!(bytes, made());
        let end = bytes.len() - 22;
        assert_eq!((&bytes[end..end + 4], bytes[end + 10]), (&b"PK\x05\x06"[..], 2));
        let list = u32::from_le_bytes(bytes[end + 16..end + 20].try_into().unwrap()) as usize;
        assert_eq!(&bytes[list..list + 4], b"PK\x01\x02");
        assert!(bytes.len() < 300, "it is packed");
    }
}
