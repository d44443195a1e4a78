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

/// The oldest libc under which a program or library starts.
pub fn glibc(bytes: &[u8]) -> Result<Version> {
    let header = FileHeader64::<Endianness>::parse(bytes).context("no ELF file")?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let dynamic = sections.dynamic_table(endian, bytes)?;
    for entry in dynamic.iter().filter(|entry| entry.tag == DT_NEEDED) {
        let name = String::from_utf8_lossy(dynamic.string(entry)?).into_owned();
        if !EVERYWHERE.contains(&name.as_str()) {
            bail!("needs {name}, which is not on every machine");
        }
    }
    // A library that uses nothing of libc has no such table.
    let mut highest = Version(2, 0);
    let Some((mut files, link)) = sections.gnu_verneed(endian, bytes)? else { return Ok(highest) };
    let strings = sections.strings(endian, bytes, link)?;
    while let Some((_, mut versions)) = files.next()? {
        while let Some(version) = versions.next()? {
            let name = String::from_utf8_lossy(version.name(endian, strings)?).into_owned();
            highest = highest.max(of_symbol(&name).unwrap_or(highest));
        }
    }
    Ok(highest)
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
        match glibc(&bytes) {
            Ok(version) => assert!(version >= Version(2, 2) && version < Version(3, 0), "{version}"),
            Err(error) => assert!(error.to_string().contains("lib"), "{error}"),
        }
        assert!(glibc(b"#!/bin/sh\n").is_err());
    }
}
