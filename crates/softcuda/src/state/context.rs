//! Contexts: what a program's streams, modules and memory belong to.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cuda_abi::*;
use softgpu::engine::{self, Task, Work};
use softgpu::memory::{ContextId, GRANULE};
use softgpu::simt::Output;

use super::driver::{Driver, next_id};
use super::limits::Limits;
use super::queue::{Desk, Door, Takes};
use super::stream::{Kind, Stream};
use super::{control, event, function, library, lock, module};
use crate::error::{Error, Result, refuse};
use crate::handles::{Handle, object};
use crate::log::{self, Level};

pub struct Context {
    pub handle: Handle<Context>,
    pub id: u64,
    pub engine: Arc<engine::Context>,
    pub driver: &'static Driver,
    pub is_primary: bool,
    pub flags: AtomicU32,
    pub limits: Mutex<Limits>,
    pub output: Arc<Output>,
    pub legacy: Arc<Stream>,
    /// Submissions to streams that wait for each other are made one at a time.
    order: Mutex<()>,
    /// Held by whoever copies, and all the time by one who waits for pageable memory to be filled: on a card, copies of
    /// other threads wait meanwhile, whatever their streams are.
    pub copying: Mutex<()>,
    door: Door,
    desk: Desk,
    streams: Mutex<Vec<Arc<Stream>>>,
    workspaces: Mutex<Vec<u64>>,
    next_grid: AtomicU64,
    destroyed: AtomicBool,
}

object!(Context, CUctx_st, CUDA_ERROR_INVALID_CONTEXT);

/// Handles of contexts that are gone. As on a card, they may be made current; it is using them that is refused.
static DESTROYED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// Whether a handle was a context's once.
pub fn is_destroyed(handle: Handle<Context>) -> bool {
    lock(&DESTROYED).contains(&handle.value())
}

/// What the workspace of a cooperative launch may take.
const WORKSPACE: u64 = 256;

impl Context {
    /// A new context under a new handle, or the primary one under its own.
    pub fn create(
        driver: &'static Driver,
        primary: Option<Handle<Context>>,
        flags: u32,
    ) -> Result<Arc<Context>> {
        let engine = driver
            .engine
            .create_context()
            .map_err(|error| Error::new(CUDA_ERROR_OUT_OF_MEMORY, error.to_string()))?;
        control::adopt(driver, engine.id());
        let handle = primary.unwrap_or_else(Handle::fresh);
        let context = Arc::new_cyclic(|context| Context {
            handle,
            id: next_id(),
            engine,
            driver,
            is_primary: primary.is_some(),
            flags: AtomicU32::new(flags),
            limits: Mutex::default(),
            output: Arc::default(),
            legacy: Stream::new(context.clone(), Kind::Legacy, 0),
            order: Mutex::new(()),
            copying: Mutex::new(()),
            door: Door::default(),
            desk: Desk::default(),
            streams: Mutex::default(),
            workspaces: Mutex::default(),
            next_grid: AtomicU64::new(1),
            destroyed: AtomicBool::new(false),
        });
        handle.bind(Arc::clone(&context));
        Ok(context)
    }

    pub fn owner(&self) -> ContextId {
        ContextId(self.id)
    }

    pub fn is_destroyed(&self) -> bool {
        self.destroyed.load(Ordering::Acquire)
    }

