//! The ways to share a device that are compared: what stands in front of a worker and in its environment.
//!
//! Most of a mode is its *ground*, the surroundings of a worker's process: nothing, a daemon of the multi-process
//! service, ebb's daemon, a rival's library. A ground is laid when the first run wants it, in the campaign's private
//! folder, and cleared when the campaign ends; after a tenant was lost it is laid afresh where that may matter, so that
//! what a failed client did to a service does not reach the next run. What the machine has of its own (another MPS
//! daemon, another ebb daemon) is neither used nor touched.
//!
//! * `way`: a mode, with its policy where it has one
//! * `ground`: which mode stands on which ground, and the grounds of a campaign
//! * `plain`: the driver as it is; what every other ground builds on
//! * `soft`: the same on the software GPU
//! * `mps`, `ebb`, `rivals`: the others
//! * `service`: a daemon of ours that goes when we do

mod ebb;
mod ground;
mod mps;
mod plain;
mod rivals;
mod service;
mod soft;
mod way;

pub use ground::{Absence, Ground, Grounds, Site, Surroundings, stream};
pub use service::Service;
pub use soft::Card;
pub use way::Way;

/// Changes to an environment; `None` removes a variable.
pub type Environment = Vec<(std::ffi::OsString, Option<std::ffi::OsString>)>;
