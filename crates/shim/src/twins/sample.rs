//! How long kernels take, from launches that are timed now and then.
//!
//! The first launches of a kernel and one of many later ones have an event before and one behind. What the events say is
//! looked at when the next launch is timed; nobody ever waits for them. From the time of a launch and the number of rounds
//! in which its blocks fit on the GPU comes the time of a block, and from that the kernel's *certificate*: how long it takes
//! to stop once it is told to.

use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

use cuda_abi::{CUDA_ERROR_NOT_READY, CUDA_SUCCESS, CUevent, CUstream};
use model::Nanos;

use super::room;
pub use super::room::Shape;
use crate::frames::Frame;
use crate::guard::driver;
use crate::surroundings::variable;
use crate::{next, watch};

/// The first launches of a kernel are timed, for there may be no others; then one of so many.
const FIRST: u32 = 3;
const EVERY: u32 = 32;
/// Timed launches that are under way at once.
const SLOTS: usize = 32;
/// So many are looked at before a launch is timed, which the launch waits for.
const LOOKS: usize = 4;

/// What raising the stop word takes, as seen by who wants to run.
const FLAG: Nanos = Nanos::from_micros(20);

/// How long a kernel may take to stop, when a launch of so many rounds of blocks took so long. Rounds differ, and a block
/// that has just begun may be a long one.
fn certificate(launch: Nanos, rounds: u64) -> (Nanos, Nanos) {
    let block = Nanos(launch.0 / rounds.max(1));
    (block, Nanos(FLAG.0.saturating_add(block.0).saturating_add(block.0 / 2)))
}

/// Two events, and what lies between them.
struct Slot {
    state: AtomicU8,
    /// To which its events belong; zero while it has none.
    context: AtomicUsize,
    events: [AtomicUsize; 2],
    frame: AtomicPtr<Frame>,
    /// In how many rounds the blocks of the launch fit on the GPU.
    rounds: AtomicU64,
    /// What `ERA` was when it began.
    era: AtomicU32,
}

const FREE: u8 = 0;
/// Some thread's, for a moment.
const TAKEN: u8 = 1;
const UNDER_WAY: u8 = 2;

static ALL: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];
/// Changes when something disturbs what is under way.
static ERA: AtomicU32 = AtomicU32::new(0);
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Zero: nobody has asked yet.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// Whether launches are timed: what the environment says (`EBB_SAMPLE=1`, `0`), else what the caller thinks.
#[inline]
pub fn is_on(otherwise: bool) -> bool {
    match ASKED.load(Ordering::Relaxed) {
        0 => ask(otherwise),
        1 => otherwise,
        asked => asked == 2,
    }
}

#[cold]
fn ask(otherwise: bool) -> bool {
    let asked = match variable(c"EBB_SAMPLE").map(|text| text.to_bytes()) {
        Some(b"1") => 2,
        Some(_) => 3,
        None => 1,
    };
    ASKED.store(asked, Ordering::Relaxed);
    if asked == 1 { otherwise } else { asked == 2 }
}

/// This process was told to stop, or goes on: what is under way says nothing about how long it takes.
pub fn stopped(stopped: bool) {
    if STOPPED.swap(stopped, Ordering::Relaxed) != stopped {
        // SYNC(sample-era): who finds the era unchanged was not disturbed.
        ERA.fetch_add(1, Ordering::Release);
    }
}

/// A launch that is being timed.
pub struct Timing {
    slot: &'static Slot,
    stream: CUstream,
    per_thread: bool,
}

/// A kernel is about to be launched in a stream that is not being captured, and perhaps timed.
#[inline]
pub fn before(frame: &'static Frame, shape: Shape, stream: CUstream, per_thread: bool) -> Option<Timing> {
    let launches = frame.place.count_launch();
    if launches < FIRST || launches.is_multiple_of(EVERY) {
        begin(frame, shape, stream, per_thread)
    } else {
        None
    }
}

#[cold]
fn begin(frame: &'static Frame, shape: Shape, stream: CUstream, per_thread: bool) -> Option<Timing> {
    let watch = watch::of_this_process()?;
    // A question to the driver, or an event in the default stream, may spoil the capture of another stream.
    if STOPPED.load(Ordering::Relaxed) || watch.frames.captures.load(Ordering::Relaxed) != 0 {
        return None;
    }
    driver::relaxed(|| {
        look(LOOKS);
        let slot = Slot::take(driver::current_context())?;
        slot.frame.store(ptr::from_ref(frame).cast_mut(), Ordering::Relaxed);
        slot.rounds.store(room::rounds(shape, frame.place.attributes.needs()), Ordering::Relaxed);
        slot.era.store(ERA.load(Ordering::Acquire), Ordering::Relaxed);
        if slot.record(0, stream, per_thread).is_none() {
            slot.leave(FREE);
            return None;
        }
        Some(Timing { slot, stream, per_thread })
    })
}

impl Timing {
    /// The launch has been handed over, or was refused.
    pub fn after(self, launched: bool) {
        let recorded = launched && self.slot.record(1, self.stream, self.per_thread).is_some();
        self.slot.leave(if recorded { UNDER_WAY } else { FREE });
    }
}

/// Learns from what has happened meanwhile, of so many at most.
fn look(at_most: usize) {
    for slot in ALL.iter().filter(|slot| slot.enter(UNDER_WAY)).take(at_most) {
        // The thread may be in another context, or in none.
        let within = driver::within(slot.context.load(Ordering::Relaxed), || Some(slot.look()));
        slot.leave(if within == Some(Seen::NotYet) { UNDER_WAY } else { FREE });
    }
}

