//! What a kernel's frame knows of its twin.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

use guard::{Reason, Verdict};
use model::Nanos;
use rustix::thread::futex;
use rustix::time::Timespec;

use super::Twin;
use super::attributes::Attributes;
use super::lately::Lately;

/// Nobody has asked yet; the smith has been asked; it has answered.
const UNASKED: u32 = 0;
const ASKED: u32 = 1;
const ANSWERED: u32 = 2;

/// How many kernels of this process can be stopped between blocks, and how many cannot. What is not known yet is neither.
pub struct Judged {
    guarded: AtomicU32,
    refused: AtomicU32,
}

pub static JUDGED: Judged = Judged::new();

impl Judged {
    const fn new() -> Judged {
        Judged { guarded: AtomicU32::new(0), refused: AtomicU32::new(0) }
    }

    fn count(&self, verdict: Option<Verdict>) -> Option<&AtomicU32> {
        match verdict? {
            Verdict::Guard(_) => Some(&self.guarded),
            Verdict::Refuse(_) => Some(&self.refused),
        }
    }

    fn change(&self, before: Option<Verdict>, after: Option<Verdict>) {
        // In this order: a kernel that is judged anew is never in neither.
        if let Some(count) = self.count(after) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(count) = self.count(before) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether there are kernels, and none of them can be stopped.
    pub fn all_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed) > 0 && self.guarded.load(Ordering::Relaxed) == 0
    }
}

pub struct Place {
    state: AtomicU32,
    pub attributes: Attributes,
    /// How long its blocks were.
    pub lately: Lately,
    /// About how often it was launched, while launches are timed; for how many of those one that was timed stands; and which
    /// is the next to be timed.
    launches: AtomicU32,
    stood_for: AtomicU32,
    next_timed: AtomicU32,
    /// How often it was stopped since somebody last asked, and how often that took longer than promised.
    stops: AtomicU32,
    broken: AtomicU32,
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
            lately: Lately::new(),
            launches: AtomicU32::new(0),
            stood_for: AtomicU32::new(0),
            next_timed: AtomicU32::new(0),
            stops: AtomicU32::new(0),
            broken: AtomicU32::new(0),
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
        self.note(twin.verdict.load(Ordering::Relaxed));
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
        self.note(verdict.number());
        match (verdict, self.twin()) {
            (Verdict::Guard(_), Some(twin)) => twin.verdict.store(verdict.number(), Ordering::Relaxed),
            _ => self.twin.store(ptr::null_mut(), Ordering::Release),
        }
    }

    fn note(&self, verdict: u8) {
        let before = self.verdict.swap(verdict, Ordering::Relaxed);
        JUDGED.change(Verdict::from_number(before), Verdict::from_number(verdict));
    }

    #[inline]
    pub fn is_answered(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ANSWERED
    }

    /// Counts a launch. If it is to be timed: how many there were before. Threads that launch at the same time may count once.
    #[inline]
    pub fn count_launch(&self) -> Option<u32> {
        let launches = self.launches.load(Ordering::Relaxed);
        self.launches.store(launches.wrapping_add(1), Ordering::Relaxed);
        // Not only when it is the very one, which may have been counted by two.
        let late = launches.wrapping_sub(self.next_timed.load(Ordering::Relaxed)).cast_signed();
        (late >= 0).then_some(launches)
    }

    /// The next launch to be timed is the one that has so many before it.
    pub fn time_next(&self, launches: u32) {
        self.next_timed.store(launches, Ordering::Relaxed);
    }

    /// How many launches nobody stands for yet; whoever asks does from now on.
    pub fn stand_for_rest(&self) -> u32 {
        let launches = self.launches.load(Ordering::Relaxed);
        let rest = launches.wrapping_sub(self.stood_for.swap(launches, Ordering::Relaxed));
        // Two who ask at once may find themselves ahead of the count.
        if rest.cast_signed() < 0 { 0 } else { rest }
    }

    /// So many launches have nobody who stands for them after all.
    pub fn stand_back(&self, launches: u32) {
        self.stood_for.fetch_sub(launches, Ordering::Relaxed);
    }

    /// A stop was held against its certificate.
    pub fn count_stop(&self, broken: bool) {
        self.stops.fetch_add(1, Ordering::Relaxed);
        self.broken.fetch_add(u32::from(broken), Ordering::Relaxed);
    }

    /// How many stops there were since the last time, and how many of them took longer than promised.
    pub fn take_stops(&self) -> (u64, u64) {
        let take = |count: &AtomicU32| u64::from(count.swap(0, Ordering::Relaxed));
        (take(&self.stops), take(&self.broken))
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

#[cfg(test)]
mod tests {
    use super::*;
    use guard::Rule;

    #[test]
    fn all_are_refused_only_where_none_is_guarded() {
        let judged = Judged::new();
        let (guard, refuse) = (Some(Verdict::Guard(Rule::Plain)), Some(Verdict::Refuse(Reason::Cooperative)));
        assert!(!judged.all_refused(), "nothing is known yet");
        judged.change(None, refuse);
        assert!(judged.all_refused());
        judged.change(None, guard);
        assert!(!judged.all_refused());
        judged.change(guard, Some(Verdict::Guard(Rule::Ordered)));
        assert!(!judged.all_refused());
        judged.change(Some(Verdict::Guard(Rule::Ordered)), refuse);
        assert!(judged.all_refused(), "one that was guarded was demoted");
    }

    #[test]
    fn every_launch_has_one_that_stands_for_it() {
        let place = Place::new();
        let timed: Vec<u32> = (0..100)
            .filter_map(|_| {
                let launches = place.count_launch()?;
                place.time_next(launches + 30);
                Some((launches, place.stand_for_rest()))
            })
            .inspect(|(launches, _)| assert_eq!(launches % 30, 0))
            .map(|(_, stands_for)| stands_for)
            .collect();
        assert_eq!(timed, [1, 30, 30, 30]);
        assert_eq!((place.stand_for_rest(), place.stand_for_rest()), (9, 0));
        place.stand_back(30);
        assert_eq!(place.stand_for_rest(), 30, "what was not learned from one is the next one's");
    }
}
