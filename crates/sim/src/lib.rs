//! A GPU that exists only as numbers, for policies to be tried on before a GPU is.
//!
//! A [`World`] says who is there and what everybody does; [`run`] plays it under a [`Scheduler`] and gives back a [`Log`]. The
//! same seed gives the same log, byte for byte: nothing reads a clock, nothing depends on the order of a map or of the list of
//! tenants. What is tried is not a copy of ebb's policies but the code itself ([`Ebb`] hands `policy::decide` what its processes
//! would know, learned by `forecast`), and beside it, on the same card, the published systems ([`rivals`]).
//!
//! # The model
//!
//! **A job** (a request, or an iteration of a training) is a list of launches. Before each the host needs some time; it may run ahead of
//! the GPU as far as its queue allows, and waits for results where it wants to. A kernel is a number of blocks of one length,
//! which run in waves as the SMs have room. Jobs differ in length by factors drawn for each.
//!
//! **Between events nothing is stepped through.** A job that nobody disturbs is a set of sums (`score`), and everything that can
//! disturb it is one number (`cursor`): how late it is. Where it stands at any moment, when it leaves the GPU idle and when it ends are
//! found by bisection, so a request of 165 kernels costs what one of a single kernel does. Only where kernels of several tenants
//! meet on the card at the same time are they walked through one by one, and even there what can be known before is: what each
//! kernel of a request waits for is found in one go, and best-effort work at a rate that comes again has sums of its own.
//!
//! **The shared domain** (`floor`). A stop is a flag, which blocks see some microseconds later; those that run finish, or the whole kernel
//! does if it can only be held (`residue`). A latency tenant's kernel starts when there is room for it: it goes first, but
//! waits for the running blocks in its way. Best-effort work that is let in again comes back after it was launched anew. Beside a
//! latency tenant, where a decision allows it and under MPS always, each of its kernels waits for what it meets, as measured. Where a
//! decision confines best-effort work instead, it is stopped, and goes on with some of the SMs: its kernels take longer by what they
//! lack, those of the latency tenant by what was measured, and wait for nothing. What can only be held waits.
//!
//! **The isolated domain** (`contexts`). One context at a time, by slices, with a switch between two that takes its time and is not taken
//! back once it has begun; best-effort slices are the shortest there are. A scheduler decides who takes part in the round.
//!
//! # What is left out
//!
//! Caches and memory bandwidth, but for a factor beside others; copies; the shim's own cost on the host; the depth of queues on the
//! GPU behind a stop (what was not started is turned away, and counts as not launched); clocks that change with heat. A
//! kernel's blocks are equally long, but for the `spread` that blurs where waves end. Tenants of one priority that meet share
//! the card by what they need on average, not kernel by kernel. In the isolated domain nobody is asked in gaps inside a request: to take a
//! context off and put it on again takes longer than they last.
//!
//! # The rooms
//!
//! * `world`, `card`, `log`: what goes in and what comes out
//! * `scheduler`: what is asked, of whom; [`Ebb`], [`Switch`] and [`rivals`] answer; `desk` keeps what they said, [`Hand`] what a
//!   person has set
//! * `score`, `cursor`, `rate`, `lane`, `residue`: a job, how far it is and how fast it gets on, its tenant, and what is left of a kernel
//!   that must leave
//! * `floor`, `contexts`: the two domains; `engine`: the way in
//! * [`stage`]: lab scenarios and recorded runs as worlds, and logs as result files

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
mod rate;
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
pub use model::Hand;
pub use scheduler::{Ended, Facts, Means, Scene, Scheduler, StopAt};
pub use token::Switch;
pub use world::{Arrivals, Kernel, LONGEST, Rung, Sharing, Step, Tenant, Work, World};
