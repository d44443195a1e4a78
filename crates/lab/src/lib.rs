//! Workloads and experiments.
//!
//! A claim about sharing a GPU is a figure measured side by side in one run: a tenant alone, the same tenant
//! beside another. This crate has the parts: a small client of any `libcuda.so.1` (`driver`), what a driver says
//! about itself (`probe`), synthetic tenants that leave checkable traces (`tenant`), the summary of what a tenant
//! measured and how it travels between processes (`report`), the experiment that starts tenants as separate
//! processes (`experiment`), a computation that forgives nothing (`digest`), the speed of a software GPU (`bench`) and the cost of a shim (`forwarding`).
//! It prints nothing; whoever shows figures to a person does that.

mod bench;
pub mod campaign;
pub mod crew;
mod digest;
mod driver;
mod error;
mod experiment;
mod forwarding;
pub mod modes;
pub mod player;
mod probe;
pub mod profile;
mod quantiles;
mod report;
mod tenant;
mod workers;

pub use bench::{Bench, Pace};
pub use digest::digest;
pub use error::Error;
pub use experiment::{Actor, Experiment, Outcome};
pub use forwarding::{Call, Cost, Forwarding, StartUp, started};
pub use probe::{Gpu, Probe, probe};
pub use quantiles::Quantiles;
pub use report::Report;
pub use tenant::{Job, REQUEST_LAUNCHES, serve};
