//! A GPU that exists only as numbers.
//!
//! (essay follows with the engine)

#![forbid(unsafe_code)]

mod card;
mod contexts;
mod cursor;
mod desk;
mod draw;
mod ebb;
mod engine;
mod error;
mod floor;
mod lane;
mod log;
mod residue;
pub mod rivals;
mod scheduler;
mod score;
pub mod stage;
mod token;
mod world;

pub use card::{Card, Costs};
pub use ebb::Ebb;
pub use engine::run;
pub use error::Error;
pub use log::{Decided, Gaps, Job, Log, Played, Stop};
pub use scheduler::{Ended, Facts, Means, Scene, Scheduler, StopAt};
pub use token::Switch;
pub use world::{Arrivals, Kernel, LONGEST, Rung, Sharing, Step, Tenant, Work, World};
