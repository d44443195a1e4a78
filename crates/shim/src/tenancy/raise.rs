//! Raising the stop words of best-effort tenants: what a latency tenant does before its first launch of a burst.
//!
//! In the shared domain best-effort work stops because a word in its own device memory says so. A latency tenant maps
//! the words of all best-effort tenants (CUDA's interprocess memory) and writes them itself, on a stream of its own: that
//! is sooner than any thread of theirs could hear of it. The mapping is the keeper's part; threads of the program read
//! addresses from a table that nobody locks.
//!
//! Every failure means the same: the word is not raised from here, the board says so, and the best-effort tenant watches
//! the board instead.

use std::ffi::c_uint;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use board::{Seat, StopWord};
use cuda_abi::{
    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, CU_STREAM_MEM_OP_WRITE_VALUE_32, CU_STREAM_NON_BLOCKING,
    CUDA_ERROR_NOT_READY, CUDA_SUCCESS, CUdeviceptr, CUipcMemHandle, CUstream, CUstreamBatchMemOpParams,
};

use crate::guard::driver;
use crate::lock::Lock;
use crate::log::say;
use crate::next;

/// More best-effort tenants than this on one GPU watch the board.
const MOST: usize = 64;
/// How often is looked whether threads have left the table alone.
const LOOKS: usize = 10_000;

/// Held while keepers are in a context, which must not be destroyed meanwhile.
static LOCK: Lock = Lock::new();

/// What threads of the program see.
pub struct Raise {
    /// Whether this is a latency tenant in the shared domain.
    on: AtomicBool,
    /// The context in which words are mapped: the first in which there was work.
    context: AtomicUsize,
    stream: AtomicUsize,
    /// Addresses of words; nought: none.
    words: [AtomicU64; MOST],
    /// Places beyond this one are empty.
    below: AtomicUsize,
    /// Threads that are reading the table, and writing words by it.
    readers: AtomicU32,
    /// The driver refused once; nothing is tried again.
    refused: AtomicBool,
}

