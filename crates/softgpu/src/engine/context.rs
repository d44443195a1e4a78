//! A context: the unit that has a turn on the GPU, and that a fault kills.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

use super::task::{Task, Work};
use super::worker::Hands;
use super::{Engine, State};
use crate::card::{self, ContextHandle};
use crate::error::FaultReport;

/// What the engine and the tasks of a context share with it.
pub(super) struct Core {
    pub engine: Arc<Engine>,
    pub handle: ContextHandle,
    /// Index of its queue in the engine's state.
    pub key: usize,
    fault: OnceLock<FaultReport>,
    closed: AtomicBool,
    /// The most urgent priority under which a confined grid of this context has blocks that wait for room.
    confined_waiting: AtomicI32,
}

impl Core {
    pub fn new(engine: Arc<Engine>, handle: ContextHandle, key: usize) -> Core {
        Core {
            engine,
            handle,
            key,
            fault: OnceLock::new(),
            closed: AtomicBool::new(false),
            confined_waiting: AtomicI32::new(i32::MAX),
        }
    }

    /// A context that is lost or destroyed executes nothing any more; its tasks end as they are.
    pub fn is_dead(&self) -> bool {
        self.fault.get().is_some() || self.closed.load(Ordering::Acquire)
    }

    /// Says for which priority, if any, blocks of a confined grid wait.
    pub fn set_confined_waiting(&self, priority: Option<i32>) {
        self.confined_waiting.store(priority.unwrap_or(i32::MAX), Ordering::Relaxed);
    }

    /// Whether a block of this priority may take the room its predecessor leaves: the card has been asked for all others, but of
    /// confined grids that wait it is not told.
    pub fn may_inherit(&self, priority: i32) -> bool {
        self.confined_waiting.load(Ordering::Relaxed) >= priority
            && self.engine.card.may_inherit(&self.handle, priority)
    }

    /// The first fault stands; later ones are consequences.
    pub fn lose(&self, report: FaultReport) {
        let _ = self.fault.set(report);
    }
}

/// A context of this process. Dropping it destroys it: what still runs is dropped in the middle.
pub struct Context {
    core: Arc<Core>,
}

impl Context {
    pub(super) fn new(core: Arc<Core>) -> Context {
        Context { core }
    }

    /// The number by which the card knows this context; `Card::set_timeslice` takes it.
    pub fn id(&self) -> u64 {
        self.core.handle.id
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.core.engine
    }

    /// The fault that killed the context, if one did.
    pub fn fault(&self) -> Option<&FaultReport> {
        self.core.fault.get()
    }

    /// Hands work over; it starts when all of `after` are done. Lower `priority` is more urgent. Never blocks.
    pub fn submit(&self, work: Work, after: &[Task], priority: i32) -> Task {
        let engine = &self.core.engine;
        engine.ensure_threads();
        let now = card::now();
        let task = Task::new(Arc::clone(&self.core), work, priority, now);
        for earlier in after {
            task.follow(earlier);
        }
        if task.step(now) {
            let mut state = engine.lock();
            engine.start_ready(&mut state, task.clone());
            drop(state);
            engine.card.ring_own(1);
        }
        task
    }

    /// Waits for a task, executing whatever is there to execute meanwhile.
    pub fn wait(&self, task: &Task) -> Result<(), &FaultReport> {
        if !task.is_done() {
            task.watch();
            let mut hands = Hands::borrowed();
            while !task.is_done() {
                self.core.engine.take_a_turn(&mut hands, Some(task));
            }
            self.core.engine.hand_over_the_alarm();
        }
        self.fault().map_or(Ok(()), Err)
    }

    /// Ends the context at once.
    pub fn destroy(&self) {
        if self.core.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        let engine = &self.core.engine;
        let mut state = engine.lock();
        engine.abandon(&mut state, &self.core);
        state.forget(self.core.key);
        drop(state);
        engine.card.destroy_context(&self.core.handle);
        engine.card.ring_own(u32::MAX);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.destroy();
    }
}

impl State {
    fn forget(&mut self, key: usize) {
        self.queues[key] = None;
    }
}
