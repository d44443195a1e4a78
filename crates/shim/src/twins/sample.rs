//! How long kernels take, from launches that are timed now and then.
//!
//! The first launches of a kernel and one of many later ones have an event before and one behind. What the events say is
//! looked at when the next launch is timed, and by the smith; nobody ever waits for them. From the time of a launch and the
//! number of rounds in which its blocks fit on the GPU comes the time of a block, and from that the kernel's *certificate*:
//! how long it takes to stop once it is told to. What was seen goes into the ledger at once, and by the smith (`book`) into
//! the profile that later runs begin with.

use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

use cuda_abi::{CUDA_ERROR_NOT_READY, CUDA_SUCCESS, CUdevice, CUevent, CUstream};
use model::{Dim3, Geometry, Nanos, Rung};
use telemetry::{Event, NO_KERNEL, What};

use super::room::{self, Shape};
use super::sighting::{self, Sighting};
use super::smith;
use crate::frames::Frame;
use crate::guard::driver;
use crate::surroundings::variable;
use crate::tenancy::key::Key;
use crate::{next, tenancy, watch};

/// The first launches of a kernel are timed, for there may be no others; then one of so many, more or less.
const FIRST: u32 = 3;
const EVERY: u32 = 32;
/// A kernel that has been launched so often is known, and timed to see whether it changes: so many times less often. On an H200, one of
/// 32 costs a training bound by its launches a hundredth of its speed.
const KNOWN: u32 = 2_048;
const LESS: u32 = 4;
/// Timed launches that are under way at once.
const SLOTS: usize = 32;
/// So many are looked at before a launch is timed, which the launch waits for.
const LOOKS: usize = 4;

/// If the host was longer than this about a launch, because it had to load the kernel or was interrupted, a GPU that had nothing else to do has
/// waited for it, and that is in the time of the launch: nothing is learned from one that took less than so many times as long.
const HURRIED: Nanos = Nanos::from_micros(50);
const BEYOND_HOST: u64 = 4;

/// What raising the stop word takes, as seen by who wants to run.
const FLAG: Nanos = Nanos::from_micros(20);

/// How long a kernel may take to stop whose blocks take so long. Rounds of blocks differ, and one that has just begun may be a long one.
fn certificate(block: Nanos) -> Nanos {
    Nanos(FLAG.0.saturating_add(block.0).saturating_add(block.0 / 2))
}

/// The longest block with which a kernel stops within so long.
pub fn block_within(certificate: Nanos) -> Nanos {
    Nanos(certificate.since(FLAG).0 / 3 * 2)
}

/// Whether what was timed is the host more than the GPU.
fn is_of_the_host(launch: Nanos, host: Nanos) -> bool {
    host > HURRIED && launch.0 < host.0.saturating_mul(BEYOND_HOST)
}

/// How many launches later the next one is timed: sometimes a few more, sometimes fewer. A program that launches a kernel in
/// the same shapes over and over would otherwise have the same of them timed every time, and others never.
fn stride(launches: u32) -> u32 {
    if launches < FIRST - 1 {
        return 1;
    }
    let scattered = (launches ^ launches >> 5).wrapping_mul(0x9e37_79b9);
    let scattered = (scattered ^ scattered >> 15).wrapping_mul(0x85eb_ca6b);
    let every = if launches < KNOWN { EVERY } else { EVERY * LESS };
    every / 2 + (scattered >> 16) % (every + 1)
}

/// A launch that may be timed: what it is, and in which stream.
#[derive(Clone, Copy)]
pub struct Candidate {
    pub frame: &'static Frame,
    pub geometry: Geometry,
    /// By which it is to be stopped.
    pub rung: Rung,
    pub stream: CUstream,
    pub per_thread: bool,
}

