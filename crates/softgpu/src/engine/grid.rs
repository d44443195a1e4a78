//! A kernel in execution: which blocks have been given out, and how many have come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::Nanos;

use super::task::Task;
use crate::card::Footprint;
use crate::simt::{Block, Launch};

pub struct Grid {
    pub task: Task,
    pub launch: Arc<Launch>,
    pub footprint: Footprint,
    pub priority: i32,
    /// Order of readiness, among equals in priority.
    pub number: u64,
    /// When it could have started, on the machine's clock.
    pub ready_at: Nanos,
    total: u64,
    next: AtomicU64,
    retired: AtomicU64,
    /// Latest nominal end of a block, in context time.
    ended_at: AtomicU64,
}

impl Grid {
    pub fn new(task: Task, launch: Arc<Launch>, footprint: Footprint, number: u64) -> Grid {
        let total = launch.grid.volume().expect("a launch's grid was checked when it was made");
        Grid {
            priority: task.priority(),
            ready_at: task.ready_at(),
            task,
            launch,
            footprint,
            number,
            total,
            next: AtomicU64::new(0),
            retired: AtomicU64::new(0),
            ended_at: AtomicU64::new(0),
        }
    }

    /// The number of the next block, in linear order.
    pub fn claim(&self) -> Option<u64> {
        if self.undispatched() == 0 {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.total).then_some(number)
    }

    pub fn undispatched(&self) -> u64 {
        self.total.saturating_sub(self.next.load(Ordering::Relaxed))
    }

    /// One block has ended. True for the last one.
    pub fn retire(&self, at: Nanos) -> bool {
        self.ended_at.fetch_max(at.0, Ordering::Relaxed);
        // SYNC(grid-retired): the last block's retirement happens after everything the others wrote.
        self.retired.fetch_add(1, Ordering::AcqRel) + 1 == self.total
    }

    pub fn ended_at(&self) -> Nanos {
        Nanos(self.ended_at.load(Ordering::Relaxed))
    }
}

/// A block on an SM.
pub struct Resident {
    pub block: Box<Block>,
    pub grid: Arc<Grid>,
    pub sm: u32,
    /// Nominal context time at which it goes on.
    pub at: Nanos,
}
