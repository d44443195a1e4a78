//! Processor architectures, as ELF numbers them.

use std::fmt;

/// What a file was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    X86_64,
    Aarch64,
    /// The ELF number of something no CUDA driver runs on, or a 32-bit file.
    Other {
        machine: u16,
        bits: u8,
    },
}

/// ELF's number for x86-64.
const X86_64: u16 = 62;
/// ELF's number for 64-bit Arm.
const AARCH64: u16 = 183;
/// ELF's number for 32-bit x86.
const I386: u16 = 3;

impl Architecture {
    /// What this program was built for, and therefore the shim beside it.
    pub const HERE: Architecture = if cfg!(target_arch = "x86_64") {
        Architecture::X86_64
    } else if cfg!(target_arch = "aarch64") {
        Architecture::Aarch64
    } else {
        Architecture::Other { machine: 0, bits: usize::BITS as u8 }
    };

    pub(crate) fn new(machine: u16, bits: u8) -> Architecture {
        match (machine, bits) {
            (X86_64, 64) => Architecture::X86_64,
            (AARCH64, 64) => Architecture::Aarch64,
            _ => Architecture::Other { machine, bits },
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Architecture::X86_64 => f.write_str("x86-64"),
            Architecture::Aarch64 => f.write_str("64-bit Arm"),
            Architecture::Other { machine: I386, .. } => f.write_str("32-bit x86"),
            Architecture::Other { machine: X86_64, .. } => f.write_str("x32"),
            Architecture::Other { machine, bits } => {
                write!(f, "another machine (ELF {machine}, {bits} bits)")
            }
        }
    }
}
