//! The words of ebb.
//!
//! Everything that two rooms say to each other is named here once: time, memory, kernels and the shapes they are launched in, the class
//! of a tenant, the domain in which tenants share a GPU, and how the texts of others are shown. The crate is pure: no I/O, no clock, no CUDA handle, so
//! that policies, tests and the simulator can use the same words as the running product.

#![forbid(unsafe_code)]

mod bytes;
mod class;
mod dials;
mod forecast;
mod geometry;
mod hand;
mod kernel;
pub mod text;
mod time;

pub use bytes::{Bytes, NoSize};
pub use class::{Class, Domain, UnknownWord};
pub use dials::{Dials, Kind, MOST_CONFINED};
pub use forecast::{Forecast, LONGEST_LULL};
pub use geometry::Dim3;
pub use hand::Hand;
pub use kernel::{Geometry, Kernel, KernelId, ModuleHash, Rung, Site};
pub use time::{Nanos, NoSpan};
