//! The words by which host and GPU speak about stopping, and our own streams.
//!
//! In *device memory*, where every block can look cheaply: the stop word, a word that is always zero (for launches that no
//! stop may cut), a stop word for the siding alone, and the *away* words, one for each lane and one for each of our streams that has launches.
//! Latency tenants open the allocation of the stop word from other processes, and can write anything there at any time. So it holds the
//! stop word and nothing else: who can write it can have blocks turned away, and nothing that decides which blocks have run. All other words
//! are in an allocation that nobody else opens.
//!
//! In *pinned memory*, where the host can look cheaply: how many gates each lane has arrived at and passed, how far our own
//! streams are, and a copy of the away words for when somebody asks for it. These are pages of our own, which the driver
//! only knows for a while: who looks at them when a context has ended finds numbers, and not nothing.
//!
//! The *control stream* has the highest priority and carries nothing that takes time. The *helper stream* runs what is left
//! of launches that were cut. The *rescue stream* runs what blocks on the GPU wait for, be they of the program's streams or of the
//! helper's (`watchdog`): it has to be there beforehand, because a stream cannot be had while the GPU is not at rest. The *siding* runs what was turned away
//! beside a latency tenant's work, on some of the SMs, and is there only once it is wanted (`siding`). None of them waits for the
//! program's default stream.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use cuda_abi::{CUDA_ERROR_NOT_READY, CUDA_SUCCESS, CUdeviceptr, CUipcMemHandle, CUstream};
use model::Nanos;

use super::driver::{self, Operations, ok};
use crate::arena::Pages;
use crate::next;

/// Streams of one context that can have guarded launches.
pub const LANES: usize = 64;

/// The size in which the driver takes device memory for itself. What is smaller it cuts from one piece of that size, and a handle for other
/// processes opens the whole piece. So both allocations have this size: nothing else lies in what others open, and our own words do not lie
/// in what the program lets others open.
const PIECE: usize = 2 << 20;
/// Where the words lie that are not the stop word. Those that blocks look at are a cache line apart.
const ZERO: u64 = 0;
const SIDE: u64 = 128;
const AWAY: u64 = 256;
const AWAY_APART: u64 = 128;
/// The away words behind those of the lanes.
const HELPER: usize = LANES;
const RESCUE: usize = LANES + 1;
const SIDING: usize = LANES + 2;
const AWAY_BYTES: usize = (LANES + 3) * AWAY_APART as usize;

/// Where the words lie in pinned memory, in words: two for each lane, one for each of our streams, what the helper stream tells of
/// its away word, and the copy of all of them.
const COUNTS: usize = 0;
const OURS: usize = 2 * LANES;
const TOLD: usize = OURS + STREAMS;
const COPY: usize = TOLD + 1;
const PINNED_BYTES: usize = ((COPY + AWAY_BYTES / 4) * 4).next_multiple_of(4096);

/// How long the control stream may take for what should take microseconds.
const PATIENCE: Nanos = Nanos::from_millis(1_000);

pub struct Control {
    /// The allocation that others open: the stop word, at its beginning.
    open: AtomicU64,
    /// That of all other words.
    closed: AtomicU64,
    pinned: AtomicPtr<AtomicU32>,
    registered: AtomicBool,
    /// The pinned memory as the GPU sees it.
    pinned_device: AtomicU64,
    streams: [AtomicUsize; STREAMS],
    /// Numbers of the last commands to our streams.
    commands: [AtomicU32; STREAMS],
}

/// Our own streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    Control,
    Helper,
    Rescue,
    Siding,
}
const STREAMS: usize = 4;

/// Those of our streams that have launches, and so an away word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    Helper,
    Rescue,
    Siding,
}

impl Runner {
    pub fn own(self) -> Own {
        match self {
            Runner::Helper => Own::Helper,
            Runner::Rescue => Own::Rescue,
            Runner::Siding => Own::Siding,
        }
    }

    fn away(self) -> usize {
        match self {
            Runner::Helper => HELPER,
            Runner::Rescue => RESCUE,
            Runner::Siding => SIDING,
        }
    }
}

/// The away words as they were at one moment.
pub struct Aways<'a>(&'a Control);

impl Aways<'_> {
    /// The serial of the first launch that was cut in a lane since it was last whole; zero: none.
    pub fn lane(&self, lane: usize) -> u32 {
        self.0.word(COPY + lane * (AWAY_APART as usize / 4)).load(Ordering::Acquire)
    }

    /// The same of the helper stream, since its last job began.
    pub fn helper(&self) -> u32 {
        self.lane(HELPER)
    }

    /// And of the siding.
    pub fn siding(&self) -> u32 {
        self.lane(SIDING)
    }
}

