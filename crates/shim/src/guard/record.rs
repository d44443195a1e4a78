//! What is needed to make a launch again, and the ring in which each lane keeps it.
//!
//! A launch is copied whole when it is made: the program may change or free what it passed as soon as the call returns.
//! Records lie in the ring one behind the other, as words, in the order of the stream; those before a gate that was passed
//! belong to launches that ran whole, and their place is used again.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use cuda_abi::{
    CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END,
    CUDA_ERROR_INVALID_VALUE, CUfunction, CUlaunchAttribute, CUlaunchConfig, CUresult, CUstream,
};
use guard::{Control, Mode, Rule};

use super::marks::has_passed;
use super::overlap::Driver;
use super::words::Words;
use crate::frames::Frame;
use crate::twins::Twin;
use crate::{arena, next};

/// An attribute as words: its number, and a value of 64 bytes that we need not understand.
pub type Attribute = [u64; ATTRIBUTE_WORDS];
const ATTRIBUTE_WORDS: usize = 9;
const _: () = assert!(size_of::<CUlaunchAttribute>() == size_of::<Attribute>());

/// Launches with more attributes, or more bytes of parameters, are not guarded. Drivers know 18 attributes, and compilers
/// up to recently no more parameters.
pub const MOST_ATTRIBUTES: usize = 16;
pub const MOST_BYTES: usize = 4096;

const CONTROL_WORDS: usize = size_of::<Control>() / 8;
const PARAMETER_WORDS: usize = MOST_BYTES / 8 + CONTROL_WORDS;

/// A launch of a twin. It is large, and mostly unused room: to be made where it stays, and passed on by reference.
pub struct Launch {
    /// The twin, as any context takes it.
    pub kernel: CUfunction,
    /// The same as the context at hand takes it, if that is known. Not kept.
    pub function: Option<CUfunction>,
    pub frame: &'static Frame,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub rule: Rule,
    pub serial: u32,
    pub marks: u64,
    /// How often it was made.
    pub attempts: u32,
    /// Whether its twin may overlap. Not kept: what is made again does not.
    pub overlaps: bool,
    /// One behind the other.
    pub attributes: Words<{ MOST_ATTRIBUTES * ATTRIBUTE_WORDS }>,
    /// The kernel's own parameters, packed. There is room for the control words behind them.
    pub parameters: Words<PARAMETER_WORDS>,
}

impl Launch {
    /// One of a twin, about which nothing else is said yet.
    #[inline(always)]
    pub fn of(twin: &Twin) -> Launch {
        Launch { overlaps: twin.overlaps, rule: twin.rule(), ..Launch::blank(twin.kernel(), twin.frame) }
    }

    /// One to read others into.
    #[inline(always)]
    pub fn blank(kernel: CUfunction, frame: &'static Frame) -> Launch {
        Launch {
            kernel,
            function: None,
            frame,
            grid: [0; 3],
            block: [0; 3],
            shared: 0,
            rule: Rule::Plain,
            serial: 0,
            marks: 0,
            attempts: 0,
            overlaps: false,
            attributes: Words::new(),
            parameters: Words::new(),
        }
    }

    fn mode(&self) -> Mode {
        let mut mode = Mode::FIRST;
        if self.rule == Rule::Ordered {
            mode = mode | Mode::ORDERED;
        }
        if self.attempts > 0 {
            mode = mode | Mode::AGAIN;
        }
        if self.rule == Rule::Ordered && self.attempts % 2 == 1 {
            mode = mode | Mode::SECOND_CELL;
        }
        mode
    }

    pub fn blocks(&self) -> u64 {
        self.grid.iter().fold(1, |blocks, side| blocks.saturating_mul(u64::from(*side)))
    }

    /// The cell of this attempt, which must be zero before it.
    pub fn cell(&self) -> u64 {
        self.marks + 8 * u64::from(self.attempts % 2)
    }

    /// Hands it to the driver as `make` does, and it may begin while the launch before it in the stream ends.
    pub fn make_overlapping(&mut self, stream: CUstream, stop: u64, away: u64) -> CUresult {
        static DRIVER: Driver = Driver::new();
        let own = self.attributes.count();
        DRIVER.launch(|request| {
            // One that has as many already goes without.
            let _ = request.and_then(|request| self.attributes.add(&request));
            let result = self.make(stream, stop, away);
            // Its record has been written without, and would not be found otherwise.
            self.attributes.shorten(own);
            result
        })
    }

