//! (being built; `syntax` is the agreed contract)
#![forbid(unsafe_code)]
pub mod syntax;
pub use syntax::*;
