//! Warm-up: what a program does in its first requests and not in those that follow.
//!
//! To load a module, to use a kernel for the first time, to instantiate a graph or to allocate memory takes the driver from a
//! fraction of a millisecond to some hundred. A request during which that happens says nothing about those to come, so it is
//! left out of what they take alone. Hooks tell of it here; a request compares two counts.
//!
//! Memory of a stream-ordered pool does not count: programs take it in every request, and it costs next to nothing.

use std::sync::atomic::{AtomicU64, Ordering};

static COUNT: AtomicU64 = AtomicU64::new(0);

/// The program warms up.
#[cold]
pub fn note() {
    COUNT.fetch_add(1, Ordering::Relaxed);
}

/// How often it has, so far.
pub fn count() -> u64 {
    COUNT.load(Ordering::Relaxed)
}
