//! What a kernel's frame knows of its twin.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

use guard::{Reason, Verdict};
use model::Nanos;
use rustix::thread::futex;
use rustix::time::Timespec;

use super::Twin;
use super::attributes::Attributes;

/// Nobody has asked yet; the smith has been asked; it has answered.
const UNASKED: u32 = 0;
const ASKED: u32 = 1;
const ANSWERED: u32 = 2;

pub struct Place {
    state: AtomicU32,
    pub attributes: Attributes,
    /// About how often it was launched, while launches are timed.
    launches: AtomicU32,
    /// The number of the verdict, once there is an answer; zero before.
    verdict: AtomicU8,
    /// Null: none.
    twin: AtomicPtr<Twin>,
}

impl Place {
    pub const fn new() -> Place {
        Place {
            state: AtomicU32::new(UNASKED),
            attributes: Attributes::new(),
            launches: AtomicU32::new(0),
            verdict: AtomicU8::new(0),
            twin: AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[inline]
    pub fn twin(&self) -> Option<&'static Twin> {
        // SYNC(twin): whoever sees the twin sees all of it.
        let twin = self.twin.load(Ordering::Acquire);
        // SAFETY: null, or a twin in the arena, which stays.
        unsafe { twin.as_ref() }
    }

    /// Whether nobody has asked for a twin; who is told so is the one to ask.
    #[inline]
    pub fn ask(&self) -> bool {
        self.state.load(Ordering::Relaxed) == UNASKED
            && self.state.compare_exchange(UNASKED, ASKED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The question was not heard, and may be put again.
    pub fn unask(&self) {
        let _ = self.state.compare_exchange(ASKED, UNASKED, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub fn put(&self, twin: &'static Twin) {
        self.verdict.store(twin.verdict.load(Ordering::Relaxed), Ordering::Relaxed);
        // SYNC(twin): pairs with the load in `twin`.
        self.twin.store(ptr::from_ref(twin).cast_mut(), Ordering::Release);
        self.answer();
    }

    /// There is no twin.
    pub fn refuse(&self, reason: Reason) {
        self.judge(Verdict::Refuse(reason));
        self.answer();
    }

    /// What is thought of it from now on. Launches of a twin that are under way go on.
    pub fn judge(&self, verdict: Verdict) {
        self.verdict.store(verdict.number(), Ordering::Relaxed);
        match (verdict, self.twin()) {
            (Verdict::Guard(_), Some(twin)) => twin.verdict.store(verdict.number(), Ordering::Relaxed),
            _ => self.twin.store(ptr::null_mut(), Ordering::Release),
        }
    }

    #[inline]
    pub fn is_answered(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ANSWERED
    }

    /// How many launches there were before this one. Threads that launch it at the same time may count once.
    #[inline]
    pub fn count_launch(&self) -> u32 {
        let launches = self.launches.load(Ordering::Relaxed);
        self.launches.store(launches.wrapping_add(1), Ordering::Relaxed);
        launches
    }

    /// What the smith, or somebody after him, has found. `None` before.
    pub fn verdict(&self) -> Option<Verdict> {
        Verdict::from_number(self.verdict.load(Ordering::Relaxed))
    }

    fn answer(&self) {
        // SYNC(twin-answer): who has waited for the answer sees it.
        self.state.store(ANSWERED, Ordering::Release);
        let _ = futex::wake(&self.state, futex::Flags::PRIVATE, i32::MAX.unsigned_abs());
    }

    /// Waits for the answer to a question that was asked, no longer than this, and only while somebody is there to answer.
    pub fn wait(&self, at_most: Nanos, is_there: fn() -> bool) {
        const STEP: Nanos = Nanos::from_millis(10);
        let step = Timespec { tv_sec: 0, tv_nsec: STEP.0.cast_signed() };
        for _ in 0..at_most.0 / STEP.0 {
            // SYNC(twin-answer): pairs with the store in `answer`.
            if self.state.load(Ordering::Acquire) != ASKED || !is_there() {
                return;
            }
            let _ = futex::wait(&self.state, futex::Flags::PRIVATE, ASKED, Some(&step));
        }
    }
}
