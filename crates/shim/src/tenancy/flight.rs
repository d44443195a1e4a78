//! How much work is in flight, in time.
//!
//! A best-effort tenant that shares the token must not have queued seconds of work when its turn ends. A count of launches
//! says nothing about time, so time is measured: now and then an event is recorded behind what was just handed over. Two
//! events with work waiting between them tell how long the GPU takes for a piece of work, on average and lately; what has
//! been handed over since the last event that has happened, times that, is the time in flight.
//!
//! It is an estimate, and pieces of work differ. But the GPU is only ever left with too much of it for a turn that ends a
//! little late, and what is recorded goes on correcting it.

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
/// Events that carry the time at which they happened.
const TIMED: u32 = 0;
/// The address of no context: nothing is measured any more.
const NO_CONTEXT: usize = usize::MAX;

pub struct Flight {
    marks: [Mark; MARKS],
    /// Counts of marks made and of marks that have happened.
    made: AtomicUsize,
    happened: AtomicUsize,
    /// When, and behind how much work, the last mark was made.
    last: AtomicU64,
    last_given: AtomicU64,
    /// Behind how much work the last mark was that has happened.
    done: AtomicU64,
    /// How long a piece of work takes, in nanoseconds; zero: not known yet.
    pace: AtomicU64,
    /// All marks are in one context; what other contexts do is not measured.
    context: AtomicUsize,
    /// Held while marks are made or looked at. Who does not get it leaves it to the other.
    busy: AtomicBool,
}

struct Mark {
    event: AtomicUsize,
    /// Behind how much work it was recorded.
    given: AtomicU64,
    /// Whether the mark before it had not happened then: the GPU was busy from one to the other.
    behind_work: AtomicBool,
}

impl Flight {
    pub const fn new() -> Flight {
        Flight {
            marks: [const { Mark::new() }; MARKS],
            made: AtomicUsize::new(0),
            happened: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            last_given: AtomicU64::new(0),
            done: AtomicU64::new(0),
            pace: AtomicU64::new(0),
            context: AtomicUsize::new(0),
            busy: AtomicBool::new(false),
        }
    }

    /// A stream was given work, `given` pieces of it in all.
    pub fn mark(&self, stream: CUstream, per_thread: bool, given: u64, now: Nanos) {
        let since = given.saturating_sub(self.last_given.load(Ordering::Relaxed));
        let soon = now.since(Nanos(self.last.load(Ordering::Relaxed))) < APART;
        if soon && self.time_of(since) < APART {
            return;
        }
        let _ = self.alone(|| {
            self.look();
            let (made, happened) = (self.made.load(Ordering::Relaxed), self.happened.load(Ordering::Relaxed));
            if made - happened == MARKS || !self.is_here(stream, per_thread) {
                return;
            }
            let mark = &self.marks[made % MARKS];
            if mark.record(stream, per_thread).is_none() {
                // Once is enough: an error that we cause again and again would be somebody's puzzle.
                return self.context.store(NO_CONTEXT, Ordering::Relaxed);
            }
            mark.given.store(given, Ordering::Relaxed);
            mark.behind_work.store(made != happened, Ordering::Relaxed);
            self.made.store(made + 1, Ordering::Relaxed);
            self.last.store(now.0, Ordering::Relaxed);
            self.last_given.store(given, Ordering::Relaxed);
        });
    }

    /// The time in flight when `given` pieces of work have been handed over, as far as can be told. The first `not` of them do not
    /// count, done or not.
    pub fn time(&self, given: u64, not: u64) -> Nanos {
        let time = self.alone(|| {
            self.look();
            let pending = self.made.load(Ordering::Relaxed) != self.happened.load(Ordering::Relaxed);
            let since = given.saturating_sub(self.done.load(Ordering::Relaxed).max(not));
            // With no mark that is still to happen nobody would ever learn that work was done.
            if pending { self.time_of(since) } else { Nanos::ZERO }
        });
        time.unwrap_or_default()
    }

    fn time_of(&self, pieces: u64) -> Nanos {
        Nanos(pieces.saturating_mul(self.pace.load(Ordering::Relaxed)))
    }

    /// Sees which marks have happened, and learns from them.
    fn look(&self) {
        let made = self.made.load(Ordering::Relaxed);
        let mut happened = self.happened.load(Ordering::Relaxed);
        while happened < made && self.marks[happened % MARKS].has_happened() {
            let (mark, before) =
                (&self.marks[happened % MARKS], &self.marks[happened.wrapping_sub(1) % MARKS]);
            let given = mark.given.load(Ordering::Relaxed);
            let pieces = given.saturating_sub(self.done.load(Ordering::Relaxed));
            if pieces > 0
                && mark.behind_work.load(Ordering::Relaxed)
                && let Some(time) = mark.since(before)
            {
                self.learn(Nanos(time.0 / pieces));
            }
            self.done.store(given, Ordering::Relaxed);
            happened += 1;
        }
        self.happened.store(happened, Ordering::Relaxed);
    }

    /// A new figure counts for a quarter: fast enough to follow a program from one phase to the next.
    fn learn(&self, pace: Nanos) {
        let old = self.pace.load(Ordering::Relaxed);
        let new = if old == 0 { pace.0 } else { (old / 4).saturating_mul(3).saturating_add(pace.0 / 4) };
        self.pace.store(new, Ordering::Relaxed);
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
        Mark { event: AtomicUsize::new(0), given: AtomicU64::new(0), behind_work: AtomicBool::new(false) }
    }

    fn record(&self, stream: CUstream, per_thread: bool) -> Option<()> {
        let mut event: CUevent = ptr::with_exposed_provenance_mut(self.event.load(Ordering::Relaxed));
        if event.is_null() {
            // SAFETY: a place for the event; the thread has a context.
            let made = unsafe { next::call::cuEventCreate(&mut event, TIMED) };
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

    /// The time from another mark to this one, both of which have happened.
    fn since(&self, other: &Mark) -> Option<Nanos> {
        let [from, to] = [other, self].map(|mark| mark.event.load(Ordering::Relaxed));
        if from == 0 || to == 0 {
            return None;
        }
        let [from, to]: [CUevent; 2] = [from, to].map(ptr::with_exposed_provenance_mut);
        let mut millis = 0.0;
        // SAFETY: our own events, and a place for the answer.
        let told = unsafe { next::call::cuEventElapsedTime(&mut millis, from, to) };
        let nanos = f64::from(millis) * 1e6;
        (told == CUDA_SUCCESS && nanos >= 0.0).then_some(Nanos(nanos as u64))
    }

    fn has_happened(&self) -> bool {
        let event: CUevent = ptr::with_exposed_provenance_mut(self.event.load(Ordering::Relaxed));
        // SAFETY: our own event; one whose context is destroyed is forgotten before.
        event.is_null() || unsafe { next::call::cuEventQuery(event) } != CUDA_ERROR_NOT_READY
    }
}
