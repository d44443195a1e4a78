//! Small programs through the whole of lowering and execution.

mod arithmetic;
mod barriers;
mod calls;
mod compiled;
mod divergence;
mod harness;
mod memory;
mod refusals;
mod time;
mod warp;
