//! What an ELF program says about itself before it runs.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::read::{FileKind, ReadCache, ReadRef};

use crate::{Architecture, Error};

pub(super) struct Described {
    pub architecture: Architecture,
    /// The program that the kernel starts first, which loads libraries: a static program has none.
    pub loader: Option<PathBuf>,
}

pub(super) fn describe(path: &Path) -> Result<Described, Error> {
    let file = File::open(path).map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
    // Programs may be large, and little of them is looked at.
    let data = ReadCache::new(file);
    let described = match FileKind::parse(&data) {
        Ok(FileKind::Elf32) => read::<FileHeader32<Endianness>, _>(&data, 32),
        Ok(FileKind::Elf64) => read::<FileHeader64<Endianness>, _>(&data, 64),
        _ => return Err(Error::NoProgram { path: path.to_owned() }),
    };
    described.map_err(|error| Error::Damaged { path: path.to_owned(), reason: error.to_string() })
}

fn read<'a, Elf: FileHeader, R: ReadRef<'a>>(data: R, bits: u8) -> object::read::Result<Described> {
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let architecture = Architecture::new(header.e_machine(endian).0, bits);
    let mut loader = None;
    for segment in header.program_headers(endian, data)? {
        if let Some(name) = segment.interpreter(endian, data)? {
            loader = Some(PathBuf::from(OsStr::from_bytes(name)));
        }
    }
    Ok(Described { architecture, loader })
}
