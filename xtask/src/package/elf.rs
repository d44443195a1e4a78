//! What a binary asks of the machine it will run on: the versions of libc's symbols that it uses, and the libraries it names.

use std::fmt;

use anyhow::{Context, Result, bail};
use object::Endianness;
use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::FileHeader;

/// Of a libc; of two the later is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// What every Linux with that libc has. A package that needs more would install and then not start.
const EVERYWHERE: [&str; 8] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "librt.so.1",
    "libpthread.so.0",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

/// What has to be installed for a program or library to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The oldest libc that will do.
    pub glibc: Version,
    /// The compiler's own library, by which a panic finds its way. Some linkers put that in.
    pub libgcc: bool,
}

impl Needs {
    pub const NOTHING: Needs = Needs { glibc: Version(2, 0), libgcc: false };

    pub fn and(self, other: Needs) -> Needs {
        Needs { glibc: self.glibc.max(other.glibc), libgcc: self.libgcc || other.libgcc }
    }
}

pub fn needs(bytes: &[u8]) -> Result<Needs> {
    let header = FileHeader64::<Endianness>::parse(bytes).context("no ELF file")?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let dynamic = sections.dynamic_table(endian, bytes)?;
    let mut needs = Needs::NOTHING;
    for entry in dynamic.iter().filter(|entry| entry.tag == DT_NEEDED) {
        let name = String::from_utf8_lossy(dynamic.string(entry)?).into_owned();
        if !EVERYWHERE.contains(&name.as_str()) {
            bail!("needs {name}, which is not on every machine");
        }
        needs.libgcc |= name == "libgcc_s.so.1";
    }
    // A library that uses nothing of libc has no such table.
    let Some((mut files, link)) = sections.gnu_verneed(endian, bytes)? else { return Ok(needs) };
    let strings = sections.strings(endian, bytes, link)?;
    while let Some((_, mut versions)) = files.next()? {
        while let Some(version) = versions.next()? {
            let name = String::from_utf8_lossy(version.name(endian, strings)?).into_owned();
            needs.glibc = needs.glibc.max(of_symbol(&name).unwrap_or(needs.glibc));
        }
    }
    Ok(needs)
}

/// `GLIBC_2.17` and `GLIBC_2.2.5`; what is private to libc, or somebody else's, is no version.
fn of_symbol(name: &str) -> Option<Version> {
    let mut numbers = name.strip_prefix("GLIBC_")?.split('.').map(str::parse::<u32>);
    Some(Version(numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_ordered_as_numbers() {
        assert_eq!(of_symbol("GLIBC_2.2.5"), Some(Version(2, 2)));
        assert!(of_symbol("GLIBC_2.17") < of_symbol("GLIBC_2.28"));
        assert!(of_symbol("GLIBC_2.9") < of_symbol("GLIBC_2.10"));
        assert_eq!(of_symbol("GLIBC_PRIVATE"), None);
        assert_eq!(of_symbol("GCC_3.0"), None);
    }

    #[test]
    fn this_program_needs_a_libc_that_is_here() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        // Some use a library that not every machine has; what is said of it is its name.
        match needs(&bytes) {
            Ok(Needs { glibc, .. }) => assert!(glibc >= Version(2, 2) && glibc < Version(3, 0), "{glibc}"),
            Err(error) => assert!(error.to_string().contains("lib"), "{error}"),
        }
        assert!(needs(b"#!/bin/sh\n").is_err());
    }

    #[test]
    fn a_package_needs_what_any_of_its_binaries_needs() {
        let (old, unwinding) =
            (Needs { glibc: Version(2, 17), libgcc: true }, Needs { glibc: Version(2, 28), libgcc: false });
        let both = Needs { glibc: Version(2, 28), libgcc: true };
        assert_eq!([old.and(unwinding), unwinding.and(old), both.and(Needs::NOTHING)], [both; 3]);
    }
}
