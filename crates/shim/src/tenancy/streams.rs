//! The streams that were given work, and whether they are done with it.
//!
//! A thread that hands work to a stream leaves a mark here, which costs a look at one place. The keeper asks the
//! driver about marked streams. It may only do so while the stream exists and nobody captures: a question about a
//! stream that is part of a capture would end the capture. So whoever destroys streams or contexts, or begins a capture,
//! first passes the lock under which the keeper asks.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use cuda_abi::{CUDA_ERROR_NOT_READY, CUDA_SUCCESS, CUcontext, CUevent, CUresult, CUstream};

use crate::lock::Lock;
use crate::next;

const PLACES: usize = 128;
/// How many places a stream may lie in.
const NEAR: usize = 8;

const LEGACY: usize = 1;
const PER_THREAD: usize = 2;

const DISABLE_TIMING: u32 = 2;

pub struct Streams {
    places: [Place; PLACES],
    /// A stream found no place, so nothing can be said about all of them.
    overflow: AtomicBool,
    /// An event behind everything that the default streams of threads were given.
    fence: AtomicUsize,
    fence_context: AtomicUsize,
    fence_pending: AtomicBool,
}

struct Place {
    stream: AtomicUsize,
    context: AtomicUsize,
    marked: AtomicBool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Done,
    Pending,
    /// Nobody may ask now, or not all streams are known.
    Unknown,
}

/// How many captures are under way, or about to begin.
static CAPTURING: AtomicU32 = AtomicU32::new(0);
static LOCK: Lock = Lock::new();

impl Streams {
    pub const fn new() -> Streams {
        Streams {
            places: [const { Place::new() }; PLACES],
            overflow: AtomicBool::new(false),
            fence: AtomicUsize::new(0),
            fence_context: AtomicUsize::new(0),
            fence_pending: AtomicBool::new(false),
        }
    }

    /// A stream was given work.
    #[inline]
    pub fn mark(&self, handle: usize, per_thread: bool) {
        let stream = match handle {
            0 if per_thread => PER_THREAD,
            0 => LEGACY,
            handle => handle,
        };
        let first = first_place(stream);
        for place in self.near(first) {
            if place.stream.load(Ordering::Relaxed) == stream {
                // Read before written: threads that share a stream need not fight for the line.
                if !place.marked.load(Ordering::Relaxed) {
                    place.marked.store(true, Ordering::Release);
                }
                return;
            }
        }
        self.remember(stream, first);
    }

    fn near(&self, first: usize) -> impl Iterator<Item = &Place> {
        (0..NEAR).map(move |step| &self.places[(first + step) % PLACES])
    }

    #[cold]
    fn remember(&self, stream: usize, first: usize) {
        let mut context: CUcontext = ptr::null_mut();
        // SAFETY: a place for the answer. A thread that has just used a stream has a context, or the stream has one.
        let _ = unsafe { next::call::cuCtxGetCurrent(&mut context) };
        for place in self.near(first) {
            let free = place.stream.compare_exchange(0, stream, Ordering::AcqRel, Ordering::Relaxed);
            if free.is_ok() || free == Err(stream) {
                place.context.store(context.expose_provenance(), Ordering::Relaxed);
                place.marked.store(true, Ordering::Release);
                return;
            }
        }
        self.overflow.store(true, Ordering::Relaxed);
    }

    /// Whether everything that was handed over so far is done. `closed`: nobody hands over more meanwhile.
    pub fn work(&self, closed: bool) -> Work {
        let Some(_held) = LOCK.acquire() else { return Work::Unknown };
        if is_capturing() || self.overflow.load(Ordering::Relaxed) {
            return Work::Unknown;
        }
        let mut sum = Work::Done;
        for place in &self.places {
            // Taken back before the question: who marks meanwhile is not lost.
            if !place.marked.swap(false, Ordering::AcqRel) {
                continue;
            }
            let work = self.ask(place, closed);
            if work != Work::Done {
                place.marked.store(true, Ordering::Release);
                sum = work;
                break;
            }
        }
        sum
    }

