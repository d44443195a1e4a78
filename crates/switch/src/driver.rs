//! Which drivers this is known to work with.
//!
//! None of these calls is promised by anybody. The structures and the rights were read in the sources of the open kernel
//! modules of the 580 line and tried on an H200 with 580.159.04. For another driver they may well be the same; but a
//! tenant whose stop does not work is worse off than one that knows it has none, so others are unknown until tried.

use core::fmt;

/// Where the kernel says which driver it runs.
pub const VERSION_FILE: &str = "/proc/driver/nvidia/version";

/// The lines of drivers that were tried.
pub const KNOWN: [u32; 1] = [580];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    pub flavour: Flavour,
    pub version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    Open,
    Proprietary,
}

/// As in `580.159.04`; a part that is not there is zero, and zeros in front are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub line: u32,
    pub minor: u32,
    pub patch: u32,
}

/// Why a driver is not known to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    #[error("what {VERSION_FILE} says is not understood")]
    Unreadable,
    #[error("channel groups were not tried with driver {0}, only with the 580 line")]
    Line(Version),
    #[error(
        "channel groups were not tried with the proprietary kernel module of driver {0}, only with the open one"
    )]
    Proprietary(Version),
}

impl Driver {
    /// Of the text of [`VERSION_FILE`]: its first line has the name of the module, and then the version.
    pub fn read(text: &[u8]) -> Option<Driver> {
        let line = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"NVRM version:"))?;
        let words = || line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let module = words().position(|word| word == b"Module")?;
        let open = words().take(module).any(|word| word == b"Open");
        let version = words().skip(module + 1).find_map(Version::read)?;
        Some(Driver { flavour: if open { Flavour::Open } else { Flavour::Proprietary }, version })
    }

    /// Whether the calls of this crate are known to work with it.
    pub fn known(&self) -> Result<(), Unknown> {
        if !KNOWN.contains(&self.version.line) {
            return Err(Unknown::Line(self.version));
        }
        match self.flavour {
            Flavour::Open => Ok(()),
            Flavour::Proprietary => Err(Unknown::Proprietary(self.version)),
        }
    }
}

/// Whether the calls of this crate are known to work with the driver that [`VERSION_FILE`] tells of.
pub fn judge(text: &[u8]) -> Result<Driver, Unknown> {
    let driver = Driver::read(text).ok_or(Unknown::Unreadable)?;
    driver.known().map(|()| driver)
}

impl Version {
    /// Two or three numbers with points between them.
    fn read(word: &[u8]) -> Option<Version> {
        let mut numbers = [0; 3];
        let mut count = 0;
        for part in word.split(|&byte| byte == b'.') {
            *numbers.get_mut(count)? = number(part)?;
            count += 1;
        }
        let [line, minor, patch] = numbers;
        (count >= 2).then_some(Version { line, minor, patch })
    }
}

fn number(digits: &[u8]) -> Option<u32> {
    let is_number = (1..=6).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
}

impl fmt::Display for Version {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}.{:02}.{:02}", self.line, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    const OPEN: &[u8] = b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  \
        (builder@host)  Sat Sep  6 01:23:45 UTC 2025\nGCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2)\n";
    const PROPRIETARY: &[u8] =
        b"NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Thu Jul 17 18:21:04 UTC 2025\n";

    #[test]
    fn the_open_module_of_the_line_that_was_tried_is_known() {
        let driver = judge(OPEN).unwrap();
        assert_eq!(driver.flavour, Flavour::Open);
        assert_eq!(driver.version, Version { line: 580, minor: 159, patch: 4 });
        assert_eq!(driver.version.to_string(), "580.159.04");
    }

    #[test]
    fn others_are_unknown_with_a_reason() {
        let reason = |text: &[u8]| judge(text).unwrap_err().to_string();
        assert!(reason(PROPRIETARY).contains("proprietary kernel module of driver 580.65.06"));
        let older = b"NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release Build\n";
        assert!(reason(older).contains("driver 540.04.00"));
        let newer = b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.45  Release Build\n";
        assert_eq!(judge(newer), Err(Unknown::Line(Version { line: 595, minor: 45, patch: 0 })));
    }

    #[test]
    fn what_is_not_understood_is_unknown() {
        let texts: [&[u8]; 7] = [
            b"",
            b"580.159.04",
            b"NVRM version:",
            b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64",
            b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580",
            b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.1.2.3",
            b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  99999999999.1",
        ];
        assert!(texts.iter().all(|text| judge(text) == Err(Unknown::Unreadable)));
    }
}
