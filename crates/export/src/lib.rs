//! What a daemon knows, as text that monitoring reads.
//!
//! An [`Observation`] is everything that is exported, taken at one moment: GPUs, the tenants on each of them, and how the daemon
//! itself is. [`text`] writes it down in one of the two formats that Prometheus reads. Which metrics there are, of which type and
//! with which labels, stands in one table ([`FAMILIES`]); the text, the reference in `docs/metrics.md` and the check of the
//! dashboards and rules in `deploy` all come from it.
//!
//! # Whose figures
//!
//! Nothing is measured or added up here. What tenants count stands on their boards, what is theirs together the daemon adds up,
//! and a histogram is exported with coarser buckets than it has there. A time lies in the first bucket that no time of its
//! own bucket exceeds, so that nothing is said to be faster than it was.
//!
//! # Labels
//!
//! A GPU, a tenant's name, a class. Never the number of a process and never a command line: they would make a series for
//! each start of a program, and they are nobody's business.
//!
//! # Asking
//!
//! Observations are made by the daemon's one thread, which must not wait for a slow reader, and read by threads that serve
//! such readers. [`desk`] lies between them.
//!
//! * [`Observation`], [`Gpu`], [`Tenant`]: what there is to say
//! * [`FAMILIES`], [`Family`], [`Kind`]: what it is called
//! * [`text`], [`Format`]: how it is written
//! * [`desk`], [`Asker`], [`Desk`]: how it is asked for
//! * [`readable`]: what people call a kernel

#![forbid(unsafe_code)]

mod catalogue;
mod desk;
mod kernel_name;
mod observation;
mod text;

pub use catalogue::{FAMILIES, Family, Kind};
pub use desk::{Asker, Desk, desk};
pub use kernel_name::readable;
pub use observation::{
    Clients, Disconnects, Gpu, Health, Memory, Now, Observation, Reload, Slowdown, Tenant,
};
pub use text::{Format, text};