impl Control {
    pub const fn new() -> Control {
        Control {
            open: AtomicU64::new(0),
            closed: AtomicU64::new(0),
            pinned: AtomicPtr::new(ptr::null_mut()),
            registered: AtomicBool::new(false),
            pinned_device: AtomicU64::new(0),
            streams: [const { AtomicUsize::new(0) }; STREAMS],
            commands: [const { AtomicU32::new(0) }; STREAMS],
        }
    }

    /// Makes everything, in the calling thread's context. `None`: it cannot be had, and nothing is left of it.
    pub fn make(&self) -> Option<()> {
        let made = self.make_memory().and_then(|()| self.make_streams()).and_then(|()| self.clear());
        if made.is_none() {
            self.unmake();
        }
        made
    }

    fn make_memory(&self) -> Option<()> {
        for allocation in [&self.open, &self.closed] {
            let mut device: CUdeviceptr = 0;
            // SAFETY: a place for the answer.
            ok(unsafe { next::call::cuMemAlloc_v2(&mut device, PIECE) })?;
            allocation.store(device, Ordering::Relaxed);
        }
        let (pinned, mut seen) = (self.pages()?, 0);
        let flags = cuda_abi::CU_MEMHOSTREGISTER_DEVICEMAP;
        // SAFETY: whole pages of ours, which stay.
        ok(unsafe { next::call::cuMemHostRegister_v2(pinned, PINNED_BYTES, flags) })?;
        self.registered.store(true, Ordering::Relaxed);
        // SAFETY: memory that was just registered so, and a place for the answer.
        ok(unsafe { next::call::cuMemHostGetDevicePointer_v2(&mut seen, pinned, 0) })?;
        self.pinned_device.store(seen, Ordering::Relaxed);
        (0..PINNED_BYTES / 4).for_each(|index| self.word(index).store(0, Ordering::Relaxed));
        Some(())
    }

    /// Pages of our own, made once.
    fn pages(&self) -> Option<*mut c_void> {
        let known = self.pinned.load(Ordering::Relaxed);
        if !known.is_null() {
            return Some(known.cast());
        }
        let pages = ManuallyDrop::new(Pages::new(PINNED_BYTES)?);
        self.pinned.store(pages.start().cast(), Ordering::Relaxed);
        Some(pages.start())
    }

    fn make_streams(&self) -> Option<()> {
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: places for the answers.
        ok(unsafe { next::call::cuCtxGetStreamPriorityRange(&mut least, &mut greatest) })?;
        // Streams of one priority share the hardware's queues, and one that waits at a gate holds up others behind it. So
        // the helper has another priority than most streams of programs, and the rescue stream another than the helper.
        let [helper, rescue] = [1, 2].map(|above| (least - above).max(greatest));
        for (place, priority) in self.streams.iter().zip([greatest, helper, rescue]) {
            const NON_BLOCKING: u32 = 1;
            let mut stream: CUstream = ptr::null_mut();
            // SAFETY: a place for the answer.
            ok(unsafe { next::call::cuStreamCreateWithPriority(&mut stream, NON_BLOCKING, priority) })?;
            place.store(stream.expose_provenance(), Ordering::Relaxed);
        }
        self.commands.iter().for_each(|command| command.store(0, Ordering::Relaxed));
        Some(())
    }

    fn clear(&self) -> Option<()> {
        let words = [(self.stop(), 4), (self.zero(), AWAY as usize + AWAY_BYTES)];
        for (first, bytes) in words {
            // SAFETY: our own memory and stream.
            ok(unsafe { next::call::cuMemsetD8Async(first, 0, bytes, self.stream(Own::Control)) })?;
        }
        self.catch_up()
    }

    /// Gives back what there is, in its context.
    pub fn unmake(&self) {
        for stream in &self.streams {
            let handle = stream.swap(0, Ordering::Relaxed);
            if handle != 0 {
                // SAFETY: our own stream, which nobody uses any more.
                let _ = unsafe { next::call::cuStreamDestroy_v2(driver::stream(handle)) };
            }
        }
        if self.registered.swap(false, Ordering::Relaxed) {
            // SAFETY: memory that was registered, and that the GPU does not use any more.
            let _ = unsafe { next::call::cuMemHostUnregister(self.pinned.load(Ordering::Relaxed).cast()) };
        }
        for allocation in [&self.open, &self.closed] {
            let device = allocation.swap(0, Ordering::Relaxed);
            if device != 0 {
                // SAFETY: our own memory, which nobody uses any more.
                let _ = unsafe { next::call::cuMemFree_v2(device) };
            }
        }
    }

    /// In the child of a fork: what there was is the parent's.
    pub fn forget(&self) {
        self.streams.iter().for_each(|stream| stream.store(0, Ordering::Relaxed));
        // What a driver has pinned, a child need not have.
        self.pinned.store(ptr::null_mut(), Ordering::Relaxed);
        self.registered.store(false, Ordering::Relaxed);
        [&self.open, &self.closed].into_iter().for_each(|device| device.store(0, Ordering::Relaxed));
    }

