//! What the driver knows between two calls. No pointer of C gets this far.

pub mod capture;
pub mod context;
pub mod control;
pub mod current;
pub mod driver;
pub mod event;
pub mod exec;
pub mod function;
pub mod graph;
pub mod graph_memory;
pub mod green;
pub mod image;
pub mod library;
pub mod limits;
pub mod link;
pub mod module;
pub mod operation;
pub mod pool;
pub mod queue;
pub mod stream;
pub mod user_object;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks without regard to panics elsewhere: they are bugs that have been reported, and what the lock guards is
/// changed in single steps.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
