//! What can be told from a kernel's instructions.
//!
//! * [`encoding`]: instructions as words

pub mod encoding;

pub use encoding::{Generation, Word};
