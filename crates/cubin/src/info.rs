//! `.nv.info`: what a compiler tells the driver about kernels, as a list of records.
//!
//! A record is a byte for its format, a byte for what it is about (its *attribute*) and a value: two bytes, or, for the
//! format [`LONG`], a length of two bytes and that many. Nobody documents the list, and every compiler adds to it; so
//! records are passed on as they are unless somebody knows better.

use crate::Error;

/// The format of records that say how long they are.
pub const LONG: u8 = 4;
/// The format of records whose value is one byte.
pub const BYTE: u8 = 2;

/// What records are about, as far as it matters here. Names are those of NVIDIA's tools.
pub mod attribute {
    /// In which constant bank parameters lie: a symbol, then their first byte and how many there are, 16 bits each.
    pub const PARAM_CBANK: u8 = 0x0a;
    /// A parameter: 32 bits, its number (16), its offset (16), its size in the upper 14 bits of 32.
    pub const KPARAM_INFO: u8 = 0x17;
    /// How many bytes of parameters there are.
    pub const CBANK_PARAM_SIZE: u8 = 0x19;
    /// Where a kernel ends: 32 bits for each `EXIT`.
    pub const EXIT_INSTR_OFFSETS: u8 = 0x1c;
    /// Registers of a thread: a symbol and their number.
    pub const REGCOUNT: u8 = 0x2f;
    /// A parameter, in kernels with so many that the older record could not hold them: its size is in the lower 24 bits.
    pub const KPARAM_INFO_V2: u8 = 0x45;
    /// How many named barriers a block uses.
    pub const NUM_BARRIERS: u8 = 0x4c;
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub format: u8,
    pub attribute: u8,
    /// Without the length that precedes it where the format has one.
    pub value: &'a [u8],
    /// Where the value begins in the section.
    pub at: usize,
}

impl Record<'_> {
    /// The 32 bits at byte `at` of the value.
    pub fn u32(&self, at: usize) -> Option<u32> {
        let bytes = self.value.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    }

    /// The 16 bits at byte `at` of the value.
    pub fn u16(&self, at: usize) -> Option<u16> {
        let bytes = self.value.get(at..)?.first_chunk()?;
        Some(u16::from_le_bytes(*bytes))
    }
}

/// The records of a section. The first that is cut off is an error, and the last.
pub fn records(section: &[u8]) -> impl Iterator<Item = Result<Record<'_>, Error>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = section.get(at..).filter(|rest| !rest.is_empty())?;
        let record = record(rest, at);
        at = match &record {
            Some(record) => record.at + record.value.len(),
            None => section.len(),
        };
        Some(record.ok_or_else(|| Error::Elf("a record about a kernel is cut off".to_owned())))
    })
}

fn record(rest: &[u8], at: usize) -> Option<Record<'_>> {
    let &[format, attribute, low, high] = rest.first_chunk()?;
    let (start, length) = match format {
        LONG => (4, usize::from(u16::from_le_bytes([low, high]))),
        _ => (2, 2),
    };
    let value = rest.get(start..start + length)?;
    Some(Record { format, attribute, value, at: at + start })
}

/// Appends a record to those of a section. Panics if a value is longer than its format can say.
pub fn append(section: &mut Vec<u8>, format: u8, attribute: u8, value: &[u8]) {
    section.extend_from_slice(&[format, attribute]);
    match format {
        LONG => {
            let length = u16::try_from(value.len()).expect("the caller keeps values short");
            section.extend_from_slice(&length.to_le_bytes());
        }
        _ => assert_eq!(value.len(), 2, "records of this format hold two bytes"),
    }
    section.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_out_as_they_went_in() {
        let mut section = Vec::new();
        append(&mut section, LONG, 0x17, &[1, 2, 3, 4, 5]);
        append(&mut section, 3, 0x1b, &[0xff, 0]);
        append(&mut section, LONG, 0x1c, &[]);
        let read: Vec<_> = records(&section).map(|record| record.expect("it is whole")).collect();
        let mut again = Vec::new();
        for record in &read {
            append(&mut again, record.format, record.attribute, record.value);
        }
        assert_eq!(again, section);
        let values: Vec<_> = read.iter().map(|record| (record.attribute, record.value)).collect();
        assert_eq!(values, [(0x17, &[1, 2, 3, 4, 5][..]), (0x1b, &[0xff, 0]), (0x1c, &[])]);
    }

    #[test]
    fn a_record_that_is_cut_off_ends_the_list() {
        for section in [&[4u8][..], &[4, 0x17, 1, 0], &[3, 0x1b, 0], &[4, 0x17, 0xff, 0xff, 1, 2]] {
            let read: Vec<_> = records(section).collect();
            assert_eq!(read.len(), 1);
            assert!(read[0].is_err(), "{section:?}");
        }
    }
}