impl Raise {
    pub const fn new() -> Raise {
        Raise {
            on: AtomicBool::new(false),
            context: AtomicUsize::new(0),
            stream: AtomicUsize::new(0),
            words: [const { AtomicU64::new(0) }; MOST],
            below: AtomicUsize::new(0),
            readers: AtomicU32::new(0),
            refused: AtomicBool::new(false),
        }
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Writes all words that are known. Whether the keeper has something to do first.
    pub fn raise(&self) -> bool {
        let begins = self.is_on() && self.context.load(Ordering::Relaxed) == 0 && self.begin();
        if self.below.load(Ordering::Relaxed) != 0 {
            // SYNC(raise): counted before the table is read; the keeper clears the table, then looks at the count.
            self.readers.fetch_add(1, Ordering::SeqCst);
            self.write();
            // SYNC(raise): what was handed to the stream is there before the keeper asks the stream.
            self.readers.fetch_sub(1, Ordering::Release);
        }
        begins
    }

    /// The context of the first work becomes that of the mappings.
    #[cold]
    fn begin(&self) -> bool {
        let context = driver::current_context();
        context != 0
            && self.context.compare_exchange(0, context, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    fn write(&self) {
        let mut operations = [const { MaybeUninit::<CUstreamBatchMemOpParams>::uninit() }; MOST];
        let below = self.below.load(Ordering::SeqCst).min(MOST);
        let known = self.words[..below].iter().map(|word| word.load(Ordering::SeqCst));
        let mut count = 0;
        for address in known.filter(|address| *address != 0) {
            operations[count].write(raised(address));
            count += 1;
        }
        // SYNC(raise): the stream was made before any word was put into the table.
        let stream: CUstream = ptr::with_exposed_provenance_mut(self.stream.load(Ordering::SeqCst));
        if count == 0 || stream.is_null() {
            return;
        }
        let first = operations.as_mut_ptr().cast::<CUstreamBatchMemOpParams>();
        let written = within(self.context.load(Ordering::Relaxed), || {
            // SAFETY: our own stream, so many operations that were written above, and addresses that stay mapped while we
            // are counted.
            unsafe { next::call::cuStreamBatchMemOp_v2(stream, count as c_uint, first, 0) == CUDA_SUCCESS }
        });
        if written != Some(true) {
            self.refused.store(true, Ordering::Relaxed);
        }
    }

    /// Returns when nobody reads the table any more who began before; `false`: somebody still does.
    fn settle(&self) -> bool {
        for _ in 0..LOOKS {
            // SYNC(raise): see `raise`.
            if self.readers.load(Ordering::SeqCst) == 0 {
                return true;
            }
            std::thread::yield_now();
        }
        false
    }

    /// A context is about to be destroyed, and perhaps with it what is mapped there.
    pub fn forget(&self) {
        if self.context.load(Ordering::Relaxed) != 0 {
            let _held = LOCK.acquire();
            self.clear();
            self.settle();
            self.context.store(0, Ordering::Relaxed);
        }
    }

    fn clear(&self) {
        self.below.store(0, Ordering::SeqCst);
        self.words.iter().for_each(|word| word.store(0, Ordering::SeqCst));
        self.stream.store(0, Ordering::SeqCst);
    }

    /// In the child of a fork.
    pub fn in_child(&self) {
        LOCK.reset();
        self.on.store(false, Ordering::Relaxed);
        self.clear();
        self.context.store(0, Ordering::Relaxed);
        self.readers.store(0, Ordering::Relaxed);
        self.refused.store(false, Ordering::Relaxed);
    }
}

/// What the keeper may do about mappings now. To unmap may wait for all that is on the GPU, and to map may, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leisure {
    Free,
    /// A burst is under way, which must not be held up: nothing is unmapped.
    Busy,
    /// This process is kept off the GPU, so what is there does not come to an end; and who waited for it could not let it
    /// go on. Nothing is mapped or unmapped.
    Off,
}

/// The keeper's part: which words are mapped, and where.
pub struct Raiser {
    opened: [Option<Opened>; MOST],
    /// The context and the stream that were found or made.
    context: usize,
    stream: usize,
}

#[derive(Clone, Copy)]
struct Opened {
    word: StopWord,
    /// Where the allocation is mapped; nought: it could not be.
    base: CUdeviceptr,
    /// It is no longer raised, and is to be closed when there is time.
    leaving: bool,
}

impl Raiser {
    pub const fn new() -> Raiser {
        Raiser { opened: [None; MOST], context: 0, stream: 0 }
    }

    /// Has `raise` know the words that the board shows, and no others. Whether there is a new word.
    pub fn tend(&mut self, raise: &Raise, seat: &Seat, leisure: Leisure) -> bool {
        raise.on.store(true, Ordering::Relaxed);
        let context = raise.context.load(Ordering::Acquire);
        if context != self.context {
            // What was mapped went with the old context, or nobody knows.
            *self = Raiser { context, ..Raiser::new() };
        }
        if context == 0 || raise.refused.load(Ordering::Relaxed) {
            self.say_nothing(seat);
            return false;
        }
        let Some(_held) = LOCK.acquire() else { return false };
        // It may have been destroyed while we waited.
        if raise.context.load(Ordering::Relaxed) != context {
            return false;
        }
        within(context, || self.follow(raise, seat, leisure)).unwrap_or(false)
    }

    /// This is no latency tenant of a shared domain, or not on that board any more.
    pub fn leave(&mut self, raise: &Raise, seat: Option<&Seat>, leisure: Leisure) {
        raise.on.store(false, Ordering::Relaxed);
        if let Some(seat) = seat {
            self.say_nothing(seat);
        }
        let Some(_held) = LOCK.acquire() else { return };
        if self.context == 0 || raise.context.load(Ordering::Relaxed) != self.context {
            return;
        }
        let _ = within(self.context, || {
            for place in 0..MOST {
                self.part(raise, place);
                if leisure != Leisure::Off {
                    self.close(raise, place);
                }
            }
        });
    }

    /// Whether something is left to be unmapped.
    pub fn has_leftovers(&self) -> bool {
        self.opened.iter().flatten().any(|opened| opened.leaving)
    }

    fn say_nothing(&self, seat: &Seat) {
        self.opened.iter().flatten().for_each(|opened| seat.say_raises_not(opened.word.place));
    }

    fn follow(&mut self, raise: &Raise, seat: &Seat, leisure: Leisure) -> bool {
        for place in 0..MOST {
            let Some(opened) = self.opened[place] else { continue };
            if !seat.board().stop_words().any(|word| word == opened.word) {
                self.part(raise, place);
            }
            if leisure == Leisure::Free {
                self.close(raise, place);
            }
        }
        if leisure == Leisure::Off {
            return false;
        }
        let mut news = false;
        for word in seat.board().stop_words() {
            let known = self.opened.iter().flatten().any(|opened| opened.word == word && !opened.leaving);
            if !known && let Some(place) = self.opened.iter().position(Option::is_none) {
                news |= self.open(raise, seat, &word, place);
            }
        }
        news
    }

    /// Maps a word and has it raised from now on.
    fn open(&mut self, raise: &Raise, seat: &Seat, word: &StopWord, place: usize) -> bool {
        let base = if self.has_stream(raise) { map(word) } else { None };
        self.opened[place] = Some(Opened { word: *word, base: base.unwrap_or(0), leaving: false });
        let Some(base) = base else {
            say!("the stop word of seat {} cannot be raised from here", word.place.seat);
            return false;
        };
        raise.words[place].store(base + word.offset, Ordering::SeqCst);
        raise.below.fetch_max(place + 1, Ordering::SeqCst);
        seat.say_raises(word)
    }

    /// From now on a word is not raised.
    fn part(&mut self, raise: &Raise, place: usize) {
        if let Some(opened) = &mut self.opened[place] {
            raise.words[place].store(0, Ordering::SeqCst);
            opened.leaving = true;
        }
    }

    /// Unmaps what is not raised any more, unless somebody may still be writing there; then another time.
    fn close(&mut self, raise: &Raise, place: usize) {
        let Some(opened) = self.opened[place].filter(|opened| opened.leaving) else { return };
        let stream: CUstream = ptr::with_exposed_provenance_mut(self.stream);
        if opened.base != 0 {
            if !raise.settle() {
                return;
            }
            // SAFETY: our own stream, in the context that is current.
            if unsafe { next::call::cuStreamQuery(stream) } == CUDA_ERROR_NOT_READY {
                return;
            }
            // SAFETY: mapped by `map`, in this context; nobody has the address any more, and nothing is in flight to it.
            let _ = unsafe { next::call::cuIpcCloseMemHandle(opened.base) };
        }
        self.opened[place] = None;
    }

    /// The stream on which words are written: it waits for nobody, and goes before everybody.
    fn has_stream(&mut self, raise: &Raise) -> bool {
        if self.stream == 0 {
            let mut stream: CUstream = ptr::null_mut();
            let (flags, priority) = (CU_STREAM_NON_BLOCKING.0, highest_priority());
            // SAFETY: a place for the stream, in the context that is current.
            let made = unsafe { next::call::cuStreamCreateWithPriority(&mut stream, flags, priority) };
            if made == CUDA_SUCCESS {
                self.stream = stream.expose_provenance();
                raise.stream.store(self.stream, Ordering::SeqCst);
            }
        }
        self.stream != 0
    }
}

/// The number of the highest priority that a stream of the current context can have.
pub fn highest_priority() -> i32 {
    let (mut least, mut greatest) = (0, 0);
    // SAFETY: places for the answers.
    let _ = unsafe { next::call::cuCtxGetStreamPriorityRange(&mut least, &mut greatest) };
    greatest
}

/// Maps the allocation of a word. Whoever published it may say anything, so the word must lie inside.
fn map(word: &StopWord) -> Option<CUdeviceptr> {
    let handle = CUipcMemHandle { reserved: word.handle.map(|byte| byte.cast_signed()) };
    let (mut address, mut base, mut bytes) = (0, 0, 0);
    let flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.0;
    // SAFETY: a place for the address; what a handle means is the driver's to judge.
    let opened = unsafe { next::call::cuIpcOpenMemHandle_v2(&mut address, handle, flags) };
    if opened != CUDA_SUCCESS {
        return None;
    }
    // SAFETY: places for the answers, and an address that was mapped just now.
    let asked = unsafe { next::call::cuMemGetAddressRange_v2(&mut base, &mut bytes, address) };
    let end = word.offset.checked_add(4);
    let inside = word.offset.is_multiple_of(4)
        && end.is_some_and(|end| usize::try_from(end).is_ok_and(|end| end <= bytes));
    if asked == CUDA_SUCCESS && base == address && inside {
        return Some(address);
    }
    // SAFETY: mapped just now, and used by nobody.
    let _ = unsafe { next::call::cuIpcCloseMemHandle(address) };
    None
}

/// "Write 1 there."
fn raised(address: CUdeviceptr) -> CUstreamBatchMemOpParams {
    let mut operation = CUstreamBatchMemOpParams::default();
    operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operation.writeValue.address = address;
    operation.writeValue.__bindgen_anon_1.value = 1;
    operation
}

/// Does something in a context, which mostly is the thread's own. `None`: it cannot be entered.
fn within<T>(context: usize, work: impl FnOnce() -> T) -> Option<T> {
    if context != 0 && driver::current_context() == context {
        return Some(work());
    }
    driver::within(context, || Some(work()))
}
