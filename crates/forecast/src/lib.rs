//! What is learned while tenants run, and what is predicted from it.
//!
//! A policy wants to know when a latency tenant comes next, how long its kernels take, what its requests would take if it were
//! alone, and how soon best-effort work can be off the GPU. All of it is learned here from what happens anyway; nothing is
//! measured for its own sake but a few requests that are kept alone.
//!
//! Three ways of remembering carry everything. A [`Sketch`] counts spans in buckets, for figures that people read and that
//! are worth a file. A [`SpanWindow`] does so for the last few hundred spans, and forgets each of them in time. A [`Recent`] keeps the last few spans in order, for what is asked after every launch: if the next span
//! is like those before, it is as likely to fall into any of the places between them, so the third smallest of 29 is
//! undercut one time in ten, whatever the distribution. No model is fitted and none can be wrong; what remains is change, and
//! [`Calibration`] watches for that and corrects it.
//!
//! The crate lives inside other people's processes. Nothing here allocates, reads a clock, locks, loops without a bound
//! or draws a random number: the same observations give the same forecasts, in a process, in a test and in the simulator.
//! A [`Sequence`], [`Busy`], [`Arrivals`] or [`Solo`] that has seen nothing is all zeros, so a `static` of it takes no memory until it is
//! used.
//!
//! * [`Sketch`]: streaming quantiles with counts; [`SpanWindow`]: those of a recent time; [`Recent`]: the last few spans
//! * [`Sequence`]: when a tenant launches next, from what it launched before; [`Busy`]: when what it launched is done
//! * [`Arrivals`]: when its next request comes
//! * [`Calibration`]: how often forecasts came true, and what follows
//! * [`Solo`]: how long its requests take alone, and how much longer beside others
//! * [`Certificate`]: how soon somebody is off the GPU, and what becomes of who is not

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::panic))]

mod arrivals;
mod busy;
mod calibration;
mod certificate;
mod error;
mod kernel;
mod recent;
mod scale;
mod sequence;
mod sketch;
mod solo;
mod table;
mod window;

pub use arrivals::{Arrivals, Rhythm};
pub use busy::Busy;
pub use calibration::{Calibration, Record, Span};
pub use certificate::{Certificate, Kept};
pub use error::Error;
pub use kernel::Kernel;
pub use recent::Recent;
pub use sequence::{Level, Sequence, Site};
pub use sketch::Sketch;
pub use solo::{NEEDED, Sighting, Slowdown, Solo, SoloProfile};
pub use window::{SpanMemory, SpanWindow};
