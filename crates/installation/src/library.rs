//! A library file: whose, for what, exporting which names.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{DT_SONAME, FileHeader32, FileHeader64, SHT_DYNSYM, STB_LOCAL, STT_FUNC, STT_GNU_IFUNC};
use object::elf::{STT_OBJECT, STT_TLS};
use object::read::elf::{FileHeader, Sym, SymbolTable};
use object::read::{FileKind, ReadCache, ReadRef};

use crate::search::SHIM_MARK;
use crate::{Architecture, Error};

/// A driver's names have some tens of kilobytes. Symbols may share one long name, so that a small file would make
/// long work.
const MOST_NAMES: usize = 1 << 24;

/// What an exported name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Function,
    Object,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    pub name: String,
    pub kind: Kind,
}

/// A library for this machine's architecture.
#[derive(Clone, Debug)]
pub struct Library {
    /// As it was asked for.
    pub path: PathBuf,
    /// After all links: the name of a driver's file ends in its version.
    pub real_path: PathBuf,
    /// The name by which the loader knows it once it is loaded.
    pub soname: Option<String>,
    /// What others may use, in the order of the file.
    pub exports: Vec<Export>,
}

impl Library {
    pub fn read(path: &Path) -> Result<Library, Error> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::NoFile { path: path.to_owned() },
            _ => Error::Unreadable { path: path.to_owned(), source },
        };
        let real_path = fs::canonicalize(path).map_err(failed)?;
        let file = File::open(&real_path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_dir() {
            return Err(Error::Folder { path: path.to_owned() });
        }
        // A driver has nearly a hundred megabytes, of which its names are a few.
        let data = ReadCache::new(file);
        let read = match FileKind::parse(&data) {
            Ok(FileKind::Elf32) => read::<FileHeader32<Endianness>, _>(&data, 32),
            Ok(FileKind::Elf64) => read::<FileHeader64<Endianness>, _>(&data, 64),
            _ => return Err(Error::NotElf { path: path.to_owned() }),
        };
        let damaged = |reason| Error::Damaged { path: path.to_owned(), reason };
        let (architecture, soname, exports) = read.map_err(damaged)?;
        if architecture != Architecture::HERE {
            return Err(Error::Architecture { path: path.to_owned(), found: architecture });
        }
        Ok(Library { path: path.to_owned(), real_path, soname, exports })
    }

    /// Whether it is ebb's own stand-in for the driver.
    pub fn is_shim(&self) -> bool {
        self.exports(SHIM_MARK)
    }

    /// Whether it can be asked for a GPU.
    pub fn is_driver(&self) -> bool {
        self.exports("cuInit")
    }

    fn exports(&self, name: &str) -> bool {
        self.exports.iter().any(|export| export.name == name)
    }

    /// The driver's version, `580.159.04` for `libcuda.so.580.159.04`.
    pub fn version(&self) -> Option<&str> {
        version(&self.real_path)
    }
}

/// The version of the driver whose library a file is, links followed, as its name tells.
pub fn version(real_path: &Path) -> Option<&str> {
    let version = real_path.file_name()?.to_str()?.strip_prefix("libcuda.so.")?;
    // Jetson's library is `libcuda.so.1.1`, which is not the version of anything.
    crate::machine::is_driver_version(version).then_some(version)
}

type Contents = (Architecture, Option<String>, Vec<Export>);

fn read<'a, Elf: FileHeader<Endian = Endianness>, R: ReadRef<'a>>(
    data: R,
    bits: u8,
) -> Result<Contents, String> {
    let header = Elf::parse(data).map_err(reason)?;
    let endian = header.endian().map_err(reason)?;
    let architecture = Architecture::new(header.e_machine(endian).0, bits);
    let sections = header.sections(endian, data).map_err(reason)?;
    let dynamic = sections.dynamic_table(endian, data).map_err(reason)?;
    let soname = dynamic.iter().find(|entry| entry.tag == DT_SONAME);
    let soname = soname.map(|entry| dynamic.string(entry)).transpose().map_err(reason)?.map(text);
    let symbols = sections.symbols(endian, data, SHT_DYNSYM).map_err(reason)?;
    Ok((architecture, soname, exports(&symbols, endian)?))
}

fn exports<'a, Elf: FileHeader, R: ReadRef<'a>>(
    symbols: &SymbolTable<'a, Elf, R>,
    endian: Elf::Endian,
) -> Result<Vec<Export>, String> {
    let mut exports = Vec::new();
    let mut named = 0;
    for symbol in symbols.iter() {
        if symbol.is_undefined(endian) || symbol.st_bind() == STB_LOCAL {
            continue;
        }
        let name = symbol.name(endian, symbols.strings()).map_err(reason)?;
        named += name.len();
        if named > MOST_NAMES {
            return Err("its names have no end".to_owned());
        }
        let kind = match symbol.st_type() {
            STT_FUNC | STT_GNU_IFUNC => Kind::Function,
            STT_OBJECT | STT_TLS => Kind::Object,
            _ => Kind::Other,
        };
        exports.push(Export { name: text(name), kind });
    }
    Ok(exports)
}

