//! The engine: what makes submitted work happen.
//!
//! Work comes as *tasks* with dependencies; a stream is nothing but a chain of them, a graph a web. A task
//! that is ready either runs at once (copies, host functions) or becomes a *grid* whose blocks are dispatched
//! in linear order to the SMs that have room. A block on an SM is a coroutine (`simt::Block`); the threads of
//! the engine run whichever block can go on, a few hundred instructions at a time. A thread that waits for a
//! task lends its hands meanwhile, so the usual launch-and-synchronise needs no change of thread at all.
//!
//! # Time
//!
//! Execution is real time, but a host that must wake up for every event would be late for each. So events
//! carry their *nominal* time: a block that slept until `t` goes on at `t`, however late the host comes to it,
//! and its successor on the SM starts when it nominally ended. Being late is caught up, not added up: 132 SMs
//! of 50 µs blocks keep their pace on a thread that looks in every 400 µs. Nothing ever happens before its
//! time, and a lag beyond `MAX_LAG` is given up (the host is simply too slow then).
//!
//! All of this is in *context time*, which stands still while the card gives the GPU to another context.

mod clock;
mod context;
mod grid;
mod queue;
mod spare;
mod task;
mod timers;
mod worker;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::Nanos;

use crate::card::{self, Card};
use crate::memory::AddressSpace;

pub use context::Context;
pub use task::{Task, Work};

use context::Core;
use queue::Queue;
use spare::Spares;

/// How far the host may fall behind nominal time before the difference is given up.
const MAX_LAG: Nanos = Nanos::from_millis(20);

/// The execution engine of one process.
pub struct Engine {
    card: Arc<Card>,
    space: Arc<AddressSpace>,
    state: Mutex<State>,
    spares: Spares,
    threads_started: AtomicBool,
    threads: usize,
    callbacks: Mutex<Sender<Task>>,
    callbacks_in: Mutex<Option<Receiver<Task>>>,
}

#[derive(Default)]
struct State {
    queues: Vec<Option<Queue>>,
    /// Host-side work that can start.
    ready: VecDeque<Task>,
    /// Waits for a value in memory.
    polls: Vec<Task>,
    next_poll: Nanos,
    /// The earliest time for which an idle thread has set its alarm.
    alarm: Option<Nanos>,
    /// Which queue is looked at first, so that none starves.
    turn: usize,
    next_grid: u64,
}

impl Engine {
    /// Threads start with the first work; `EBB_SOFTGPU_THREADS` says how many (default: one per core).
    pub fn start(card: Arc<Card>, space: Arc<AddressSpace>) -> Arc<Engine> {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let wanted = std::env::var("EBB_SOFTGPU_THREADS").ok().and_then(|value| value.parse().ok());
        let (sender, receiver) = channel();
        Arc::new(Engine {
            card,
            space,
            state: Mutex::default(),
            spares: Spares::default(),
            threads_started: AtomicBool::new(false),
            threads: wanted.unwrap_or(cores).clamp(1, 256),
            callbacks: Mutex::new(sender),
            callbacks_in: Mutex::new(Some(receiver)),
        })
    }

    pub fn card(&self) -> &Arc<Card> {
        &self.card
    }

    pub fn space(&self) -> &Arc<AddressSpace> {
        &self.space
    }

    /// A new context, with a slot of its own on the card.
    pub fn create_context(self: &Arc<Engine>) -> Result<Arc<Context>, card::Error> {
        let handle = self.card.create_context()?;
        let mut state = self.lock();
        let key = state.queues.iter().position(Option::is_none).unwrap_or(state.queues.len());
        let core = Arc::new(Core::new(Arc::clone(self), handle, key));
        let queue = Queue::new(Arc::clone(&core), self.card.properties().sms);
        if key == state.queues.len() {
            state.queues.push(Some(queue));
        } else {
            state.queues[key] = Some(queue);
        }
        drop(state);
        Ok(Arc::new(Context::new(core)))
    }

    /// No thread panics while it holds the state, and if one did, stopping all others would help nobody.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ensure_threads(self: &Arc<Engine>) {
        if self.threads_started.swap(true, Ordering::AcqRel) {
            return;
        }
        for number in 0..self.threads {
            let engine = Arc::clone(self);
            let builder = std::thread::Builder::new().name(format!("ebb-sm-{number}"));
            builder.spawn(move || engine.serve()).expect("the system has room for a thread");
        }
        let receiver = self.callbacks_in.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (engine, receiver) = (Arc::clone(self), receiver.expect("taken once, under `threads_started`"));
        let builder = std::thread::Builder::new().name("ebb-callbacks".to_owned());
        builder.spawn(move || engine.serve_callbacks(&receiver)).expect("the system has room for a thread");
    }
}

#[cfg(test)]
mod confined_tests;
#[cfg(test)]
mod control_tests;
#[cfg(test)]
mod tests;
