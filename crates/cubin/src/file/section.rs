//! One section: what its header says, and its bytes.

use super::SECTION_BYTES;
use crate::Error;
use crate::bytes::{Header, slice};
use std::borrow::Cow;

/// Types of sections that mean something here. All others are kept as they are.
pub mod kind {
    /// The empty section 0.
    pub const NONE: u32 = 0;
    /// Instructions, constants and other contents.
    pub const BYTES: u32 = 1;
    pub const SYMBOLS: u32 = 2;
    /// Relocations whose addend is in their record.
    pub const RELOCATIONS_WITH_ADDEND: u32 = 4;
    /// Without bytes in the file: memory that begins as zeros.
    pub const ZEROS: u32 = 8;
    pub const RELOCATIONS: u32 = 9;
    /// Records about kernels, see [`info`](crate::info).
    pub const INFO: u32 = 0x7000_0000;

    /// Whether sections of this kind have no bytes in the file. In files that are to be linked, global, local and
    /// shared memory have kinds of their own.
    pub fn is_zeros(kind: u32) -> bool {
        const GLOBAL: u32 = 0x7000_0007;
        const LOCAL: u32 = 0x7000_0009;
        const SHARED: u32 = 0x7000_000a;
        const SHARED_RESERVED: u32 = 0x7000_0015;
        matches!(kind, ZEROS | GLOBAL | LOCAL | SHARED | SHARED_RESERVED)
    }
}

/// No section of a cubin needs more, and a larger one would be a way to make a small file into a large one.
const MOST_ALIGNMENT: u64 = 4096;

/// A section of a [`File`](super::File). What may be changed is public.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    pub name: &'a str,
    pub kind: u32,
    pub flags: u64,
    pub link: u32,
    pub info: u32,
    /// Empty for sections that have no bytes in the file.
    pub data: Cow<'a, [u8]>,
    /// How many bytes it takes on the device, if it has none in the file.
    pub zeros: u64,
    pub(super) shared: bool,
    pub(super) alignment: usize,
    /// Where its bytes were when the file was read, and how many.
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) header: Header<'a, SECTION_BYTES>,
}

impl<'a> Section<'a> {
    pub(super) fn read(bytes: &'a [u8], at: usize, names: &mut Names<'a>) -> Result<Section<'a>, Error> {
        let header = Header::<SECTION_BYTES>::read(bytes, at, "a section's header")?;
        let data = data(bytes, at)?;
        let alignment = header.u64(48).max(1);
        let usable = alignment.is_power_of_two() && alignment <= MOST_ALIGNMENT;
        if !usable && !data.is_empty() {
            return Err(Error::Elf(format!("a section cannot be aligned to {alignment}")));
        }
        let kind = header.u32(4);
        Ok(Section {
            name: names.at(header.u32(0))?,
            kind,
            flags: header.u64(8),
            link: header.u32(40),
            info: header.u32(44),
            data: Cow::Borrowed(data),
            zeros: if kind::is_zeros(kind) { header.u64(32) } else { 0 },
            shared: false,
            alignment: usize::try_from(alignment).unwrap_or(1),
            offset: usize::try_from(header.u64(24)).unwrap_or(usize::MAX),
            length: data.len(),
            header,
        })
    }

    /// Whether another section has its bytes in the same place of the file.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// How many bytes it has, in the file or on the device.
    pub fn size(&self) -> u64 {
        if kind::is_zeros(self.kind) { self.zeros } else { self.data.len() as u64 }
    }
}

/// The bytes of the section whose header is at `at`.
pub(super) fn data(bytes: &[u8], at: usize) -> Result<&[u8], Error> {
    let header = Header::<SECTION_BYTES>::read(bytes, at, "a section's header")?;
    let kind = header.u32(4);
    if kind == kind::NONE || kind::is_zeros(kind) {
        return Ok(&[]);
    }
    let offset = usize::try_from(header.u64(24)).unwrap_or(usize::MAX);
    slice(bytes, offset, header.u64(32), "a section")
}

/// A table of names. Many entries may share one long name; that must not make a small file into long work, so all
/// names together may not be longer than the file.
pub(super) struct Names<'a> {
    table: &'a [u8],
    budget: usize,
}

impl<'a> Names<'a> {
    pub fn new(table: &'a [u8], budget: usize) -> Names<'a> {
        Names { table, budget }
    }

    pub fn at(&mut self, offset: u32) -> Result<&'a str, Error> {
        // Sections without a name, such as the first, need no table.
        if offset == 0 && self.table.is_empty() {
            return Ok("");
        }
        let rest = self.table.get(offset as usize..);
        let window = rest.map(|rest| &rest[..rest.len().min(self.budget + 1)]);
        let end = window.and_then(|window| window.iter().position(|byte| *byte == 0));
        let Some((rest, end)) = rest.zip(end) else {
            return Err(Error::Elf("a name does not end, or its names overlap".to_owned()));
        };
        self.budget -= end;
        let name = std::str::from_utf8(&rest[..end]);
        name.map_err(|_| Error::Elf("a name is not UTF-8".to_owned()))
    }
}
