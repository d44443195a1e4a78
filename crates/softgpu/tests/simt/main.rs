//! Small programs through the whole of lowering and execution.

// The helpers are tests too, though clippy only knows functions marked as such.
#![allow(clippy::unwrap_used)]

mod arithmetic;
mod arrays;
mod barriers;
mod calls;
mod compiled;
mod divergence;
mod harness;
mod hostile;
mod memory;
mod refusals;
mod time;
mod warp;