/// Learns from all that has happened meanwhile. For a thread of ours, which has the time.
pub fn collect() {
    driver::relaxed(|| look(SLOTS));
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    NotYet,
    /// It has happened, or nothing can be learned from it.
    Done,
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            state: AtomicU8::new(FREE),
            context: AtomicUsize::new(0),
            events: [const { AtomicUsize::new(0) }; 2],
            frame: AtomicPtr::new(ptr::null_mut()),
            rounds: AtomicU64::new(1),
            era: AtomicU32::new(0),
        }
    }

    /// One that is free, with events in a context.
    fn take(context: usize) -> Option<&'static Slot> {
        let mut slots =
            ALL.iter().filter(|slot| [0, context].contains(&slot.context.load(Ordering::Relaxed)));
        let slot = slots.find(|slot| slot.enter(FREE))?;
        let owner = slot.context.load(Ordering::Relaxed);
        if context == 0 || owner != context && (owner != 0 || slot.furnish(context).is_none()) {
            slot.leave(FREE);
            return None;
        }
        Some(slot)
    }

    fn furnish(&self, context: usize) -> Option<()> {
        /// Events that carry the time at which they happened.
        const TIMED: u32 = 0;
        for place in &self.events {
            let mut event: CUevent = ptr::null_mut();
            // SAFETY: a place for the event; the thread has a context.
            let made = unsafe { next::call::cuEventCreate(&mut event, TIMED) };
            driver::ok(made)?;
            place.store(event.expose_provenance(), Ordering::Relaxed);
        }
        self.context.store(context, Ordering::Relaxed);
        Some(())
    }

    fn enter(&self, state: u8) -> bool {
        // SYNC(sample): who takes a slot sees what was left in it.
        self.state.compare_exchange(state, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn leave(&self, state: u8) {
        // SYNC(sample): pairs with the exchange in `enter`.
        self.state.store(state, Ordering::Release);
    }

    fn event(&self, which: usize) -> CUevent {
        ptr::with_exposed_provenance_mut(self.events[which].load(Ordering::Relaxed))
    }

    fn record(&self, which: usize, stream: CUstream, per_thread: bool) -> Option<()> {
        let event = self.event(which);
        driver::ok(if per_thread {
            // SAFETY: our own event, and a stream that is just being used.
            unsafe { next::call::cuEventRecord_ptsz(event, stream) }
        } else {
            // SAFETY: our own event, and a stream that is just being used.
            unsafe { next::call::cuEventRecord(event, stream) }
        })
    }

    fn look(&self) -> Seen {
        // SAFETY: our own event; one whose context is destroyed is forgotten before.
        if unsafe { next::call::cuEventQuery(self.event(1)) } == CUDA_ERROR_NOT_READY {
            return Seen::NotYet;
        }
        let mut millis = 0.0;
        // SAFETY: our own events, and a place for the answer.
        let told = unsafe { next::call::cuEventElapsedTime(&mut millis, self.event(0), self.event(1)) };
        // SYNC(sample-era): pairs with the addition in `stopped`.
        let disturbed = self.era.load(Ordering::Relaxed) != ERA.load(Ordering::Acquire);
        // SAFETY: null, or a frame in the arena, which stays.
        let frame = unsafe { self.frame.load(Ordering::Relaxed).as_ref() };
        if let Some(frame) = frame.filter(|_| told == CUDA_SUCCESS && millis >= 0.0 && !disturbed) {
            learn(frame, Nanos((f64::from(millis) * 1e6) as u64), self.rounds.load(Ordering::Relaxed));
        }
        Seen::Done
    }

    /// Its events are gone, or about to go, with their context.
    fn forget(&self) {
        const PATIENCE: usize = 10_000;
        for _ in 0..PATIENCE {
            if self.enter(FREE) || self.enter(UNDER_WAY) {
                self.context.store(0, Ordering::Relaxed);
                return self.leave(FREE);
            }
            std::thread::yield_now();
        }
    }
}

fn learn(frame: &'static Frame, launch: Nanos, rounds: u64) {
    let Some(watch) = watch::of_this_process() else { return };
    if let Some(kernel) = frame.learned(watch).and_then(|learned| learned.kernel) {
        let (block, certificate) = certificate(launch, rounds);
        kernel.timed(launch.0, block.0, certificate.0);
    }
}

/// A context is about to be destroyed, and its events with it. Without a name, any may be.
pub fn context_ends(context: Option<usize>) {
    let meant = |slot: &&Slot| context.is_none_or(|context| slot.context.load(Ordering::Relaxed) == context);
    ALL.iter().filter(meant).for_each(Slot::forget);
}

/// In the child of a fork, which has no context.
pub fn in_child() {
    for slot in &ALL {
        slot.context.store(0, Ordering::Relaxed);
        slot.state.store(FREE, Ordering::Relaxed);
    }
    STOPPED.store(false, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_the_flag_and_the_running_block_with_room_to_spare() {
        let launch = Nanos::from_micros(1000);
        assert_eq!(certificate(launch, 10), (Nanos::from_micros(100), Nanos::from_micros(170)));
        assert_eq!(certificate(launch, 1).1, Nanos::from_micros(1520), "one round: the launch is its blocks");
        assert_eq!(certificate(launch, 0).0, launch);
    }
}
