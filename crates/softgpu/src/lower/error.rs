//! Why a module cannot be made into a program.

use thiserror::Error;

/// A place in the source, both counted from one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// Not PTX, or PTX that contradicts itself.
    #[error("{place}: {message}")]
    Invalid { place: Place, message: String },
    /// PTX that the software GPU has not learnt.
    #[error("{place}: not supported: {what}")]
    Unsupported { place: Place, what: String },
    /// PTX for a newer GPU or of a newer language than this one.
    #[error("{place}: {what} is newer than this GPU")]
    TooNew { place: Place, what: String },
    #[error("{place}: {what} is too large: {value} (at most {most})")]
    TooLarge { place: Place, what: &'static str, value: u64, most: u64 },
    #[error("`{name}` is declared but defined nowhere")]
    Unresolved { name: String },
    #[error("`{name}` is defined twice")]
    Duplicate { name: String },
}
