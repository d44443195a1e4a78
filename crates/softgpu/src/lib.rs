//! (being built)
pub mod error;