    /// Where the stop word is. It lies at the beginning of its allocation.
    pub fn stop(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    pub fn zero(&self) -> u64 {
        self.closed.load(Ordering::Relaxed) + ZERO
    }

    /// The stop word of what runs on the siding.
    pub fn side(&self) -> u64 {
        self.closed.load(Ordering::Relaxed) + SIDE
    }

    /// The stop word that launches of one of our streams look at.
    pub fn stop_of(&self, runner: Runner) -> u64 {
        match runner {
            Runner::Helper => self.stop(),
            Runner::Rescue => self.zero(),
            Runner::Siding => self.side(),
        }
    }

    pub fn away(&self, lane: usize) -> u64 {
        self.closed.load(Ordering::Relaxed) + AWAY + lane as u64 * AWAY_APART
    }

    pub fn away_of(&self, runner: Runner) -> u64 {
        self.away(runner.away())
    }

    pub fn stream(&self, own: Own) -> CUstream {
        driver::stream(self.streams[own as usize].load(Ordering::Relaxed))
    }

    /// Puts another stream in the place of one of ours; the one that was there.
    pub fn put_stream(&self, own: Own, stream: CUstream) -> CUstream {
        driver::stream(self.streams[own as usize].swap(stream.expose_provenance(), Ordering::Relaxed))
    }

    /// The handle by which other processes open the memory that begins with the stop word. `None`: the driver makes none, or something
    /// else may lie in what it would open.
    pub fn handle(&self) -> Option<[u8; 64]> {
        let (mut base, mut bytes) = (0, 0);
        // SAFETY: places for the answers, and an allocation of ours.
        ok(unsafe { next::call::cuMemGetAddressRange_v2(&mut base, &mut bytes, self.stop()) })?;
        if !is_whole_piece(base, bytes, self.stop()) {
            return None;
        }
        let mut handle = CUipcMemHandle { reserved: [0; 64] };
        // SAFETY: a place for the answer, and an allocation of ours.
        ok(unsafe { next::call::cuIpcGetMemHandle(&mut handle, self.stop()) })?;
        Some(handle.reserved.map(|byte| byte as u8))
    }

    fn word(&self, index: usize) -> &AtomicU32 {
        // SAFETY: inside our pages, which there are since there was the first lane, and which stay. Every word of them is
        // a number at any time.
        unsafe { &*self.pinned.load(Ordering::Relaxed).wrapping_add(index) }
    }

    fn address(&self, index: usize) -> u64 {
        self.pinned_device.load(Ordering::Relaxed) + index as u64 * 4
    }

    /// The number of the last gate at which a lane has arrived, and its address for the GPU.
    pub fn arrived(&self, lane: usize) -> (u32, u64) {
        let index = COUNTS + 2 * lane;
        (self.word(index).load(Ordering::Acquire), self.address(index))
    }

    /// The number of the last gate that a lane has passed.
    pub fn passed(&self, lane: usize) -> (u32, u64) {
        let index = COUNTS + 2 * lane + 1;
        (self.word(index).load(Ordering::Acquire), self.address(index))
    }

    /// A lane that begins anew has no gate; one that ends has passed all of them, for whoever still waits.
    pub fn set_counts(&self, lane: usize, gates: u32) {
        self.word(COUNTS + 2 * lane).store(gates, Ordering::Relaxed);
        self.word(COUNTS + 2 * lane + 1).store(gates, Ordering::Relaxed);
    }

    /// Gives operations to one of our streams; the number by which to ask whether they are done.
    pub fn begin(&self, own: Own, operations: Operations) -> Option<u32> {
        let number = self.commands[own as usize].load(Ordering::Relaxed).wrapping_add(1);
        let operations = operations.write(self.address(OURS + own as usize), number);
        ok(operations.give_to(self.stream(own)))?;
        self.commands[own as usize].store(number, Ordering::Relaxed);
        Some(number)
    }

    /// The number of the last operations that one of our streams has done.
    pub fn done(&self, own: Own) -> u32 {
        self.word(OURS + own as usize).load(Ordering::Acquire)
    }

    pub fn has_done_all(&self, own: Own) -> bool {
        self.is_done(own, self.commands[own as usize].load(Ordering::Relaxed))
    }

    pub fn is_done(&self, own: Own, number: u32) -> bool {
        self.done(own).wrapping_sub(number).cast_signed() >= 0
    }

    /// Gives operations to one of our streams and waits until they are done. `None`: not within the time they may take.
    fn command(&self, own: Own, operations: Operations) -> Option<()> {
        let number = self.begin(own, operations)?;
        let began = board::now();
        while !self.is_done(own, number) {
            if board::now().since(began) > PATIENCE {
                return None;
            }
            std::hint::spin_loop();
        }
        Some(())
    }

    /// Waits until the control stream has done everything that it was given.
    pub fn catch_up(&self) -> Option<()> {
        self.command(Own::Control, Operations::new())
    }

    /// Raises or lowers the stop word. When this returns, every block that begins finds it so.
    pub fn set_stop(&self, value: u32) -> Option<()> {
        self.command(Own::Control, Operations::new().write(self.stop(), value))
    }

    /// Has what runs on the siding leave, as soon as the control stream comes to it.
    pub fn recall(&self) -> Option<()> {
        ok(Operations::new().write(self.side(), 1).give_to(self.stream(Own::Control)))
    }

    /// Lowers the stop word and asks for the away words, in one go.
    pub fn lower(&self) -> Option<Aways<'_>> {
        ok(Operations::new().write(self.stop(), 0).give_to(self.stream(Own::Control)))?;
        self.aways()
    }