    /// Refuses with what the context died of.
    pub fn check(&self) -> Result<()> {
        if self.is_destroyed() {
            return refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED);
        }
        match self.engine.fault() {
            Some(report) => Err(report.into()),
            None => Ok(()),
        }
    }

    /// Ends the context: its work is awaited, everything it owned is gone.
    pub fn destroy(self: &Arc<Context>) {
        if self.destroyed.swap(true, Ordering::AcqRel) {
            return;
        }
        if !self.is_primary {
            lock(&DESTROYED).insert(self.handle.value());
        }
        let _ = self.handle.take();
        let _ = self.wait_for_all();
        self.engine.destroy();
        let streams = std::mem::take(&mut *lock(&self.streams));
        for stream in &streams {
            let _ = stream.handle.take();
        }
        event::forget(self.id);
        function::forget(self.id);
        module::forget(self.id);
        library::forget(self.id);
        if let Err(error) = self.driver.space.free_owned(self.owner()) {
            log::say(Level::Warn, format_args!("memory of a context could not be freed: {error}"));
        }
    }

    /// Adopts a stream, and lets go of those that were destroyed and have run dry.
    pub fn adopt(&self, stream: &Arc<Stream>) {
        let mut streams = lock(&self.streams);
        streams.retain(|stream| !stream.is_destroyed() || !stream.tail().is_done());
        streams.push(Arc::clone(stream));
    }

    pub fn streams(&self) -> Vec<Arc<Stream>> {
        lock(&self.streams).clone()
    }

    /// Hands over what a call of the program puts into a stream, when there is room for it.
    pub fn hand_over(
        &self,
        stream: &Stream,
        takes: Takes,
        submit: impl FnOnce() -> Result<Task>,
    ) -> Result<Task> {
        self.door.pass(&self.engine, &stream.queue, takes, submit)
    }

    /// Appends work to a stream. It starts after everything before it in the stream, after what CUDA's default
    /// stream makes it wait for, and after `also`.
    pub fn submit(&self, stream: &Stream, work: Work, also: &[Task], priority: i32) -> Task {
        let order = (stream.kind != Kind::NonBlocking).then(|| lock(&self.order));
        let mut after = also.to_vec();
        match stream.kind {
            Kind::Legacy => after.extend(self.blocking_tails()),
            Kind::Blocking | Kind::PerThread => after.push(self.legacy.tail()),
            Kind::NonBlocking => {}
        }
        after.retain(|task| !task.is_done());
        let task = stream.append(after, |after| self.engine.submit(work, after, priority));
        drop(order);
        task
    }

    fn blocking_tails(&self) -> Vec<Task> {
        let streams = lock(&self.streams);
        streams.iter().filter(|stream| stream.kind != Kind::NonBlocking).map(|stream| stream.tail()).collect()
    }

    pub fn wait(&self, task: &Task) -> Result<()> {
        let waited = self.engine.wait(task);
        self.flush_output();
        waited.map_err(Error::from)
    }

    /// Waits for everything submitted so far.
    pub fn wait_for_all(&self) -> Result<()> {
        let mut tails = vec![self.legacy.tail()];
        tails.extend(self.streams().iter().map(|stream| stream.tail()));
        for tail in tails {
            self.wait(&tail)?;
        }
        Ok(())
    }

    /// Waits for everything submitted so far, and lets nobody ask how far it is meanwhile: memory is about to be given back.
    pub fn bring_to_rest(&self) -> Result<()> {
        self.desk.wait_inside(|| self.wait_for_all())
    }

    /// Has `ask` ask how far the context's work is. A host function is part of what somebody may be waiting for there, so it does not
    /// wait for that.
    pub fn ask<T>(&self, in_host_function: bool, ask: impl FnOnce() -> T) -> T {
        if in_host_function { ask() } else { self.desk.ask(ask) }
    }

    /// What kernels printed appears when the host synchronises, as with a card.
    fn flush_output(&self) {
        use std::io::Write;
        let text = self.output.drain();
        if !text.is_empty() {
            let mut stdout = std::io::stdout();
            let _ = stdout.write_all(&text).and_then(|()| stdout.flush());
        }
    }

    pub fn next_grid_id(&self) -> u64 {
        self.next_grid.fetch_add(1, Ordering::Relaxed)
    }

    /// Zeroed memory for the barrier of one cooperative launch.
    pub fn take_workspace(&self) -> Result<u64> {
        let mut free = lock(&self.workspaces);
        if free.is_empty() {
            let base = self.driver.space.allocate(self.owner(), GRANULE)?.0;
            free.extend((0..GRANULE / WORKSPACE).map(|index| base + index * WORKSPACE));
        }
        let address = free.pop().ok_or(CUDA_ERROR_OUT_OF_MEMORY)?;
        self.driver.space.write(address, &[0; WORKSPACE as usize])?;
        Ok(address)
    }

    pub fn give_workspace(&self, address: u64) {
        lock(&self.workspaces).push(address);
    }
}
