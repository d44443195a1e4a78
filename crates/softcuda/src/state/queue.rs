//! How much of a stream may be under way at once, and who waits inside a call meanwhile.
//!
//! NVIDIA's driver keeps at most 1,020 entries of a stream that the GPU has not taken yet (measured on an H200, plain and under MPS:
//! `benchmarks/guard/programs/gates.cu`). Whoever hands over one more waits inside the call. Here it does so with a lock that everybody needs who
//! hands over anything in that context: while the stream stands at a gate, so do they all, and if one of them was to open the gate, for ever.
//! That is stricter than the card, where a write by another stream went through; but a library in front of the driver comes to
//! the call with locks of its own, and has to keep out of it, so it must be able to happen here, and in every run.
//!
//! Whoever gives memory back waits for all work of the context with a lock that everybody needs who asks whether a stream is done. On an H200 a process hung that was taken off the GPU while one of its threads was most likely inside `cuMemFree`: the thread that would have let
//! it on again was asking about a stream. That the driver waits with its locks, in every call of this kind, is not known; here it always
//! does, which is stricter than is known of the card. It is a lock of its own: work may still be handed over, because that work may be what
//! lets the other go on, and of the card nobody knows. Host functions may still ask: they are part of what is waited for.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError, RwLock};

use softgpu::engine::{self, Task};

use super::lock;
use crate::error::{Error, Result};

/// What the driver takes of one stream.
const MOST_ENTRIES: usize = 1_020;

/// What a call puts into the queue of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A launch, a batch of memory operations, a copy, a fill, an event that is timed; and a graph, of which nobody has measured whether it
    /// takes more.
    AnEntry,
    /// An event that is not timed, a wait for one; and what nobody has measured: host functions, frees.
    Nothing,
}

/// The entries of a stream that are under way, oldest first. An entry is, until it is *done*: a card lets go of it when it begins, but in a
/// stream one begins when the one before it is done, so this is stricter by the one that is running.
#[derive(Default)]
pub struct Queue(Mutex<VecDeque<Task>>);

/// The door through which all work of a context goes to the GPU. Many pass it side by side, unless somebody waits in it.
#[derive(Default)]
pub struct Door(RwLock<()>);

impl Door {
    /// Has `make` put work into the stream whose queue this is, and waits in the door until there is room for it. What is waited for is
    /// done by the engine, whose threads never come here, and by the hands of the one who waits.
    pub fn pass(
        &self,
        engine: &engine::Context,
        queue: &Queue,
        takes: Takes,
        make: impl FnOnce() -> Result<Task>,
    ) -> Result<Task> {
        let beside_others = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if takes == Takes::Nothing {
            return make();
        }
        let mut entries = lock(&queue.0);
        if oldest_if_full(&mut entries).is_none() {
            return enter(&mut entries, make);
        }
        // Whoever has the entries stands in the door, so both have to be let go before it can be shut.
        drop(entries);
        drop(beside_others);
        let _alone = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut entries = lock(&queue.0);
        while let Some(oldest) = oldest_if_full(&mut entries) {
            engine.wait(&oldest).map_err(Error::from)?;
        }
        enter(&mut entries, make)
    }
}

/// Where questions about a context's work are answered, unless somebody waits there for the work itself.
#[derive(Default)]
pub struct Desk(RwLock<()>);

impl Desk {
    /// Has `wait` wait for work here: nobody learns meanwhile how far it is.
    pub fn wait_inside<T>(&self, wait: impl FnOnce() -> T) -> T {
        let _alone = self.0.write().unwrap_or_else(PoisonError::into_inner);
        wait()
    }

    /// Has `ask` ask how far work is, once nobody waits here.
    pub fn ask<T>(&self, ask: impl FnOnce() -> T) -> T {
        let _beside_others = self.0.read().unwrap_or_else(PoisonError::into_inner);
        ask()
    }
}

fn enter(entries: &mut VecDeque<Task>, make: impl FnOnce() -> Result<Task>) -> Result<Task> {
    let task = make()?;
    entries.push_back(task.clone());
    Ok(task)
}

/// Lets go of what is done. Every entry is let go of once, so this costs next to nothing however many there are.
fn oldest_if_full(entries: &mut VecDeque<Task>) -> Option<Task> {
    while entries.front().is_some_and(Task::is_done) {
        entries.pop_front();
    }
    if entries.len() < MOST_ENTRIES { None } else { entries.front().cloned() }
}