    /// Hands it to the driver, with these words for stop and away.
    pub fn make(&mut self, stream: CUstream, stop: u64, away: u64) -> CUresult {
        let control = Control { stop, marks: self.marks, away, serial: self.serial, mode: self.mode() };
        let words: [u64; CONTROL_WORDS] = [
            control.stop,
            control.marks,
            control.away,
            u64::from(control.serial) | u64::from(control.mode.0) << 32,
        ];
        let own = self.parameters.count();
        if self.parameters.add(&words).is_none() {
            return CUDA_ERROR_INVALID_VALUE;
        }
        let result = self.hand_over(stream);
        self.parameters.shorten(own);
        result
    }

    /// With all its parameters.
    fn hand_over(&mut self, stream: CUstream) -> CUresult {
        let mut bytes = self.parameters.count() * 8;
        let mut extra = [
            CU_LAUNCH_PARAM_BUFFER_POINTER,
            self.parameters.all_mut().as_mut_ptr().cast(),
            CU_LAUNCH_PARAM_BUFFER_SIZE,
            (&raw mut bytes).cast(),
            CU_LAUNCH_PARAM_END,
        ];
        let function = self.function.unwrap_or(self.kernel);
        let ([gx, gy, gz], [bx, by, bz]) = (self.grid, self.block);
        if self.attributes.count() == 0 {
            let (no, extra) = (ptr::null_mut(), extra.as_mut_ptr());
            // SAFETY: a kernel of ours, as many bytes of parameters as it has, and a stream that exists.
            return unsafe {
                next::call::cuLaunchKernel(function, gx, gy, gz, bx, by, bz, self.shared, stream, no, extra)
            };
        }
        let config = CUlaunchConfig {
            gridDimX: gx,
            gridDimY: gy,
            gridDimZ: gz,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: self.shared,
            hStream: stream,
            attrs: self.attributes.all_mut().as_mut_ptr().cast(),
            numAttrs: (self.attributes.count() / ATTRIBUTE_WORDS) as u32,
        };
        // SAFETY: as above; so many attributes, as the program gave them.
        unsafe { next::call::cuLaunchKernelEx(&config, function, ptr::null_mut(), extra.as_mut_ptr()) }
    }
}

/// Words of a ring. A megabyte, of which only what is used is ever touched.
const CAPACITY: usize = 1 << 17;
/// Words of a record before its attributes and parameters.
const HEAD: usize = 9;

/// The records of a lane. It is written under the lane's lock; what lies between two gates that were not passed is read by
/// the keeper without it.
pub struct Ring {
    words: AtomicPtr<[AtomicU64; CAPACITY]>,
    /// Counts of words written and of words that may be written again.
    head: AtomicU64,
    tail: AtomicU64,
}

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(u64);

impl Ring {
    pub const fn new() -> Ring {
        Ring { words: AtomicPtr::new(ptr::null_mut()), head: AtomicU64::new(0), tail: AtomicU64::new(0) }
    }

    /// Has memory from now on, which stays for whoever uses the lane next.
    pub fn make(&self) -> Option<()> {
        self.clear();
        if !self.words.load(Ordering::Relaxed).is_null() {
            return Some(());
        }
        // SAFETY: zeros are numbers.
        let words = unsafe { arena::zeroed::<AtomicU64>(CAPACITY) }?;
        self.words.store(words.as_ptr().cast_mut().cast(), Ordering::Relaxed);
        Some(())
    }

    pub fn clear(&self) {
        self.head.store(0, Ordering::Relaxed);
        self.tail.store(0, Ordering::Relaxed);
    }

    fn words(&self) -> &[AtomicU64; CAPACITY] {
        // SAFETY: the memory of the ring, which stays. There is some: whoever has records has made it.
        unsafe { &*self.words.load(Ordering::Relaxed) }
    }

    fn get(&self, at: u64) -> u64 {
        self.words()[at as usize % CAPACITY].load(Ordering::Relaxed)
    }

    fn put(&self, at: u64, value: u64) {
        self.words()[at as usize % CAPACITY].store(value, Ordering::Relaxed);
    }

    /// Keeps a launch, which lies before that gate. `None`: there is no room.
    pub fn push(&self, launch: &Launch, gate: u32) -> Option<()> {
        let (size, head) = (size(launch), self.head.load(Ordering::Relaxed));
        if head + size as u64 - self.tail.load(Ordering::Relaxed) > CAPACITY as u64 {
            return None;
        }
        self.write(head, launch, gate, size);
        // SYNC(records): whoever sees the new head sees the record.
        self.head.store(head + size as u64, Ordering::Release);
        Some(())
    }

