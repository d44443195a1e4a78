//! Cubins as they are stored: every section, in a form that can be changed and written back.
//!
//! A [`File`] borrows what it was read from. Whatever is not changed is copied from there when it is written, so a file
//! that nobody touched comes out as it went in, byte for byte, the unknown and the unused included. Where a section
//! grew, everything behind it moves, and the headers say where to ([`File::write`]).
//!
//! Sections of a file must not overlap, so what is kept of a file is never larger than the file. But two may have the
//! very same bytes, as where code comes both for one device and in a form to be finished for its relatives
//! ([`Section::is_shared`]).

mod layout;
mod section;
mod symbol;

pub use section::{Section, kind};
pub use symbol::Symbol;

use crate::bytes::{Header, slice};
use crate::{Error, Target, Variant};
use section::Names;

/// ELF's number for CUDA devices.
const EM_CUDA: u16 = 190;
/// ELF's type of files that are to be linked before they can be loaded.
const ET_REL: u16 = 1;
/// ABI version from which the architecture is in the second byte of the flags; before, in the first.
const ABI_SM_IN_SECOND_BYTE: u8 = 8;

const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;

/// A cubin, in parts.
#[derive(Clone, Debug)]
pub struct File<'a> {
    bytes: &'a [u8],
    header: FileHeader,
    sections: Vec<Section<'a>>,
    /// Program headers, as read.
    segments: Vec<Header<'a, SEGMENT_BYTES>>,
    symbols: Vec<Symbol<'a>>,
    /// Index of the section that holds the symbols.
    symbol_table: Option<usize>,
}

/// What the first 64 bytes say.
#[derive(Clone, Copy, Debug)]
struct FileHeader {
    target: Target,
    abi: u8,
    relocatable: bool,
    segments_at: usize,
    segment_count: usize,
    sections_at: usize,
    section_count: usize,
    names: usize,
}

impl<'a> File<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<File<'a>, Error> {
        let header = FileHeader::read(bytes)?;
        let names = match header.section_count {
            0 => &[][..],
            _ => header.section(bytes, header.names, "its sections have no names")?,
        };
        let mut names = Names::new(names, bytes.len());
        let sections = (0..header.section_count)
            .map(|index| Section::read(bytes, header.sections_at + index * SECTION_BYTES, &mut names))
            .collect::<Result<Vec<_>, _>>()?;
        let segments = (0..header.segment_count)
            .map(|index| segment(bytes, header.segments_at + index * SEGMENT_BYTES))
            .collect::<Result<Vec<_>, _>>()?;
        let symbol_table = sections.iter().position(|section| section.kind == kind::SYMBOLS);
        let symbols = match symbol_table {
            Some(table) => {
                let names =
                    header.section(bytes, sections[table].link as usize, "its symbols have no names")?;
                let records = header.section(bytes, table, "it has no symbols")?;
                symbol::read(records, &mut Names::new(names, bytes.len()))?
            }
            None => Vec::new(),
        };
        let mut file = File { bytes, header, sections, segments, symbols, symbol_table };
        file.find_shared()?;
        Ok(file)
    }

    /// Number only: the file's header does not tell `sm_90a` from `sm_90`.
    pub fn target(&self) -> Target {
        self.header.target
    }

    /// 7 for CUDA 12, 8 for CUDA 13.
    pub fn abi(&self) -> u8 {
        self.header.abi
    }

    /// Whether the driver has to link it before it can be loaded.
    pub fn is_relocatable(&self) -> bool {
        self.header.relocatable
    }

    /// All sections, in the order of their numbers, the empty section 0 included.
    pub fn sections(&self) -> &[Section<'a>] {
        &self.sections
    }

    /// The first section of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.sections.iter().position(|section| section.name == name)
    }

    /// A section to be changed; the bytes of one that is shared must stay. Panics if there is none of that number, as an
    /// index of a slice would.
    pub fn section_mut(&mut self, index: usize) -> &mut Section<'a> {
        &mut self.sections[index]
    }

    /// All symbols, in the order of their numbers, the empty symbol 0 included.
    pub fn symbols(&self) -> &[Symbol<'a>] {
        &self.symbols
    }

    /// Changes what a symbol says of its size. Panics if there is no symbol of that number.
    pub fn resize_symbol(&mut self, index: usize, size: u64) {
        self.symbols[index].size = size;
        let table = self.symbol_table.expect("a file with symbols has a table of them");
        symbol::write_size(self.sections[table].data.to_mut(), index, size);
    }
}

impl FileHeader {
    fn read(bytes: &[u8]) -> Result<FileHeader, Error> {
        let header = Header::<HEADER_BYTES>::read(bytes, 0, "the file's header")?;
        // Magic, 64 bits, little-endian.
        if !bytes.starts_with(b"\x7fELF\x02\x01") {
            return Err(Error::Elf("it is no ELF file of 64 bits".to_owned()));
        }
        let machine = header.u16(18);
        if machine != EM_CUDA {
            return Err(Error::Machine(machine));
        }
        let abi = bytes[8];
        let flags = header.u32(48);
        let number = match abi >= ABI_SM_IN_SECOND_BYTE {
            true => (flags >> 8) & 0xff,
            false => flags & 0xff,
        };
        let (segment_count, section_count) = (header.u16(56), header.u16(60));
        entry_size("a program header's size", header.u16(54), segment_count, SEGMENT_BYTES)?;
        entry_size("a section header's size", header.u16(58), section_count, SECTION_BYTES)?;
        Ok(FileHeader {
            target: Target { number, variant: Variant::Portable },
            abi,
            relocatable: header.u16(16) == ET_REL,
            segments_at: table(bytes, header.u64(32), segment_count, SEGMENT_BYTES, "the program headers")?,
            segment_count: segment_count.into(),
            sections_at: table(bytes, header.u64(40), section_count, SECTION_BYTES, "the section headers")?,
            section_count: section_count.into(),
            names: header.u16(62).into(),
        })
    }

    /// The bytes of a section, or an error that says what is missing without it.
    fn section<'a>(&self, bytes: &'a [u8], index: usize, missing: &str) -> Result<&'a [u8], Error> {
        match index < self.section_count {
            true => section::data(bytes, self.sections_at + index * SECTION_BYTES),
            false => Err(Error::Elf(missing.to_owned())),
        }
    }
}

fn entry_size(what: &'static str, size: u16, count: u16, expected: usize) -> Result<(), Error> {
    match count == 0 || usize::from(size) == expected {
        true => Ok(()),
        false => Err(Error::Elf(format!("{what} cannot be {size}"))),
    }
}

/// Where a table of headers begins, if all of it is there.
fn table(bytes: &[u8], offset: u64, count: u16, each: usize, what: &'static str) -> Result<usize, Error> {
    if count == 0 {
        return Ok(0);
    }
    let at = usize::try_from(offset).unwrap_or(usize::MAX);
    slice(bytes, at, u64::from(count) * each as u64, what)?;
    Ok(at)
}

fn segment(bytes: &[u8], at: usize) -> Result<Header<'_, SEGMENT_BYTES>, Error> {
    let header = Header::<SEGMENT_BYTES>::read(bytes, at, "a program header")?;
    let offset = usize::try_from(header.u64(8)).unwrap_or(usize::MAX);
    slice(bytes, offset, header.u64(32), "a segment")?;
    Ok(header)
}
