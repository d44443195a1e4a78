//! What the lab measured, and every figure derived from it.
//!
//! A result file holds raw data only: when each request was due, when it began, when it was finished. Every figure is
//! computed here when a file is read, so that no two places can disagree about what a p99 is, and so that a mistake in
//! a figure can be mended after the GPU has gone. The crate is pure arithmetic but for reading and writing that file.
//!
//! * [`record`]: the lines of the file; [`Writer`] appends them, [`Archive`] reads them
//! * [`sample`]: an archive that nobody measured, to try reports with

#![forbid(unsafe_code)]

mod archive;
mod draw;
mod error;
pub mod record;
pub mod sample;
mod writer;

pub use archive::{Archive, FILE, PACKED};
pub use error::Error;
pub use record::Record;
pub use writer::Writer;
