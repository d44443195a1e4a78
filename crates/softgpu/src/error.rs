//! What can go wrong on the software GPU.

use thiserror::Error;

/// Why a running kernel was stopped. A fault is sticky: the context it happened in is lost.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    #[error("illegal {access} of {size} bytes at {address:#x}")]
    IllegalAddress { address: u64, size: u32, access: Access },
    #[error("misaligned {access} of {size} bytes at {address:#x}")]
    MisalignedAddress { address: u64, size: u32, access: Access },
    /// Beyond the block's shared memory, by an instruction that says it means shared memory.
    #[error("{access} of {size} bytes at {address:#x}, which is beyond the block's shared memory")]
    BeyondShared { address: u64, size: u32, access: Access },
    /// An address of one space used where another is required.
    #[error("address {address:#x} is not in the {space} window")]
    InvalidAddressSpace { address: u64, space: &'static str },
    #[error("trap instruction")]
    Trap,
    #[error("device-side assertion failed")]
    Assert,
    #[error("stack overflow: {bytes} bytes of local memory wanted by one thread")]
    StackOverflow { bytes: u64 },
    #[error("call or branch through {target:#x}, which is no function or label")]
    InvalidProgramCounter { target: u64 },
    #[error("illegal instruction: {0}")]
    IllegalInstruction(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    Atomic,
}

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Atomic => "atomic",
        })
    }
}

/// A fault and where it happened, for the log.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{fault} (kernel {kernel}, line {line}, block {block}, thread {thread})")]
pub struct FaultReport {
    pub fault: Fault,
    pub kernel: String,
    /// Line of the PTX source.
    pub line: u32,
    pub block: model::Dim3,
    pub thread: model::Dim3,
}
