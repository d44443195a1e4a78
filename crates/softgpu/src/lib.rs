//! (being built)
pub mod card;
pub mod error;
pub mod isa;
pub mod lower;
pub mod memory;
pub mod numeric;
pub mod simt;
