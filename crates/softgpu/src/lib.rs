//! (being built)
pub mod card;
pub mod error;
pub mod memory;
pub mod numeric;
