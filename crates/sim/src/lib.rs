//! A GPU that exists only as numbers.
//!
//! (essay follows with the engine)

#![forbid(unsafe_code)]

mod card;
mod error;
mod log;
mod scheduler;
mod world;

pub use card::{Card, Costs};
pub use error::Error;
pub use log::{Decided, Gaps, Job, Log, Played, Stop};
pub use scheduler::{Ended, Facts, Means, Scene, Scheduler, StopAt};
pub use world::{Arrivals, Kernel, LONGEST, Rung, Sharing, Step, Tenant, Work, World};
