//! Streams: a chain of tasks, of which only the last is remembered.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};

use cuda_abi::*;
use softgpu::engine::{Task, Work};

use super::capture::{self, Capture};
use super::context::Context;
use super::driver::next_id;
use super::green::GreenContext;
use super::operation::Operation;
use super::queue::{Queue, Takes};
use super::{current, lock};
use crate::entry;
use crate::error::{Result, refuse};
use crate::handles::{Handle, object};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The default stream: waits for all that block, and they for it.
    Legacy,
    /// A thread's own default stream.
    PerThread,
    Blocking,
    NonBlocking,
}

pub struct Stream {
    pub handle: Handle<Stream>,
    pub id: u64,
    pub kind: Kind,
    pub priority: i32,
    /// The green context that it was made in, if it was.
    pub green: Option<Arc<GreenContext>>,
    context: Weak<Context>,
    tail: Mutex<Task>,
    pub queue: Queue,
    pub capture: Mutex<Option<Arc<Capture>>>,
    /// Attributes that are kept and have no effect here.
    pub synchronisation_policy: AtomicU32,
    destroyed: AtomicBool,
}

object!(Stream, CUstream_st, CUDA_ERROR_INVALID_HANDLE);

/// Priorities as on the card: 0 is the lowest.
pub const LEAST_PRIORITY: i32 = 0;
pub const GREATEST_PRIORITY: i32 = -5;

thread_local! {
    static OWN: RefCell<OwnStreams> = const { RefCell::new(OwnStreams(Vec::new())) };
}

/// A thread's default streams, one per context it has worked in. They go with the thread.
struct OwnStreams(Vec<Arc<Stream>>);

impl Drop for OwnStreams {
    fn drop(&mut self) {
        for stream in &self.0 {
            stream.destroyed.store(true, Ordering::Release);
        }
    }
}

impl Stream {
    /// A stream that is always there.
    pub fn new(context: Weak<Context>, kind: Kind, priority: i32) -> Arc<Stream> {
        Stream::build(context, kind, priority, None)
    }

    fn build(
        context: Weak<Context>,
        kind: Kind,
        priority: i32,
        green: Option<Arc<GreenContext>>,
    ) -> Arc<Stream> {
        Arc::new(Stream {
            handle: match kind {
                Kind::Legacy => Handle::of(CU_STREAM_LEGACY.addr() as u64),
                Kind::PerThread => Handle::of(CU_STREAM_PER_THREAD.addr() as u64),
                Kind::Blocking | Kind::NonBlocking => Handle::fresh(),
            },
            id: next_id(),
            kind,
            priority,
            green,
            context,
            tail: Mutex::new(Task::done()),
            queue: Queue::default(),
            capture: Mutex::new(None),
            synchronisation_policy: AtomicU32::new(CU_SYNC_POLICY_AUTO.0),
            destroyed: AtomicBool::new(false),
        })
    }

    /// A stream that the program asked for.
    pub fn create(
        context: &Arc<Context>,
        kind: Kind,
        priority: i32,
        green: Option<Arc<GreenContext>>,
    ) -> Arc<Stream> {
        let priority = priority.clamp(GREATEST_PRIORITY, LEAST_PRIORITY);
        let stream = Stream::build(Arc::downgrade(context), kind, priority, green);
        stream.handle.bind(Arc::clone(&stream));
        context.adopt(&stream);
        stream
    }

    /// The stream behind a handle in the calling thread's context; null means a default stream.
    pub fn find(handle: Handle<Stream>) -> Result<Arc<Stream>> {
        let special = [CU_STREAM_LEGACY, CU_STREAM_PER_THREAD].map(|stream| stream.addr() as u64);
        match handle.value() {
            0 if entry::is_per_thread() => Ok(Stream::of_thread(&current::context()?)),
            0 => Ok(Arc::clone(&current::context()?.legacy)),
            value if value == special[0] => Ok(Arc::clone(&current::context()?.legacy)),
            value if value == special[1] => Ok(Stream::of_thread(&current::context()?)),
            _ => {
                super::driver::driver()?;
                let Some(stream) = handle.find() else {
                    // A context that has gone has taken its streams along, and that is what is told.
                    current::context()?;
                    return refuse(CUDA_ERROR_INVALID_HANDLE);
                };
                if stream.green.as_ref().is_some_and(|green| green.is_destroyed()) {
                    return refuse(CUDA_ERROR_STREAM_DETACHED);
                }
                stream.context()?.check()?;
                Ok(stream)
            }
        }
    }

