//! Who runs next, and for how long.
//!
//! A policy is a pure function from what is known to what is decided: it reads no clock, takes no lock, allocates
//! nothing and remembers nothing: what must be remembered is handed in and handed back. So the same code decides inside a tenant's process, in the daemon, in tests and in a
//! simulator, and a decision can be repeated from a log. Each file is one policy and opens with its idea.
//!
//! * [`View`]: what is known; [`Decision`]: what is decided
//! * [`token`]: which best-effort seat puts work on the GPU next
//! * [`slice`]: how long the hardware lets a context run before it looks for another

#![no_std]
#![forbid(unsafe_code)]

mod decision;
pub mod slice;
pub mod token;
mod view;

pub use decision::{Decision, Outstanding, Who, Why};
pub use model::{Dials, Forecast, Kind};
pub use view::{Activity, BestEffort, Latency, View};
