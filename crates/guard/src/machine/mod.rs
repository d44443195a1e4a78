//! What can be told from a kernel's instructions.
//!
//! * [`encoding`]: instructions as words
//! * [`constant`]: operands from constant banks
//! * [`facts`](mod@facts): how blocks depend on each other

pub mod constant;
pub mod encoding;
pub mod facts;

pub use encoding::{Generation, Word};
pub use facts::{Facts, facts};
