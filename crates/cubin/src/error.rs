/// What is wrong with an image. Offsets count from the first byte of the image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("this is neither PTX, nor a fatbin, nor a cubin")]
    Unrecognised,
    #[error("PTX is ASCII, but byte {offset} is {byte:#04x}")]
    NotAscii { offset: usize, byte: u8 },
    #[error("{what} at byte {offset} needs {wanted} bytes, but {have} are left")]
    Truncated { what: &'static str, offset: usize, wanted: u64, have: usize },
    #[error("fatbin containers of version {0} are not known")]
    ContainerVersion(u16),
    #[error("{what} at byte {offset} cannot be {value}")]
    Field { what: &'static str, offset: usize, value: u64 },
    #[error("the entry at byte {offset} claims {claimed} bytes, more than {limit} cannot be true")]
    TooLarge { offset: usize, claimed: u64, limit: u64 },
    #[error("the entry at byte {offset} cannot be decompressed: {reason}")]
    Decompression { offset: usize, reason: String },
    #[error("the entry at byte {offset} claims {claimed} bytes, but holds {actual}")]
    Size { offset: usize, claimed: u64, actual: u64 },
    #[error("the cubin is damaged: {0}")]
    Elf(String),
    #[error("this ELF file is for machine {0}, not for a CUDA device")]
    Machine(u16),
}
