//! What tenants wrote down, as a picture of time.
//!
//! A *source* is a process and its events. From the sources of a machine becomes a *story*: tracks, and what lies on them,
//! each with its beginning, its end, and notes. A story is written as a Perfetto trace or as Chrome's JSON; both can be
//! opened at <https://ui.perfetto.dev>.
//!
//! Each process has tracks of its own: its requests, whether it ran or was stopped, its turns, decisions, waits and
//! launches. Each GPU has tracks for who had it when: requests of latency tenants, best-effort tenants that were let run,
//! and the gaps between requests which these filled. A request that missed its objective carries how long best-effort
//! work was on the GPU meanwhile, and how long it took to stop it.
//!
//! * [`Source`]: what is known of a process
//! * [`story`](mod@story): tracks and marks; [`assemble`](assemble::assemble) makes them
//! * `states`: when a best-effort tenant ran and when it was stopped; `gpu`: who had a GPU; `lanes`: what overlaps, side by side
//! * [`perfetto`], [`chrome`]: the files; `proto`: as much of protocol buffers as that takes
//!
//! **Invariant:** pure. No I/O and no clock, and no events are too odd: they come from files that others have written.

#![forbid(unsafe_code)]

mod assemble;
pub mod chrome;
mod gpu;
mod lanes;
pub mod perfetto;
mod proto;
mod source;
mod states;
pub mod story;
#[cfg(any(test, feature = "trials"))]
pub mod trials;

pub use assemble::assemble;
pub use source::Source;
pub use story::{Mark, Note, Story, Track};