    fn write(&self, at: u64, launch: &Launch, gate: u32, size: usize) {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        let head: [u64; HEAD] = [
            pair(size as u32, launch.attributes.count() as u32),
            pair(launch.serial, gate),
            launch.kernel.expose_provenance() as u64,
            ptr::from_ref(launch.frame).expose_provenance() as u64,
            pair(gx, gy),
            pair(gz, bx),
            pair(by, bz),
            pair(launch.shared, launch.attempts << 1 | u32::from(launch.rule == Rule::Ordered)),
            launch.marks,
        ];
        let (words, mut at) = (self.words(), at as usize);
        for part in [&head, launch.attributes.all(), launch.parameters.all()] {
            for word in part {
                words[at % CAPACITY].store(*word, Ordering::Relaxed);
                at += 1;
            }
        }
    }

    /// Forgets the record that was written last: the driver has refused the launch.
    pub fn pop(&self, launch: &Launch) {
        self.head.store(self.head.load(Ordering::Relaxed) - size(launch) as u64, Ordering::Release);
    }

    /// Frees the records of launches before a gate that was passed. Under the lane's lock.
    pub fn free(&self, passed: u32) {
        let (mut tail, head) = (self.tail.load(Ordering::Relaxed), self.head.load(Ordering::Relaxed));
        while tail < head && has_passed(passed, self.gate(At(tail))) {
            tail += self.size(At(tail));
        }
        self.tail.store(tail, Ordering::Relaxed);
    }

    /// The records that were not freed, from the oldest on.
    pub fn records(&self) -> impl Iterator<Item = At> {
        // SYNC(records): pairs with the store in `push`.
        let head = self.head.load(Ordering::Acquire);
        let mut next = self.tail.load(Ordering::Relaxed);
        std::iter::from_fn(move || {
            let at = At(next);
            (next < head).then(|| {
                next += self.size(at);
                at
            })
        })
    }

    /// The records before a gate.
    pub fn before(&self, gate: u32) -> impl Iterator<Item = At> {
        self.records().filter(move |at| self.gate(*at) == gate)
    }

    fn size(&self, at: At) -> u64 {
        // A record is never empty: nothing can make this loop for ever.
        (self.get(at.0) & u64::from(u32::MAX)).max(1)
    }

    pub fn serial(&self, at: At) -> u32 {
        self.get(at.0 + 1) as u32
    }

    fn gate(&self, at: At) -> u32 {
        (self.get(at.0 + 1) >> 32) as u32
    }

    pub fn attempted_again(&self, at: At) {
        self.put(at.0 + 7, self.get(at.0 + 7) + (1 << 33));
    }

    /// The kernel of a launch.
    pub fn frame(&self, at: At) -> &'static Frame {
        // SAFETY: the address of a frame in the arena, which stays.
        unsafe { &*ptr::with_exposed_provenance(self.get(at.0 + 3) as usize) }
    }

    /// Copies a launch out of the ring.
    pub fn read(&self, at: At, launch: &mut Launch) {
        let halves = |word: u64| [word as u32, (word >> 32) as u32];
        let [_, attributes] = halves(self.get(at.0));
        let ([gx, gy], [gz, bx], [by, bz]) =
            (halves(self.get(at.0 + 4)), halves(self.get(at.0 + 5)), halves(self.get(at.0 + 6)));
        let [shared, flags] = halves(self.get(at.0 + 7));
        launch.serial = self.serial(at);
        launch.kernel = ptr::with_exposed_provenance_mut(self.get(at.0 + 2) as usize);
        launch.frame = self.frame(at);
        (launch.grid, launch.block, launch.shared) = ([gx, gy, gz], [bx, by, bz], shared);
        launch.rule = if flags & 1 == 1 { Rule::Ordered } else { Rule::Plain };
        launch.attempts = flags >> 1;
        launch.marks = self.get(at.0 + 8);
        let mut from = at.0 + HEAD as u64;
        let end = at.0 + self.size(at);
        self.read_words(&mut from, u64::from(attributes), &mut launch.attributes);
        let parameters = end - from;
        self.read_words(&mut from, parameters, &mut launch.parameters);
    }

    fn read_words<const MOST: usize>(&self, from: &mut u64, count: u64, words: &mut Words<MOST>) {
        words.shorten(0);
        for word in words.grow(count as usize).into_iter().flatten() {
            *word = self.get(*from);
            *from += 1;
        }
    }
}

/// How many words the record of a launch has.
fn size(launch: &Launch) -> usize {
    HEAD + launch.attributes.count() + launch.parameters.count()
}