fn reason(error: object::read::Error) -> String {
    error.to_string()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::symlink;

    /// The C library of this machine: a real file with names everybody knows.
    fn c_library() -> Option<PathBuf> {
        let cache = fs::read("/etc/ld.so.cache").ok()?;
        let path = crate::cache::paths(&cache, b"libc.so.6").next()?;
        Some(PathBuf::from(String::from_utf8(path.to_vec()).ok()?))
    }

    #[test]
    fn a_library_says_its_name_and_what_it_exports() {
        let Some(path) = c_library() else {
            eprintln!("skipped: no C library is known to the loader");
            return;
        };
        let library = Library::read(&path).unwrap();
        assert_eq!(library.soname.as_deref(), Some("libc.so.6"));
        let kind = |name| library.exports.iter().find(|export| export.name == name).map(|export| export.kind);
        assert_eq!(kind("qsort"), Some(Kind::Function));
        assert_eq!(kind("environ"), Some(Kind::Object));
        assert_eq!(kind("cuInit"), None);
        assert!(!library.is_shim());
        assert_eq!(library.version(), None);
    }

    #[test]
    fn the_version_is_in_the_name_behind_the_links() {
        let Some(path) = c_library() else {
            eprintln!("skipped: no C library is known to the loader");
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::copy(path, at("libcuda.so.580.159.04")).unwrap();
        symlink("libcuda.so.580.159.04", at("libcuda.so.1")).unwrap();
        assert_eq!(Library::read(&at("libcuda.so.1")).unwrap().version(), Some("580.159.04"));
        fs::rename(at("libcuda.so.580.159.04"), at("libcuda.so.1.1")).unwrap();
        assert_eq!(Library::read(&at("libcuda.so.1.1")).unwrap().version(), None);
    }

    #[test]
    fn what_is_no_library_is_called_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("text"), "INPUT(libcuda.so.1)").unwrap();
        fs::write(at("empty"), "").unwrap();
        fs::write(at("stump"), b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0").unwrap();
        symlink("missing", at("dangling")).unwrap();
        let read = |name: &str| Library::read(&at(name)).unwrap_err();
        assert!(matches!(read("text"), Error::NotElf { .. }));
        assert!(matches!(read("empty"), Error::NotElf { .. }));
        assert!(matches!(read("stump"), Error::Damaged { .. }));
        assert!(matches!(read("dangling"), Error::NoFile { .. }));
        assert!(matches!(read("text/below"), Error::NoFile { .. }));
        assert!(matches!(read("."), Error::Folder { .. }));
    }

    /// The bytes of a small library, or nothing where there is no compiler.
    fn compiled() -> Option<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let (source, library) = (folder.path().join("l.c"), folder.path().join("l.so"));
        fs::write(&source, "int cuInit(unsigned f) { return f; }\nint cuData = 1;\n").unwrap();
        let mut compiler = std::process::Command::new("cc");
        compiler.args(["-shared", "-nostdlib", "-Wl,-soname,libcuda.so.1", "-o"]).arg(&library).arg(&source);
        compiler.status().is_ok_and(|status| status.success()).then(|| fs::read(&library).unwrap())
    }

    #[test]
    fn no_damage_makes_the_reader_panic_or_run_away() {
        let Some(good) = compiled() else {
            eprintln!("skipped: there is no C compiler");
            return;
        };
        let read = |bytes: &[u8]| read::<FileHeader64<Endianness>, _>(bytes, 64);
        let (_, soname, exports) = read(&good).unwrap();
        assert_eq!(soname.as_deref(), Some("libcuda.so.1"));
        assert_eq!(exports.iter().filter(|export| export.name.starts_with("cu")).count(), 2);
        let change = (any::<proptest::sample::Index>(), prop_oneof![Just(0u8), Just(0xff), any::<u8>()]);
        let changes = proptest::collection::vec(change, 1..8);
        let mut runner = proptest::test_runner::TestRunner::default();
        let damaged = |changes: Vec<(proptest::sample::Index, u8)>| {
            let mut bytes = good.clone();
            for (at, byte) in changes {
                *at.get_mut(&mut bytes) = byte;
            }
            let named = read(&bytes).map_or(0, |(_, _, exports)| exports.iter().map(|e| e.name.len()).sum());
            prop_assert!(named <= MOST_NAMES);
            Ok(())
        };
        runner.run(&changes, damaged).unwrap();
    }

    #[test]
    fn a_library_for_another_machine_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libcuda.so.1");
        let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x03\0\x01\0\0\0".to_vec();
        file.resize(52, 0);
        fs::write(&path, file).unwrap();
        let message = Library::read(&path).unwrap_err().to_string();
        assert!(message.contains("32-bit x86"), "{message}");
    }
}
