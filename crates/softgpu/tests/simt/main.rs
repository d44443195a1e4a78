//! Small programs through the whole of lowering and execution.

mod compiled;
mod harness;
