//! The daemon: who sits at which GPU.
//!
//! Tenants share a GPU by its board and by nothing else, so somebody must make the boards, hand them out, and know when a
//! process is gone. That is all this is for. It is on nobody's path: tenants that have their seat go on when it is killed, and
//! find their way to the next one.
//!
//! # Whom to trust
//!
//! Nobody who connects. User, groups and process of a peer are asked of the kernel (`peer`); what a peer may claim is
//! decided by rules ([`configuration`]); what it sends is bounded in size, number and time (`server`). What it calls itself is
//! text that may be printed, and nothing more.
//!
//! # The rooms
//!
//! * [`place`](Place): the folder with sockets, lock and log; `listener`: a socket that appears when it is ready
//! * `manager`: the service manager, if one started us: what it is told, and the sockets it has opened
//! * `server`: the one thread, connections, limits; [`serve`] is the whole life of a daemon
//! * `registry`: boards, seats, tenants, ceilings applied; it knows no socket
//! * `controller`: what came of the policy of a GPU, and how its dials are turned
//! * `automatic`: which domain is chosen where the configuration leaves it open
//! * `access`: whether a GPU is one of the machine's, and may be used by a process that wants a seat at it
//! * `nvml`: who computes on a GPU; `strangers`: those of them who are not tenants
//! * `shared`: the service without which contexts do not run at the same time, kept up by a thread of its own
//! * [`traces`]: what happened when a request was late
//! * [`request`], [`report`]: what can be asked in words, and what is answered; [`scene`]: two reports as rows with rates
//! * [`picture`]: a report and more, for whoever draws
//! * [`client`], [`start`]: the other end
//!
//! **Never in here:** PTX, kernels, handles of CUDA. A daemon that knows less can break less.

mod access;
mod automatic;
mod configuration;
mod controller;
mod error;
mod listener;
mod log;
mod manager;
mod names;
mod nvml;
mod peer;
mod place;
mod registry;
mod server;
mod shared;
mod strangers;
mod uuid;

pub mod client;
pub mod picture;
pub mod report;
pub mod request;
pub mod scene;
pub mod start;
pub mod traces;

pub use access::CardFiles;
pub use automatic::{Choice, choice as domain_choice};
pub use board::Gpu;
pub use configuration::{
    APPLIED, Ceiling, Ceilings, Configuration, Dashboard, Holds, KEYS, Key, Loaded, Metrics, Mistake, Policy,
    Rule, Scope, Sockets, Sources, Subject, Trace, Wanted, usual_place as configuration_place,
};
pub use error::Error;
pub use names::name_of_user;
pub use nvml::{Cards, Seen, Survey, survey};
pub use place::Place;
pub use server::{Endpoint, NotServed, Options, Outcome, Serve, Serving, serve};
pub use strangers::{Occupant, OnGpu};
