//! The streams that were given work, and whether they are done with it.
//!
//! A thread that hands work to a stream leaves a mark here, which costs a look at one place. The keeper asks the
//! driver about marked streams. It may only do so while the stream exists and nobody captures: a question about a
//! stream that is part of a capture would end the capture. So whoever destroys streams or contexts, or begins a capture,
//! first passes the lock under which the keeper asks.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use cuda_abi::{CUDA_ERROR_NOT_READY, CUDA_SUCCESS, CUcontext, CUresult, CUstream};

use super::key::Key;
use crate::lock::Lock;
use crate::next;

const PLACES: usize = 128;
/// How many places a stream may lie in.
const NEAR: usize = 8;

pub struct Streams {
    places: [Place; PLACES],
    /// A stream found no place, so nothing can be said about all of them.
    overflow: AtomicBool,
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
    /// Nobody may ask now, or not about all streams.
    Unknown,
}

/// How many captures are under way, or about to begin.
static CAPTURING: AtomicU32 = AtomicU32::new(0);
static LOCK: Lock = Lock::new();

impl Streams {
    pub const fn new() -> Streams {
        Streams { places: [const { Place::new() }; PLACES], overflow: AtomicBool::new(false) }
    }

    /// A stream was given work.
    #[inline]
    pub fn mark(&self, key: Key) {
        for place in self.near(key) {
            if place.stream.load(Ordering::Relaxed) == key.0 {
                // Read before written: threads that share a stream need not fight for the line.
                if !place.marked.load(Ordering::Relaxed) {
                    place.marked.store(true, Ordering::Release);
                }
                return;
            }
        }
        self.remember(key);
    }

    /// The program has waited for a stream. Only of those that cannot be asked about is that worth knowing.
    pub fn waited(&self, key: Key) {
        if key.is_of_thread() {
            let own = |place: &&Place| place.stream.load(Ordering::Relaxed) == key.0;
            self.near(key).filter(own).for_each(|place| place.marked.store(false, Ordering::Release));
        }
    }

    pub fn waited_for_all(&self) {
        let of_threads = |place: &&Place| Key(place.stream.load(Ordering::Relaxed)).is_of_thread();
        self.places.iter().filter(of_threads).for_each(|place| place.marked.store(false, Ordering::Release));
    }

    fn near(&self, key: Key) -> impl Iterator<Item = &Place> {
        let first = key.place(PLACES);
        (0..NEAR).map(move |step| &self.places[(first + step) % PLACES])
    }

    /// In a free place, or in that of a stream which has nothing to do.
    #[cold]
    fn remember(&self, key: Key) {
        let mut context: CUcontext = ptr::null_mut();
        // SAFETY: a place for the answer. A thread that has just used a stream has a context, or the stream has one.
        let _ = unsafe { next::call::cuCtxGetCurrent(&mut context) };
        let Some(_held) = LOCK.acquire() else { return self.overflow.store(true, Ordering::Relaxed) };
        let idle = |place: &&Place| !place.marked.load(Ordering::Acquire);
        match self.near(key).find(idle) {
            Some(place) => {
                place.stream.store(key.0, Ordering::Relaxed);
                place.context.store(context.expose_provenance(), Ordering::Relaxed);
                place.marked.store(true, Ordering::Release);
            }
            None => self.overflow.store(true, Ordering::Relaxed),
        }
    }

    /// Whether everything that was handed over so far is done.
    pub fn work(&self) -> Work {
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
            let work = ask(place);
            if work != Work::Done {
                place.marked.store(true, Ordering::Release);
                sum = work;
                break;
            }
        }
        sum
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
    }
}

impl Place {
    const fn new() -> Place {
        Place { stream: AtomicUsize::new(0), context: AtomicUsize::new(0), marked: AtomicBool::new(false) }
    }
}

fn ask(place: &Place) -> Work {
    let stream = place.stream.load(Ordering::Relaxed);
    match stream {
        0 => Work::Done,
        // The default stream of another thread has no name by which it could be asked for.
        _ if Key(stream).is_of_thread() => Work::Unknown,
        _ => within(place.context.load(Ordering::Relaxed), || {
            // SAFETY: a stream that exists: who destroys it forgets it first, and waits for the lock we hold.
            answer(unsafe { next::call::cuStreamQuery(stream as CUstream) })
        }),
    }
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
