//! Workloads and experiments.
//!
//! A claim about sharing a GPU is a figure measured side by side in one run: a tenant alone, the same tenant
//! beside another, in every way of sharing there is. It prints nothing; whoever shows figures to a person does that.
//!
//! The lab:
//!
//! * [`crew`]: worker processes, which host tenants, and what is said to them
//! * [`modes`]: what stands around a worker in each way of sharing
//! * [`campaign`]: which runs there are, in which order, made and written down
//! * [`player`]: tenants that play recorded kernels on any driver; `workers`: those with real models; [`profile`]: how
//!   kernels are recorded
//!
//! The parts it began with, for the demo and for benchmarks:
//!
//! * `driver`: a small client of any `libcuda.so.1`; `probe`: what a driver says about itself
//! * `tenant`: synthetic tenants that leave checkable traces; `report`: what one measured, and how that travels;
//!   `experiment`: several of them, started together
//! * `digest`: a computation that forgives nothing; `bench`: the speed of a software GPU; `forwarding`: the cost of a shim;
//!   `guarded`: that of a guarded launch

mod bench;
pub mod campaign;
pub mod crew;
mod digest;
mod driver;
mod error;
mod experiment;
mod forwarding;
mod guarded;
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
pub use guarded::Guarding;
pub use probe::{Gpu, Probe, probe};
pub use quantiles::Quantiles;
pub use report::Report;
pub use tenant::{Job, PREPARED_LAUNCHES, REQUEST_LAUNCHES, Scene, serve};
