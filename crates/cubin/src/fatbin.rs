//! Fatbin containers.
//!
//! A container is a header of 16 bytes and, back to back, entries: a header of at least 64 bytes, then the
//! payload, padded to 8. Nothing ends the list but the size in the container's header. An application refers to
//! a container through a *wrapper* that holds its address; whoever can follow addresses passes the container on.

use crate::bytes::{Header, slice};
use crate::compression::decompress;
use crate::{Error, Target, Variant, text};
use std::borrow::Cow;
use std::fmt;

pub use crate::compression::{Compression, decompressed_limit};

/// First word of a container.
pub const MAGIC: u32 = 0xBA55_ED50;
/// First word of a wrapper: this, a version (1 or 2), the address of a container, an address to ignore.
pub const WRAPPER_MAGIC: u32 = 0x4662_43B1;
/// Size of a container's header.
pub const HEADER_BYTES: usize = 16;

const ENTRY_BYTES: usize = 64;

/// The length of a container, header included, from its header alone: for who holds only an address. The bytes
/// are not there just because the header says so.
pub fn container_length(header: &[u8; HEADER_BYTES]) -> Result<u64, Error> {
    let (start, size) = container(header, 0)?;
    (start as u64).checked_add(size).ok_or(Error::Field {
        what: "the container's size",
        offset: 8,
        value: size,
    })
}

/// Where the entries of the container at `offset` begin and how many bytes they take.
fn container(bytes: &[u8], offset: usize) -> Result<(usize, u64), Error> {
    let header = Header::<HEADER_BYTES>::read(bytes, offset, "the container's header")?;
    if header.u32(0) != MAGIC {
        return Err(Error::Unrecognised);
    }
    // The driver knows version 1 only.
    if header.u16(4) != 1 {
        return Err(Error::ContainerVersion(header.u16(4)));
    }
    let start = usize::from(header.u16(6));
    if start < HEADER_BYTES {
        return Err(Error::Field {
            what: "the container's header size",
            offset: offset + 6,
            value: start as u64,
        });
    }
    Ok((offset + start, header.u64(8)))
}

/// A container and its entries.
#[derive(Clone, Debug)]
pub struct Fatbin<'a> {
    pub entries: Vec<Entry<'a>>,
    end: usize,
}

impl<'a> Fatbin<'a> {
    /// Reads the container at the start of `bytes`; what comes after it is left alone.
    pub fn read(bytes: &'a [u8]) -> Result<Fatbin<'a>, Error> {
        Fatbin::read_at(bytes, 0)
    }

    /// Reads containers that stand back to back, as in the `.nv_fatbin` section of a program. The first that
    /// cannot be read is the last told of.
    pub fn read_all(bytes: &'a [u8]) -> impl Iterator<Item = Result<Fatbin<'a>, Error>> {
        let mut offset = Some(0);
        std::iter::from_fn(move || {
            let start = offset.filter(|start| *start < bytes.len())?;
            let fatbin = Fatbin::read_at(bytes, start);
            offset = fatbin.as_ref().ok().map(|fatbin| fatbin.end);
            Some(fatbin)
        })
    }

    fn read_at(bytes: &'a [u8], offset: usize) -> Result<Fatbin<'a>, Error> {
        let (start, size) = container(bytes, offset)?;
        let body = slice(bytes, start, size, "the container")?;
        let end = start + body.len();
        let mut entries = Vec::new();
        let mut at = start;
        while at < end {
            let (entry, next) = Entry::read(&bytes[..end], at)?;
            entries.push(entry);
            at = next;
        }
        Ok(Fatbin { entries, end })
    }

    /// The PTX that a device of this compute capability (90 for 9.0) is best served with: for the highest target
    /// that is not above it. Of several, the driver takes the last. Code for one architecture alone comes before
    /// portable code on that architecture and after all other anywhere else.
    pub fn best_ptx(&self, capability: u32) -> Option<&Entry<'a>> {
        let usable = |entry: &&Entry<'_>| entry.kind == Kind::Ptx && entry.target.number <= capability;
        let rank = |entry: &&Entry<'_>| {
            let Target { number, variant } = entry.target;
            let own = number == capability;
            let portable = match variant {
                Variant::Portable => true,
                Variant::Architecture => own,
                Variant::Family => number / 10 == capability / 10,
            };
            (portable, number, variant == Variant::Architecture)
        };
        self.entries.iter().filter(usable).max_by_key(rank)
    }

    /// The machine code that a device of this compute capability runs, if there is any: that for this very architecture,
    /// else the highest that is not above it, of the same major. It comes before all PTX; of several alike the driver
    /// takes the last.
    pub fn best_cubin(&self, capability: u32) -> Option<&Entry<'a>> {
        let usable = |entry: &&Entry<'_>| {
            let Target { number, variant } = entry.target;
            let own = number == capability || variant != Variant::Architecture;
            entry.kind == Kind::Elf && own && number / 10 == capability / 10 && number <= capability
        };
        let rank = |entry: &&Entry<'_>| {
            let Target { number, variant } = entry.target;
            (number, variant == Variant::Architecture, variant == Variant::Family)
        };
        self.entries.iter().filter(usable).max_by_key(rank)
    }
}

