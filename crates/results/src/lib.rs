//! What the lab measured, and every figure derived from it.
//!
//! A result file holds raw data only: when each request was due, when it began, when it was finished. Every figure is
//! computed here when a file is read, so that no two places can disagree about what a p99 is, and so that a mistake in
//! a figure can be mended after the GPU has gone. The crate is pure arithmetic but for reading and writing that file.
//!
//! * [`record`]: the lines of the file; [`Writer`] appends them, [`Archive`] reads them; [`mode`]: what modes are called
//! * [`request`], [`iteration`]: what counts, of requests and of best-effort work
//! * [`quantile`], [`bootstrap`]: what is said of many, and how sure it is
//! * [`figures`]: everything that is said about an archive, computed from it at once
//! * [`stop`], [`timeline`]: stop latencies as a histogram, and a stretch of a run to look at
//! * [`compare`]: what got better or worse between two archives, beyond noise
//! * [`sample`]: an archive that nobody measured, to try reports with

#![forbid(unsafe_code)]

mod archive;
pub mod bootstrap;
pub mod compare;
mod draw;
mod error;
pub mod figures;
pub mod iteration;
pub mod mode;
pub mod passage;
pub mod quantile;
pub mod record;
pub mod request;
pub mod sample;
pub mod stop;
pub mod timeline;
mod writer;

pub use archive::{Archive, FILE, PACKED};
pub use bootstrap::Estimate;
pub use compare::Comparison;
pub use error::Error;
pub use figures::Figures;
pub use quantile::Quantiles;
pub use record::Record;
pub use writer::Writer;
