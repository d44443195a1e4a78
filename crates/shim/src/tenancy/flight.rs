//! How much work is in flight, in time.
//!
//! A best-effort tenant that shares the token must not have queued seconds of work when its turn ends. A count of
//! launches says nothing about time, so time itself is measured: about once a millisecond an event is recorded behind
//! what was just handed over. The age of the oldest event that has not happened is how far the GPU is behind the
//! program, which is the time that is in flight.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use cuda_abi::{CUDA_ERROR_NOT_READY, CUDA_SUCCESS, CUcontext, CUevent, CUstream};
use model::Nanos;

use super::streams;
use crate::next;

const MARKS: usize = 32;
/// A question to the driver takes microseconds; nobody is waited for longer than this often.
const LOOKS: usize = 10_000;
const APART: Nanos = Nanos::from_millis(1);
const DISABLE_TIMING: u32 = 2;
/// The address of no context: nothing is measured any more.
const NO_CONTEXT: usize = usize::MAX;

pub struct Flight {
    marks: [Mark; MARKS],
    /// Counts of marks made and of marks that have happened.
    made: AtomicUsize,
    happened: AtomicUsize,
    last: AtomicU64,
    /// All marks are in one context; what other contexts do is not measured.
    context: AtomicUsize,
    /// Held while marks are made or looked at. Who does not get it leaves it to the other.
    busy: AtomicBool,
}

struct Mark {
    event: AtomicUsize,
    at: AtomicU64,
}

impl Flight {
    pub const fn new() -> Flight {
        Flight {
            marks: [const { Mark::new() }; MARKS],
            made: AtomicUsize::new(0),
            happened: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            context: AtomicUsize::new(0),
            busy: AtomicBool::new(false),
        }
    }

    /// A stream was given work.
    pub fn mark(&self, stream: CUstream, per_thread: bool, now: Nanos) {
        if now.since(Nanos(self.last.load(Ordering::Relaxed))) < APART {
            return;
        }
        let _ = self.alone(|| {
            self.last.store(now.0, Ordering::Relaxed);
            let made = self.made.load(Ordering::Relaxed);
            if made - self.happened.load(Ordering::Relaxed) < MARKS && self.is_here(stream, per_thread) {
                let mark = &self.marks[made % MARKS];
                match mark.record(stream, per_thread) {
                    Some(()) => {
                        mark.at.store(now.0, Ordering::Relaxed);
                        self.made.store(made + 1, Ordering::Relaxed);
                    }
                    // Once is enough: an error that we cause again and again would be somebody's puzzle.
                    None => self.context.store(NO_CONTEXT, Ordering::Relaxed),
                }
            }
        });
    }

    /// How long the oldest work in flight has waited, as far as is known.
    pub fn age(&self, now: Nanos) -> Nanos {
        let age = self.alone(|| {
            let made = self.made.load(Ordering::Relaxed);
            let mut happened = self.happened.load(Ordering::Relaxed);
            while happened < made && self.marks[happened % MARKS].has_happened() {
                happened += 1;
            }
            self.happened.store(happened, Ordering::Relaxed);
            let oldest = Nanos(self.marks[happened % MARKS].at.load(Ordering::Relaxed));
            if happened == made { Nanos::ZERO } else { now.since(oldest) }
        });
        age.unwrap_or_default()
    }

    /// A context is about to be destroyed, and its events with it.
    pub fn forget(&self) {
        self.context.store(NO_CONTEXT, Ordering::Relaxed);
        self.settle();
        for mark in &self.marks {
            mark.event.store(0, Ordering::Relaxed);
        }
        self.happened.store(self.made.load(Ordering::Relaxed), Ordering::Relaxed);
        self.context.store(0, Ordering::Relaxed);
    }

    /// Returns when nobody asks the driver any more who began before; a capture that has begun keeps others away.
    pub fn settle(&self) {
        for _ in 0..LOOKS {
            // SYNC(flight): pairs with the swap in `alone`.
            if !self.busy.load(Ordering::SeqCst) {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// Whether a stream is in the context of the marks, which the first stream's is.
    fn is_here(&self, stream: CUstream, per_thread: bool) -> bool {
        let mut context: CUcontext = ptr::null_mut();
        let result = if per_thread {
            // SAFETY: a stream that has just been used, and a place for the answer.
            unsafe { next::call::cuStreamGetCtx_ptsz(stream, &mut context) }
        } else {
            // SAFETY: a stream that has just been used, and a place for the answer.
            unsafe { next::call::cuStreamGetCtx(stream, &mut context) }
        };
        let known = self.context.compare_exchange(0, context.addr(), Ordering::Relaxed, Ordering::Relaxed);
        result == CUDA_SUCCESS && known.err().is_none_or(|known| known == context.addr())
    }

    fn alone<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        // SYNC(flight): pairs with the release below, and with `settle`: a capture that begins after this sees us.
        if self.busy.swap(true, Ordering::SeqCst) {
            return None;
        }
        let result = (!streams::is_capturing()).then(work);
        // SYNC(flight): what was done alone is seen by whoever is alone next.
        self.busy.store(false, Ordering::Release);
        result
    }
}

impl Mark {
    const fn new() -> Mark {
        Mark { event: AtomicUsize::new(0), at: AtomicU64::new(0) }
    }

    fn record(&self, stream: CUstream, per_thread: bool) -> Option<()> {
        let mut event: CUevent = ptr::with_exposed_provenance_mut(self.event.load(Ordering::Relaxed));
        if event.is_null() {
            // SAFETY: a place for the event; the thread has a context.
            let made = unsafe { next::call::cuEventCreate(&mut event, DISABLE_TIMING) };
            (made == CUDA_SUCCESS).then_some(())?;
            self.event.store(event.expose_provenance(), Ordering::Relaxed);
        }
        let recorded = if per_thread {
            // SAFETY: our own event, and a stream that has just been used.
            unsafe { next::call::cuEventRecord_ptsz(event, stream) }
        } else {
            // SAFETY: our own event, and a stream that has just been used.
            unsafe { next::call::cuEventRecord(event, stream) }
        };
        (recorded == CUDA_SUCCESS).then_some(())
    }

    fn has_happened(&self) -> bool {
        let event: CUevent = ptr::with_exposed_provenance_mut(self.event.load(Ordering::Relaxed));
        // SAFETY: our own event; one whose context is destroyed is forgotten before.
        event.is_null() || unsafe { next::call::cuEventQuery(event) } != CUDA_ERROR_NOT_READY
    }
}
