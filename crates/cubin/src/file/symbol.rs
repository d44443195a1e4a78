//! The symbol table.

use super::section::Names;
use crate::Error;
use crate::bytes::Header;

const SYMBOL_BYTES: usize = 24;
/// Where a symbol keeps its size.
const SIZE_AT: usize = 16;

const OBJECT: u8 = 1;
const FUNCTION: u8 = 2;
const SECTION: u8 = 3;
/// In the `other` of a function: a kernel.
const ENTRY: u8 = 0x10;

/// A symbol of a [`File`](super::File).
#[derive(Clone, Copy, Debug)]
pub struct Symbol<'a> {
    pub name: &'a str,
    /// Number of the section it lies in. 0, and some numbers beyond all sections, mean none.
    pub section: usize,
    pub value: u64,
    pub size: u64,
    info: u8,
    other: u8,
}

impl Symbol<'_> {
    pub fn is_kernel(&self) -> bool {
        self.is_function() && self.other & ENTRY != 0
    }

    pub fn is_function(&self) -> bool {
        self.info & 0xf == FUNCTION
    }

    /// A variable.
    pub fn is_object(&self) -> bool {
        self.info & 0xf == OBJECT
    }

    /// It stands for its section.
    pub fn is_section(&self) -> bool {
        self.info & 0xf == SECTION
    }
}

pub(super) fn read<'a>(records: &'a [u8], names: &mut Names<'a>) -> Result<Vec<Symbol<'a>>, Error> {
    if !records.len().is_multiple_of(SYMBOL_BYTES) {
        return Err(Error::Elf("its last symbol is cut off".to_owned()));
    }
    let starts = (0..records.len()).step_by(SYMBOL_BYTES);
    starts.map(|start| symbol(records, start, names)).collect()
}

fn symbol<'a>(records: &'a [u8], start: usize, names: &mut Names<'a>) -> Result<Symbol<'a>, Error> {
    let record = Header::<SYMBOL_BYTES>::read(records, start, "a symbol")?;
    let [info, other] = record.u16(4).to_le_bytes();
    Ok(Symbol {
        name: names.at(record.u32(0))?,
        section: record.u16(6).into(),
        value: record.u64(8),
        size: record.u64(SIZE_AT),
        info,
        other,
    })
}

pub(super) fn write_size(records: &mut [u8], index: usize, size: u64) {
    let at = index * SYMBOL_BYTES + SIZE_AT;
    records[at..at + 8].copy_from_slice(&size.to_le_bytes());
}