    /// The calling thread's own default stream.
    fn of_thread(context: &Arc<Context>) -> Arc<Stream> {
        OWN.with_borrow_mut(|own| {
            own.0.retain(|stream| stream.context().is_ok());
            let known = own.0.iter().find(|stream| stream.context.as_ptr() == Arc::as_ptr(context));
            if let Some(stream) = known {
                return Arc::clone(stream);
            }
            let stream = Stream::new(Arc::downgrade(context), Kind::PerThread, 0);
            context.adopt(&stream);
            own.0.push(Arc::clone(&stream));
            stream
        })
    }

    pub fn destroy(&self) {
        self.destroyed.store(true, Ordering::Release);
    }

    pub fn is_destroyed(&self) -> bool {
        self.destroyed.load(Ordering::Acquire)
    }

    pub fn context(&self) -> Result<Arc<Context>> {
        match self.context.upgrade().filter(|context| !context.is_destroyed()) {
            Some(context) => Ok(context),
            None => refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED),
        }
    }

    /// As C has it: null for a stream of an ordinary context.
    pub fn green_handle(&self) -> CUgreenCtx {
        self.green.as_ref().map_or(std::ptr::null_mut(), |green| green.handle.raw())
    }

    pub fn flags(&self) -> u32 {
        match self.kind {
            Kind::NonBlocking => CU_STREAM_NON_BLOCKING.0,
            _ => CU_STREAM_DEFAULT.0,
        }
    }

    pub fn tail(&self) -> Task {
        lock(&self.tail).clone()
    }

    /// Puts a task, made to start after the stream's last one and `after`, at the end.
    pub fn append(&self, mut after: Vec<Task>, make: impl FnOnce(&[Task]) -> Task) -> Task {
        let mut tail = lock(&self.tail);
        if !tail.is_done() {
            after.push(tail.clone());
        }
        let task = make(&after);
        *tail = task.clone();
        task
    }

    /// Gives an operation to the stream: to be captured, or to be carried out.
    pub fn enqueue(&self, operation: Operation) -> Result<Option<Task>> {
        let context = self.context()?;
        if let Some(capture) = capture::of(self, &context)? {
            capture.add(self, operation)?;
            return Ok(None);
        }
        let submit = || operation.submit(&context, self, &[]);
        context.hand_over(self, operation.takes(), submit).map(Some)
    }

    /// Makes what comes next in the stream wait for `task`.
    pub fn wait_for(&self, task: &Task) -> Result<()> {
        let context = self.context()?;
        if !task.is_done() {
            let wait = || Ok(context.submit(self, Work::Nothing, std::slice::from_ref(task), self.priority));
            context.hand_over(self, Takes::Nothing, wait)?;
        }
        Ok(())
    }

    /// Waits, in the calling thread, for everything in the stream.
    pub fn synchronise(&self) -> Result<()> {
        let context = self.context()?;
        // The default stream has nothing of its own to wait for while others that block it are at work. This is no work that is handed
        // over, so it does not wait for those who stand in the door.
        let task = match self.kind {
            Kind::Legacy => context.submit(self, Work::Nothing, &[], self.priority),
            _ => self.tail(),
        };
        context.wait(&task)?;
        context.check()
    }

    pub fn is_idle(&self) -> Result<bool> {
        let context = self.context()?;
        context.check()?;
        let streams = context.streams();
        let blocking = streams.iter().filter(|stream| stream.kind != Kind::NonBlocking);
        let others_idle =
            self.kind != Kind::Legacy || blocking.map(|stream| stream.tail()).all(|tail| tail.is_done());
        Ok(self.tail().is_done() && others_idle)
    }
}
