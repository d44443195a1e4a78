//! Events: a mark in a stream, or in a capture.

use std::sync::{Arc, Mutex};

use cuda_abi::*;
use model::Nanos;
use softgpu::engine::{Task, Work};

use super::capture::{self, Capture};
use super::context::Context;
use super::lock;
use super::queue::Takes;
use super::stream::Stream;
use crate::error::{Result, refuse};
use crate::handles::{Handle, object};

pub struct Event {
    pub handle: Handle<Event>,
    pub flags: u32,
    pub context: Arc<Context>,
    mark: Mutex<Mark>,
}

#[derive(Clone)]
pub enum Mark {
    Unrecorded,
    Recorded(Task),
    /// Recorded in a capture, after these nodes.
    Captured {
        capture: Arc<Capture>,
        after: Vec<u64>,
    },
}

object!(Event, CUevent_st, CUDA_ERROR_INVALID_HANDLE);

/// The events of a context go with it.
pub fn forget(context: u64) {
    use crate::handles::Object;
    Event::registry().sweep(|event| event.context.id == context);
}

impl Event {
    pub fn create(context: &Arc<Context>, flags: u32) -> Arc<Event> {
        let handle = Handle::fresh();
        let event = Arc::new(Event {
            handle,
            flags,
            context: Arc::clone(context),
            mark: Mutex::new(Mark::Unrecorded),
        });
        handle.bind(Arc::clone(&event));
        event
    }

    pub fn mark(&self) -> Mark {
        lock(&self.mark).clone()
    }

    pub fn set_mark(&self, mark: Mark) {
        *lock(&self.mark) = mark;
    }

    /// Records the event at the end of a stream.
    pub fn record(self: &Arc<Event>, stream: &Stream, external: bool) -> Result<()> {
        let context = stream.context()?;
        if context.id != self.context.id {
            return refuse(CUDA_ERROR_INVALID_HANDLE);
        }
        if let Some(capture) = capture::of(stream, &context)? {
            return capture.record(stream, self, external);
        }
        let takes = if self.is_timed() { Takes::AnEntry } else { Takes::Nothing };
        let record = || Ok(context.submit(stream, Work::Nothing, &[], stream.priority));
        let task = context.hand_over(stream, takes, record)?;
        self.set_mark(Mark::Recorded(task));
        Ok(())
    }

    fn is_timed(&self) -> bool {
        self.flags & CU_EVENT_DISABLE_TIMING.0 == 0
    }

    /// Records the event after everything submitted to a context.
    pub fn record_everything(&self, context: &Arc<Context>) -> Result<()> {
        if context.id != self.context.id {
            return refuse(CUDA_ERROR_INVALID_HANDLE);
        }
        let mut tails = vec![context.legacy.tail()];
        tails.extend(context.streams().iter().map(|stream| stream.tail()));
        let task = context.engine.submit(Work::Nothing, &tails, 0);
        self.set_mark(Mark::Recorded(task));
        Ok(())
    }

    /// Makes a stream wait for the event.
    pub fn hold(self: &Arc<Event>, stream: &Stream, external: bool) -> Result<()> {
        let context = stream.context()?;
        let capturing = capture::of(stream, &context)?;
        match (self.mark(), capturing) {
            (_, Some(capture)) if external => capture.wait_external(stream, self),
            (Mark::Captured { capture, after }, capturing) => {
                capture::join(stream, capturing, &capture, &after)
            }
            (_, Some(capture)) => {
                capture.invalidate();
                refuse(CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
            }
            (Mark::Unrecorded, None) => Ok(()),
            (Mark::Recorded(task), None) => stream.wait_for(&task),
        }
    }

    /// The task of the latest record; an event that was last captured marks nothing that happens.
    fn recorded(&self) -> Result<Option<Task>> {
        match self.mark() {
            Mark::Unrecorded => Ok(None),
            Mark::Recorded(task) => Ok(Some(task)),
            Mark::Captured { capture, .. } if capture.is_ended() => refuse(CUDA_ERROR_INVALID_VALUE),
            Mark::Captured { capture, .. } => {
                capture.invalidate();
                refuse(CUDA_ERROR_CAPTURED_EVENT)
            }
        }
    }

    pub fn query(&self) -> Result<()> {
        self.context.check()?;
        let recorded = self.recorded()?;
        capture::forbid_unsafe_call()?;
        match recorded {
            Some(task) if !task.is_done() => refuse(CUDA_ERROR_NOT_READY),
            _ => Ok(()),
        }
    }

    pub fn synchronise(&self) -> Result<()> {
        self.context.check()?;
        let recorded = self.recorded()?;
        capture::forbid_unsafe_call()?;
        match recorded {
            Some(task) => self.context.wait(&task),
            None => Ok(()),
        }
    }

    /// Milliseconds from `earlier` to this event.
    pub fn elapsed_since(&self, earlier: &Event) -> Result<f32> {
        if !self.is_timed() || !earlier.is_timed() {
            return refuse(CUDA_ERROR_INVALID_HANDLE);
        }
        let finished = |event: &Event| -> Result<Nanos> {
            let task = event.recorded()?.ok_or(CUDA_ERROR_INVALID_HANDLE)?;
            task.finished_at().ok_or(CUDA_ERROR_NOT_READY.into())
        };
        let (from, to) = (finished(earlier)?, finished(self)?);
        self.context.check()?;
        Ok((to.0 as i128 - from.0 as i128) as f32 * 1e-6)
    }
}
