//! Somebody wants the campaign to end: a number that a signal handler sets and every wait looks at.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Error;

/// Zero, or the signal that said so.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// The word itself, for whoever catches signals.
    pub fn word(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.0)
    }

    pub fn signal(&self) -> Option<usize> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&signal| signal != 0)
    }

    pub fn check(&self) -> Result<(), Error> {
        if self.signal().is_some() { Err(Error::Stopped) } else { Ok(()) }
    }
}
