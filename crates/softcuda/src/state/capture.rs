//! Capture: what a stream is asked to do becomes a graph instead of happening.
//!
//! A capture begins in one stream and spreads to others through events: a stream that waits for an event of
//! the capture joins it. For each stream that takes part the capture keeps the nodes after which the next
//! operation of that stream comes. Whatever cannot be part of a graph invalidates the capture; it then
//! refuses everything until it is ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use cuda_abi::*;

use super::context::Context;
use super::driver::next_id;
use super::event::{Event, Mark};
use super::graph::Graph;
use super::lock;
use super::operation::Operation;
use super::stream::{Kind, Stream};
use crate::error::{Error, Result, refuse};

pub struct Capture {
    pub id: u64,
    pub graph: Arc<Graph>,
    pub mode: CUstreamCaptureMode,
    context: u64,
    origin: u64,
    thread: ThreadId,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    invalid: bool,
    ended: bool,
    /// By id of the stream: it, and what its next node comes after.
    streams: BTreeMap<u64, (Arc<Stream>, Vec<u64>)>,
}

/// All captures under way in this process, for calls that no capture allows.
static ACTIVE: Mutex<Vec<Arc<Capture>>> = Mutex::new(Vec::new());

thread_local! {
    static MODE: std::cell::Cell<CUstreamCaptureMode> = const { std::cell::Cell::new(CU_STREAM_CAPTURE_MODE_GLOBAL) };
}

/// Sets how strict the calling thread is with unsafe calls, and gives how it was.
pub fn exchange_mode(mode: CUstreamCaptureMode) -> CUstreamCaptureMode {
    MODE.replace(mode)
}

pub fn is_mode(mode: CUstreamCaptureMode) -> bool {
    let modes =
        [CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED];
    modes.contains(&mode)
}

/// For calls that would disturb a capture (allocating, waiting for the device): refuses, and spoils the
/// captures concerned, when the rules of the capture's mode and of this thread's forbid it now.
pub fn forbid_unsafe_call() -> Result<()> {
    let mode = MODE.get();
    if mode == CU_STREAM_CAPTURE_MODE_RELAXED {
        return Ok(());
    }
    let here = std::thread::current().id();
    let concerns = |capture: &&Arc<Capture>| match capture.mode {
        CU_STREAM_CAPTURE_MODE_RELAXED => false,
        CU_STREAM_CAPTURE_MODE_GLOBAL if mode == CU_STREAM_CAPTURE_MODE_GLOBAL => true,
        _ => capture.thread == here,
    };
    let spoilt: Vec<Arc<Capture>> =
        lock(&ACTIVE).iter().filter(concerns).filter(|capture| !capture.is_invalid()).cloned().collect();
    spoilt.iter().for_each(|capture| capture.invalidate());
    if spoilt.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        "this call is not allowed while a stream is being captured",
    ))
}

/// Refuses to wait for a whole context while something in it is being captured.
pub fn forbid_in(context: &Context) -> Result<()> {
    let spoilt: Vec<Arc<Capture>> =
        lock(&ACTIVE).iter().filter(|capture| capture.context == context.id).cloned().collect();
    spoilt.iter().for_each(|capture| capture.invalidate());
    if spoilt.is_empty() { Ok(()) } else { refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) }
}

/// The capture that a stream takes part in. The default stream would drag streams that are being captured
/// into work that is not, so it is refused while there are any.
pub fn of(stream: &Stream, context: &Context) -> Result<Option<Arc<Capture>>> {
    if let Some(capture) = lock(&stream.capture).clone() {
        return if capture.is_invalid() {
            refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
        } else {
            Ok(Some(capture))
        };
    }
    let entangled = entangled(stream, context);
    entangled.iter().for_each(|capture| capture.invalidate());
    if entangled.is_empty() { Ok(None) } else { refuse(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) }
}

/// Whether using a stream would drag streams that are being captured into work that is not.
pub fn is_implicit(stream: &Stream, context: &Context) -> bool {
    !entangled(stream, context).is_empty()
}

fn entangled(stream: &Stream, context: &Context) -> Vec<Arc<Capture>> {
    if stream.kind != Kind::Legacy {
        return Vec::new();
    }
    let concerned = |capture: &&Arc<Capture>| capture.context == context.id && capture.has_blocking_stream();
    lock(&ACTIVE).iter().filter(concerned).cloned().collect()
}