    /// Has a stream of ours hand its away word on to a lane, behind everything it was given: nought if all of that ran, and
    /// the lane's gate opens with nobody's help; else which launch was the first to be cut again.
    ///
    /// The word must be written once. What comes behind the gate may be cut in the next moment and say so in the same word: a second nought
    /// would lose it. A card does so (`benchmarks/guard/programs/once.cu` has tried), and so does the software GPU since it was seen not to.
    pub fn hand_on(&self, runner: Runner, lane: usize) -> Option<()> {
        let (to, from) = (self.away(lane), self.away_of(runner));
        // SAFETY: words of ours on both sides.
        ok(unsafe { next::call::cuMemcpyDtoDAsync_v2(to, from, 4, self.stream(runner.own())) })
    }

    /// Asks the GPU for the away words.
    pub fn aways(&self) -> Option<Aways<'_>> {
        self.copy(self.away(0), AWAY_BYTES, COPY, Own::Control)?;
        self.catch_up()?;
        Some(Aways(self))
    }

    /// Has the helper stream tell its away word, behind everything it was given.
    pub fn tell_helper(&self) -> Option<()> {
        self.copy(self.away_of(Runner::Helper), 4, TOLD, Own::Helper)
    }

    /// Whether the helper's away word was nought when it was last told: all that the stream was given has run.
    pub fn is_helper_whole(&self) -> bool {
        self.word(TOLD).load(Ordering::Acquire) == 0
    }

    fn copy(&self, from: u64, bytes: usize, to: usize, own: Own) -> Option<()> {
        let to: *mut AtomicU32 = self.pinned.load(Ordering::Relaxed).wrapping_add(to);
        // SAFETY: so many bytes are ours on both sides: all away words, or one.
        ok(unsafe { next::call::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, self.stream(own)) })
    }

    /// Whether the context has failed, so that nothing that was asked of it will ever be done.
    pub fn is_dead(&self) -> bool {
        // SAFETY: our own stream.
        let result = driver::relaxed(|| unsafe { next::call::cuStreamQuery(self.stream(Own::Control)) });
        result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY
    }
}

/// Whether an allocation fills the driver's own pieces of memory, so that nothing shares them with it.
fn is_whole_piece(base: u64, bytes: usize, word: u64) -> bool {
    base == word && base.is_multiple_of(PIECE as u64) && bytes > 0 && bytes.is_multiple_of(PIECE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pieces_of_memory_are_opened_to_others() {
        const AT: u64 = 0x7f00_0020_0000;
        assert!(is_whole_piece(AT, PIECE, AT));
        assert!(!is_whole_piece(AT + 512, PIECE, AT + 512), "begins in a piece that others may share");
        assert!(!is_whole_piece(AT, 4096, AT) && !is_whole_piece(AT, 0, AT), "leaves room in a piece");
        assert!(!is_whole_piece(AT - PIECE as u64, 2 * PIECE, AT), "something lies before the word");
    }

    #[test]
    fn the_stop_word_is_apart_from_the_words_that_say_what_ran() {
        let control = Control::new();
        control.open.store(PIECE as u64, Ordering::Relaxed);
        control.closed.store(2 * PIECE as u64, Ordering::Relaxed);
        let runners = [Runner::Helper, Runner::Rescue, Runner::Siding];
        let words =
            (0..LANES).map(|lane| control.away(lane)).chain(runners.map(|runner| control.away_of(runner)));
        let words: Vec<u64> = words.chain([control.zero(), control.side()]).collect();
        assert!(words.iter().all(|word| (2 * PIECE as u64..3 * PIECE as u64).contains(word)));
        assert!(
            words.iter().enumerate().all(|(at, word)| !words[..at].contains(word)),
            "each has its own place"
        );
    }
}