    fn ask(&self, place: &Place, closed: bool) -> Work {
        let stream = place.stream.load(Ordering::Relaxed);
        let context = place.context.load(Ordering::Relaxed);
        if stream == 0 {
            return Work::Done;
        }
        within(context, || match stream {
            PER_THREAD if !closed => Work::Unknown,
            PER_THREAD => self.ask_fence(context),
            // SAFETY: a stream that exists: who destroys it forgets it first, and waits for the lock we hold.
            _ => answer(unsafe { next::call::cuStreamQuery(stream as CUstream) }),
        })
    }

    /// The default stream of another thread cannot be asked for. But the legacy stream waits for all of them, so an event
    /// there is behind what they were given; and while nobody hands over more, it holds nobody up.
    fn ask_fence(&self, context: usize) -> Work {
        let mut fence: CUevent = ptr::with_exposed_provenance_mut(self.fence.load(Ordering::Relaxed));
        if fence.is_null() || self.fence_context.load(Ordering::Relaxed) != context {
            // SAFETY: a context is current; a place for the event.
            if unsafe { next::call::cuEventCreate(&mut fence, DISABLE_TIMING) } != CUDA_SUCCESS {
                return Work::Unknown;
            }
            self.fence.store(fence.expose_provenance(), Ordering::Relaxed);
            self.fence_context.store(context, Ordering::Relaxed);
            self.fence_pending.store(false, Ordering::Relaxed);
        }
        if !self.fence_pending.swap(true, Ordering::Relaxed) {
            // SAFETY: our own event, in the context that is current.
            if unsafe { next::call::cuEventRecord(fence, LEGACY as CUstream) } != CUDA_SUCCESS {
                return Work::Unknown;
            }
        }
        // SAFETY: our own event.
        let work = answer(unsafe { next::call::cuEventQuery(fence) });
        if work != Work::Pending {
            self.fence_pending.store(false, Ordering::Relaxed);
        }
        work
    }

    /// A stream is about to be destroyed.
    pub fn forget(&self, stream: usize) {
        let Some(_held) = LOCK.acquire() else { return };
        for place in self.places.iter().filter(|place| place.stream.load(Ordering::Relaxed) == stream) {
            place.stream.store(0, Ordering::Relaxed);
            place.marked.store(false, Ordering::Relaxed);
        }
    }

    /// A context is about to be destroyed, and all streams in it.
    pub fn forget_all(&self) {
        let Some(_held) = LOCK.acquire() else { return };
        for place in &self.places {
            place.stream.store(0, Ordering::Relaxed);
            place.marked.store(false, Ordering::Relaxed);
        }
        self.overflow.store(false, Ordering::Relaxed);
        // The event went with its context, or will.
        self.fence.store(0, Ordering::Relaxed);
    }
}

impl Place {
    const fn new() -> Place {
        Place { stream: AtomicUsize::new(0), context: AtomicUsize::new(0), marked: AtomicBool::new(false) }
    }
}

fn first_place(stream: usize) -> usize {
    (stream.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % PLACES
}

fn within(context: usize, work: impl FnOnce() -> Work) -> Work {
    // SAFETY: a context that was current in a thread which used it, and that is forgotten before it is destroyed.
    let pushed = unsafe { next::call::cuCtxPushCurrent_v2(ptr::with_exposed_provenance_mut(context)) };
    if pushed != CUDA_SUCCESS {
        return Work::Done;
    }
    let work = work();
    let mut popped: CUcontext = ptr::null_mut();
    // SAFETY: a place for the answer; what was pushed is popped.
    let _ = unsafe { next::call::cuCtxPopCurrent_v2(&mut popped) };
    work
}

/// A stream that answers with an error will do no more work.
fn answer(result: CUresult) -> Work {
    if result == CUDA_ERROR_NOT_READY { Work::Pending } else { Work::Done }
}

/// A capture is about to begin: nobody is asking about a stream when this returns, and nobody will.
pub fn capture_begins() {
    let _held = LOCK.acquire();
    CAPTURING.fetch_add(1, Ordering::SeqCst);
}

pub fn is_capturing() -> bool {
    CAPTURING.load(Ordering::SeqCst) != 0
}

pub fn capture_ends() {
    let fewer = |count: u32| count.checked_sub(1);
    let _ = CAPTURING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
}

/// In the child of a fork.
pub fn in_child() {
    LOCK.reset();
    CAPTURING.store(0, Ordering::Relaxed);
}