/// Makes a stream wait for an event of a capture, and so take part in it.
pub fn join(stream: &Stream, own: Option<Arc<Capture>>, capture: &Arc<Capture>, after: &[u64]) -> Result<()> {
    if let Some(own) = &own {
        if !Arc::ptr_eq(own, capture) {
            own.invalidate();
            capture.invalidate();
            return refuse(if capture.is_ended() {
                CUDA_ERROR_STREAM_CAPTURE_ISOLATION
            } else {
                CUDA_ERROR_STREAM_CAPTURE_MERGE
            });
        }
    } else if capture.is_ended() {
        return refuse(CUDA_ERROR_INVALID_VALUE);
    } else if stream.kind == Kind::Legacy {
        capture.invalidate();
        return refuse(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    capture.take_in(stream, after)
}

impl Capture {
    pub fn begin(
        stream: &Arc<Stream>,
        mode: CUstreamCaptureMode,
        into: Option<(Arc<Graph>, Vec<u64>)>,
    ) -> Result<Arc<Capture>> {
        let context = stream.context()?;
        if stream.kind == Kind::Legacy {
            return refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
        let mut place = lock(&stream.capture);
        if place.is_some() {
            return refuse(CUDA_ERROR_ILLEGAL_STATE);
        }
        let (graph, after) = into.unwrap_or_else(|| (Graph::create(), Vec::new()));
        if !after.iter().all(|node| graph.contains(*node)) {
            return refuse(CUDA_ERROR_INVALID_VALUE);
        }
        let streams = BTreeMap::from([(stream.id, (Arc::clone(stream), after))]);
        let capture = Arc::new(Capture {
            id: next_id(),
            graph,
            mode,
            context: context.id,
            origin: stream.id,
            thread: std::thread::current().id(),
            state: Mutex::new(State { streams, ..State::default() }),
        });
        lock(&ACTIVE).push(Arc::clone(&capture));
        *place = Some(Arc::clone(&capture));
        Ok(capture)
    }

    /// Ends the capture of `stream` and gives its graph. Whatever is wrong, the capture is over afterwards.
    pub fn end(stream: &Stream) -> Result<Arc<Graph>> {
        let Some(capture) = lock(&stream.capture).clone() else { return refuse(CUDA_ERROR_ILLEGAL_STATE) };
        let same_thread = capture.thread == std::thread::current().id();
        if capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED && !same_thread {
            capture.finish();
            capture.graph.destroy();
            return refuse(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
        }
        if capture.origin != stream.id {
            capture.invalidate();
            return refuse(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        }
        let result = capture.result(stream);
        capture.finish();
        if result.is_err() {
            capture.graph.destroy();
        }
        result.map(|()| Arc::clone(&capture.graph))
    }

    fn result(&self, origin: &Stream) -> Result<()> {
        let state = lock(&self.state);
        if state.invalid {
            return refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        }
        let ends = state.streams.get(&origin.id).map_or(&[][..], |(_, after)| after);
        let joined = self.graph.ancestors(ends);
        let all_joined =
            state.streams.values().flat_map(|(_, after)| after).all(|node| joined.contains(node));
        if all_joined { Ok(()) } else { refuse(CUDA_ERROR_STREAM_CAPTURE_UNJOINED) }
    }

    fn finish(&self) {
        let streams = {
            let mut state = lock(&self.state);
            state.ended = true;
            std::mem::take(&mut state.streams)
        };
        for (stream, _) in streams.into_values() {
            *lock(&stream.capture) = None;
        }
        lock(&ACTIVE).retain(|capture| capture.id != self.id);
    }

    pub fn is_invalid(&self) -> bool {
        lock(&self.state).invalid
    }

    pub fn is_ended(&self) -> bool {
        lock(&self.state).ended
    }

    pub fn invalidate(&self) {
        lock(&self.state).invalid = true;
    }

    fn has_blocking_stream(&self) -> bool {
        lock(&self.state).streams.values().any(|(stream, _)| stream.kind != Kind::NonBlocking)
    }

    /// What the next node of a stream comes after.
    pub fn dependencies(&self, stream: &Stream) -> Vec<u64> {
        lock(&self.state).streams.get(&stream.id).map(|(_, after)| after.clone()).unwrap_or_default()
    }

    pub fn set_dependencies(&self, stream: &Stream, nodes: Vec<u64>) -> Result<()> {
        if !nodes.iter().all(|node| self.graph.contains(*node)) {
            return refuse(CUDA_ERROR_INVALID_VALUE);
        }
        if let Some((_, after)) = lock(&self.state).streams.get_mut(&stream.id) {
            *after = nodes;
        }
        Ok(())
    }

    /// Makes a node of an operation of a stream that takes part.
    pub fn add(&self, stream: &Stream, operation: Operation) -> Result<()> {
        if matches!(operation, Operation::Callback(_)) {
            self.invalidate();
            return Err(Error::new(
                CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "this operation cannot be captured",
            ));
        }
        let node = self.graph.add(operation, &self.dependencies(stream))?;
        self.set_dependencies(stream, vec![node.handle.value()])
    }

    pub fn record(self: &Arc<Capture>, stream: &Stream, event: &Arc<Event>, external: bool) -> Result<()> {
        if external {
            return self.add(stream, Operation::Record(Arc::clone(event)));
        }
        let after = self.dependencies(stream);
        event.set_mark(Mark::Captured { capture: Arc::clone(self), after });
        Ok(())
    }

    pub fn wait_external(&self, stream: &Stream, event: &Arc<Event>) -> Result<()> {
        self.add(stream, Operation::Wait(Arc::clone(event)))
    }

    fn take_in(self: &Arc<Capture>, stream: &Stream, after: &[u64]) -> Result<()> {
        let context = stream.context()?;
        let known = context.streams().into_iter().find(|known| known.id == stream.id);
        let stream = known.ok_or(CUDA_ERROR_INVALID_HANDLE)?;
        let mut place = lock(&stream.capture);
        let mut state = lock(&self.state);
        let (_, own) = state.streams.entry(stream.id).or_insert_with(|| (Arc::clone(&stream), Vec::new()));
        for node in after {
            if !own.contains(node) {
                own.push(*node);
            }
        }
        *place = Some(Arc::clone(self));
        Ok(())
    }
}
