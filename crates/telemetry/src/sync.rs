//! The atomics by which events are published.
//!
//! In the product these are the processor's; in the crate's own tests under `--cfg loom` those of a model checker, which
//! tries every order of events that the memory model allows.

#[cfg(all(test, loom))]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