/// Two events, and what lies between them.
struct Slot {
    state: AtomicU8,
    /// To which its events belong; zero while it has none.
    context: AtomicUsize,
    events: [AtomicUsize; 2],
    frame: AtomicPtr<Frame>,
    device: AtomicI32,
    /// Blocks, threads, and bytes of shared memory.
    geometry: [AtomicU32; 7],
    rung: AtomicU8,
    /// For how many launches of the kernel it stands: those since the one that was timed before.
    stands_for: AtomicU32,
    /// In how many rounds the blocks of the launch fit on the GPU.
    rounds: AtomicU64,
    /// What `ERA` was when it began.
    era: AtomicU32,
    /// When it was handed over, for how long the host was about it, and to which stream.
    began: AtomicU64,
    host: AtomicU64,
    stream: AtomicU32,
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
pub fn before(candidate: Candidate) -> Option<Timing> {
    let launches = candidate.frame.place.count_launch()?;
    begin(candidate, launches)
}

#[cold]
fn begin(candidate: Candidate, launches: u32) -> Option<Timing> {
    let watch = watch::of_this_process()?;
    let Candidate { frame, stream, per_thread, .. } = candidate;
    frame.place.time_next(launches.wrapping_add(stride(launches)));
    smith::start();
    // A question to the driver, or an event in the default stream, may spoil the capture of another stream.
    if STOPPED.load(Ordering::Relaxed) || watch.frames.captures.load(Ordering::Relaxed) != 0 {
        return None;
    }
    driver::relaxed(|| {
        look(LOOKS);
        let slot = Slot::take(driver::current_context())?;
        slot.describe(&candidate, driver::current_device().unwrap_or(0));
        if slot.record(0, stream, per_thread).is_none() {
            slot.leave(FREE);
            return None;
        }
        slot.stands_for.store(frame.place.stand_for_rest(), Ordering::Relaxed);
        Some(Timing { slot, stream, per_thread })
    })
}

impl Timing {
    /// The launch has been handed over, or was refused.
    pub fn after(self, launched: bool) {
        let recorded = launched && self.slot.record(1, self.stream, self.per_thread).is_some();
        let began = Nanos(self.slot.began.load(Ordering::Relaxed));
        self.slot.host.store(board::now().since(began).0, Ordering::Relaxed);
        if !recorded {
            self.slot.stand_back();
        }
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
            device: AtomicI32::new(0),
            geometry: [const { AtomicU32::new(0) }; 7],
            rung: AtomicU8::new(0),
            stands_for: AtomicU32::new(0),
            rounds: AtomicU64::new(1),
            era: AtomicU32::new(0),
            began: AtomicU64::new(0),
            host: AtomicU64::new(0),
            stream: AtomicU32::new(0),
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

    /// Says which launch it is for. The slot is the caller's.
    fn describe(&self, candidate: &Candidate, device: CUdevice) {
        let Geometry { grid, block, shared_bytes } = candidate.geometry;
        let sides = [grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes];
        self.geometry.iter().zip(sides).for_each(|(place, side)| place.store(side, Ordering::Relaxed));
        let needs = candidate.frame.place.attributes.needs();
        self.rounds.store(room::rounds(Shape::of(candidate.geometry), needs), Ordering::Relaxed);
        self.frame.store(ptr::from_ref(candidate.frame).cast_mut(), Ordering::Relaxed);
        self.device.store(device, Ordering::Relaxed);
        self.rung.store(candidate.rung.number(), Ordering::Relaxed);
        self.era.store(ERA.load(Ordering::Acquire), Ordering::Relaxed);
        self.began.store(board::now().0, Ordering::Relaxed);
        let stream = Key::new(candidate.stream.addr(), candidate.per_thread).short();
        self.stream.store(stream.into(), Ordering::Relaxed);
    }

    /// What was seen of the kernel it is for, after so long a launch. The slot is the caller's.
    fn sighting(&self, launch: Nanos) -> Option<Sighting> {
        // SAFETY: null, or a frame in the arena, which stays.
        let frame = unsafe { self.frame.load(Ordering::Relaxed).as_ref() }?;
        let side = |at: usize| self.geometry[at].load(Ordering::Relaxed);
        let [grid, threads] = [0, 3].map(|at| Dim3::new(side(at), side(at + 1), side(at + 2)));
        let block = Nanos(launch.0 / self.rounds.load(Ordering::Relaxed).max(1));
        Some(Sighting {
            frame,
            device: self.device.load(Ordering::Relaxed),
            geometry: Geometry { grid, block: threads, shared_bytes: side(6) },
            rung: Rung::from_number(self.rung.load(Ordering::Relaxed)).unwrap_or_default(),
            stands_for: self.stands_for.load(Ordering::Relaxed),
            launch,
            block,
            certificate: certificate(frame.place.lately.see(block)),
        })
    }

    /// Nothing is learned: the launches it stood for are the next one's.
    fn stand_back(&self) {
        // SAFETY: null, or a frame in the arena, which stays.
        if let Some(frame) = unsafe { self.frame.load(Ordering::Relaxed).as_ref() } {
            frame.place.stand_back(self.stands_for.load(Ordering::Relaxed));
        }
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
        let launch = Nanos((f64::from(millis) * 1e6) as u64);
        let host = Nanos(self.host.load(Ordering::Relaxed));
        let sound = told == CUDA_SUCCESS && millis >= 0.0 && !disturbed && !is_of_the_host(launch, host);
        match sound.then(|| self.sighting(launch)).flatten() {
            Some(sighting) => {
                self.tell(&sighting);
                learn(sighting);
            }
            None => self.stand_back(),
        }
        Seen::Done
    }

    /// Writes down how long the launch took. When it began, the driver does not tell on our clock: not before it was handed over.
    fn tell(&self, sighting: &Sighting) {
        let Some(watch) = watch::of_this_process() else { return };
        let (Some(log), Some(learned)) = (watch.events, sighting.frame.learned(watch)) else { return };
        log.write(&Event {
            time: Nanos(self.began.load(Ordering::Relaxed)),
            post: tenancy::number_of(sighting.device),
            what: What::Timed {
                kernel: learned.kernel.map_or(NO_KERNEL, |kernel| kernel.index()),
                stream: self.stream.load(Ordering::Relaxed) as u16,
                took: sighting.launch,
            },
        });
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

fn learn(sighting: Sighting) {
    let Some(watch) = watch::of_this_process() else { return };
    if let Some(kernel) = sighting.frame.learned(watch).and_then(|learned| learned.kernel) {
        kernel.timed(sighting.launch.0, block_within(sighting.certificate).0, sighting.certificate.0);
    }
    if sighting::leave(sighting) {
        smith::ring();
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
    sighting::in_child();
    STOPPED.store(false, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_the_flag_and_the_running_block_with_room_to_spare() {
        let micros = Nanos::from_micros;
        assert_eq!(certificate(micros(100)), micros(170));
        assert_eq!(certificate(Nanos::MAX), Nanos::MAX);
        assert_eq!((block_within(micros(170)), block_within(micros(5))), (micros(100), Nanos::ZERO));
    }

    #[test]
    fn what_the_gpu_waited_for_is_not_the_kernels_time() {
        let us = Nanos::from_micros;
        assert!(!is_of_the_host(us(5), us(12)), "as fast as hosts are");
        assert!(is_of_the_host(us(3_000), us(2_990)), "the kernel had to be loaded");
        assert!(!is_of_the_host(us(800), us(200)), "most of it is the kernel's");
    }

    #[test]
    fn the_first_launches_are_timed_then_one_of_about_32_and_of_what_is_known_one_of_128_in_no_step() {
        let mut timed = vec![0];
        while timed.len() < 1003 {
            let last = timed[timed.len() - 1];
            timed.push(last + stride(last));
        }
        assert_eq!(timed[..3], [0, 1, 2]);
        let early = timed.iter().take_while(|&&launch| launch < KNOWN).count() as u32;
        assert!((56..72).contains(&early), "{early}");
        let later = (timed[1002] - KNOWN) / (1003 - early);
        assert!((124..132).contains(&later), "{later}");
        for period in [2, 7, 32, 64, 100] {
            let mut phases: Vec<_> = timed.iter().map(|launch| launch % period).collect();
            phases.sort_unstable();
            phases.dedup();
            assert_eq!(phases.len() as u32, period, "every shape of a loop of {period} has its turn");
        }
    }
}
