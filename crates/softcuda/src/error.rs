//! The error type is CUDA's code, with a sentence for the log.

use std::fmt;

use cuda_abi::*;
use softgpu::error::{Fault, FaultReport};
use softgpu::memory;

#[derive(Clone, Debug)]
pub struct Error {
    pub code: CUresult,
    /// What a user would want to know beyond the code.
    pub why: Option<String>,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(code: CUresult, why: impl Into<String>) -> Error {
        Error { code, why: Some(why.into()) }
    }

    pub fn unsupported(what: impl Into<String>) -> Error {
        Error::new(CUDA_ERROR_NOT_SUPPORTED, format!("{} is not supported by the software GPU", what.into()))
    }
}

/// An `Err` of this code, for the many places that need nothing more.
pub fn refuse<T>(code: CUresult) -> Result<T> {
    Err(code.into())
}

/// `INVALID_VALUE` unless the condition holds.
pub fn require(condition: bool) -> Result<()> {
    if condition { Ok(()) } else { refuse(CUDA_ERROR_INVALID_VALUE) }
}

impl From<CUresult> for Error {
    fn from(code: CUresult) -> Error {
        Error { code, why: None }
    }
}

impl From<memory::Error> for Error {
    fn from(error: memory::Error) -> Error {
        use memory::Error as E;
        let code = match &error {
            E::OutOfMemory { .. } => CUDA_ERROR_OUT_OF_MEMORY,
            E::AlreadyRegistered { .. } => CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
            E::NotRegistered { .. } => CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
            E::NotShareable => CUDA_ERROR_NOT_PERMITTED,
            E::Reserve { .. } | E::System(_) => CUDA_ERROR_OPERATING_SYSTEM,
            E::InvalidSize { .. }
            | E::InvalidAddress { .. }
            | E::Inaccessible { .. }
            | E::UnknownPhysical
            | E::StaleExport => CUDA_ERROR_INVALID_VALUE,
        };
        Error::new(code, error.to_string())
    }
}

impl From<&FaultReport> for Error {
    fn from(report: &FaultReport) -> Error {
        Error::new(fault_code(&report.fault), report.to_string())
    }
}

/// The code under which a context is lost.
pub fn fault_code(fault: &Fault) -> CUresult {
    match fault {
        Fault::IllegalAddress { .. } => CUDA_ERROR_ILLEGAL_ADDRESS,
        Fault::MisalignedAddress { .. } => CUDA_ERROR_MISALIGNED_ADDRESS,
        Fault::InvalidAddressSpace { .. } => CUDA_ERROR_INVALID_ADDRESS_SPACE,
        Fault::Trap => CUDA_ERROR_LAUNCH_FAILED,
        Fault::Assert => CUDA_ERROR_ASSERT,
        Fault::StackOverflow { .. } => CUDA_ERROR_ILLEGAL_ADDRESS,
        Fault::InvalidProgramCounter { .. } => CUDA_ERROR_INVALID_PC,
        // So says the card: to it, an instruction that cannot reach where it points is a broken one.
        Fault::BeyondShared { .. } | Fault::IllegalInstruction(_) => CUDA_ERROR_ILLEGAL_INSTRUCTION,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code.name() {
            Some(name) => f.write_str(&name.to_string_lossy())?,
            None => write!(f, "error {}", self.code.0)?,
        }
        match &self.why {
            Some(why) => write!(f, ": {why}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
