//! Relocations: what the driver fills in when it loads a cubin.

use crate::bytes::Header;
use crate::file::{File, Section, kind};

/// A place that is filled in with something made of a symbol's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// In the section that is filled in.
    pub offset: u64,
    /// Number of the symbol.
    pub symbol: usize,
    /// How it is filled in.
    pub kind: u32,
}

impl Section<'_> {
    /// The number of the section that these relocations fill in; none if this section has no relocations.
    pub fn relocates(&self) -> Option<usize> {
        let relocations = matches!(self.kind, kind::RELOCATIONS | kind::RELOCATIONS_WITH_ADDEND);
        relocations.then_some(self.info as usize)
    }

    /// The relocations in this section, as far as they are whole.
    pub fn relocations(&self) -> impl Iterator<Item = Relocation> {
        let each = match self.kind {
            kind::RELOCATIONS => 16,
            kind::RELOCATIONS_WITH_ADDEND => 24,
            _ => usize::MAX,
        };
        self.data.chunks_exact(each).map(|record| {
            let record = Header::<16>::read(record, 0, "a relocation");
            let record = record.expect("a relocation has 16 bytes at least");
            let what = record.u64(8);
            Relocation { offset: record.u64(0), symbol: (what >> 32) as usize, kind: what as u32 }
        })
    }
}

impl File<'_> {
    /// Everything that is filled in, in this section, when the file is loaded.
    pub fn relocations_of(&self, section: usize) -> impl Iterator<Item = Relocation> {
        let tables = self.sections().iter().filter(move |table| table.relocates() == Some(section));
        tables.flat_map(Section::relocations)
    }
}
