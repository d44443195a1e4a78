//! NVIDIA's multi-process service, as a service of ours.
//!
//! Under MPS the contexts of all clients run at the same time: ebb's shared domain needs it, and the lab compares with
//! it. Whoever starts a [`Service`] has a control daemon in a private folder, whose clients are those who are given the
//! folder ([`Service::variables`]) and nobody else. A service that somebody else runs is seen ([`foreign`]) and never
//! touched.
//!
//! The control daemon detaches itself and starts a server when the first client comes, so neither is a child of ours.
//! Both are ended by a *warden*, a few lines of shell that wait for the end of their standard input: it ends when its
//! owner does, in whatever way, and then the warden asks the daemon to quit, kills what does not go, and removes the
//! folder. What even a warden left behind, because it was killed too, is cleared by the next service in that folder.
//!
//! MPS that ends takes its clients along, and an owner may be restarted. So a service can also be *kept*
//! ([`Service::keep`]): then the warden waits until the last client has gone, and the next owner with the same folder takes over
//! what it finds there, clients and all.
//!
//! A fault in one client's kernel is every client's: the server gives all of them up. [`Service::look`] tells of it.
#![forbid(unsafe_code)]

mod control;
mod error;
mod logs;
mod service;
#[cfg(any(test, feature = "trials"))]
pub mod trials;
mod warden;

pub use control::{CONTROL, Foreign, find, foreign, foreign_to};
pub use error::Error;
pub use logs::Event;
pub use service::{Access, Service};

/// Where clients find the control daemon, and where it writes what it does.
pub const PIPES: &str = "CUDA_MPS_PIPE_DIRECTORY";
pub const LOGS: &str = "CUDA_MPS_LOG_DIRECTORY";
/// How many queues of the hardware a client has. With the two of the default, a stream that waits holds up others.
pub const CONNECTIONS: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
/// What a best-effort tenant is given: four of its streams can be stopped at once. All clients of a server together have about a
/// hundred; who comes when they are used up finds no memory. With 32 each, on an H200, that was the fourth.
pub const BEST_EFFORT_CONNECTIONS: &str = "8";
/// Nought is normal, and there is nothing above; one is below normal.
pub const CLIENT_PRIORITY: &str = "CUDA_MPS_CLIENT_PRIORITY";