/// What a container holds, in one line: `PTX for compute_80, machine code for sm_90`.
impl fmt::Display for Fatbin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.entries.is_empty() {
            return f.write_str("nothing");
        }
        const SHOWN: usize = 16;
        for (index, entry) in self.entries.iter().take(SHOWN).enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{entry}")?;
        }
        match self.entries.len().checked_sub(SHOWN) {
            Some(more @ 1..) => write!(f, " and {more} more"),
            _ => Ok(()),
        }
    }
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ptx,
    /// A cubin.
    Elf,
    /// LTO intermediate code and whatever comes next.
    Other(u16),
}

/// One image of a container.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    pub kind: Kind,
    pub target: Target,
    /// Major and minor: of the PTX ISA, or of a cubin's ABI.
    pub version: (u16, u16),
    pub compression: Compression,
    /// All flags, known or not.
    pub flags: u64,
    /// Options for the assembler, as `-v -O2 --generate-line-info`; empty where there are none.
    pub options: &'a [u8],
    /// Name of the source file, if one was kept.
    pub name: &'a [u8],
    /// As stored: compressed or not, without padding where its exact size is known.
    pub payload: &'a [u8],
    /// Where the entry stands in the image.
    pub offset: usize,
    uncompressed: u64,
}

mod flag {
    pub const LZ4: u64 = 0x2000;
    pub const ZSTD: u64 = 0x8000;
    pub const ARCHITECTURE: u64 = 0x10_0000;
    pub const FAMILY: u64 = 0x20_0000;
}

impl<'a> Entry<'a> {
    /// The entry at `offset` and where the next one begins. `bytes` end where the container ends.
    fn read(bytes: &'a [u8], offset: usize) -> Result<(Entry<'a>, usize), Error> {
        let header = Header::<ENTRY_BYTES>::read(bytes, offset, "the entry's header")?;
        let header_size = header.u32(4);
        if (header_size as usize) < ENTRY_BYTES {
            return Err(Error::Field {
                what: "the entry's header size",
                offset: offset + 4,
                value: header_size.into(),
            });
        }
        let whole = slice(bytes, offset, header_size.into(), "the entry's header")?;
        let start = offset + whole.len();
        let stored = slice(bytes, start, header.u64(8), "the entry's payload")?;
        let flags = header.u64(40);
        let compression = compression(flags);
        let payload = match compression {
            Compression::None => stored,
            _ => slice(stored, 0, header.u32(16).into(), "the compressed payload")?,
        };
        let entry = Entry {
            kind: kind(header.u16(0)),
            target: target(header.u32(28), flags),
            version: (header.u16(26), header.u16(24)),
            compression,
            flags,
            options: options(whole, header.u32(20)),
            name: piece(whole, header.u32(32), header.u32(36)),
            payload,
            offset,
            uncompressed: header.u64(56),
        };
        Ok((entry, start + stored.len()))
    }

    /// The payload, decompressed. What is stored as it is may be padded with NULs.
    pub fn data(&self) -> Result<Cow<'a, [u8]>, Error> {
        match self.compression {
            Compression::None => Ok(Cow::Borrowed(self.payload)),
            compression => {
                let claimed = self.uncompressed;
                decompress(compression, self.payload, claimed, self.offset).map(Cow::Owned)
            }
        }
    }

    /// The text of a PTX entry.
    pub fn text(&self) -> Result<String, Error> {
        text(&self.data()?).map(str::to_owned)
    }
}

/// `PTX for compute_80`, `machine code for sm_90a`.
impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.target;
        match self.kind {
            Kind::Ptx => write!(f, "PTX for compute_{target}"),
            Kind::Elf => write!(f, "machine code for sm_{target}"),
            Kind::Other(kind) => write!(f, "an image of kind {kind} for {target}"),
        }
    }
}

fn kind(kind: u16) -> Kind {
    match kind {
        1 => Kind::Ptx,
        2 => Kind::Elf,
        other => Kind::Other(other),
    }
}

fn compression(flags: u64) -> Compression {
    match (flags & flag::ZSTD != 0, flags & flag::LZ4 != 0) {
        (true, _) => Compression::Zstd,
        (false, true) => Compression::Lz4,
        (false, false) => Compression::None,
    }
}

fn target(number: u32, flags: u64) -> Target {
    let variant = match (flags & flag::ARCHITECTURE != 0, flags & flag::FAMILY != 0) {
        (true, _) => Variant::Architecture,
        (false, true) => Variant::Family,
        (false, false) => Variant::Portable,
    };
    Target { number, variant }
}

/// The assembler options: a small table at `table` with the offset and length of the text.
fn options(header: &[u8], table: u32) -> &[u8] {
    if table == 0 {
        return &[];
    }
    match Header::<8>::read(header, table as usize, "the options") {
        Ok(table) => piece(header, table.u32(0), table.u32(4)),
        Err(_) => &[],
    }
}

/// Names and options are told, never relied on, so what lies outside the header is simply not there.
fn piece(header: &[u8], offset: u32, length: u32) -> &[u8] {
    let rest = header.get(offset as usize..).unwrap_or(&[]);
    rest.get(..length as usize).unwrap_or(&[])
}
