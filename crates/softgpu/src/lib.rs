//! (being built)
pub mod error;
pub mod memory;
pub mod numeric;
