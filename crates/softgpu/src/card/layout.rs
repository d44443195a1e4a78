//! What lies in the segment. Every field is an atomic, so that a mapped segment is an ordinary shared
//! reference: a peer can make a number wrong, but not make reading it undefined.
//!
//! Which fields may be written when:
//! * `settings` at any time, by anybody;
//! * a process's own `used_bytes` and `doorbell` at any time;
//! * everything else under `lock`.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

pub const MAGIC: u64 = u64::from_le_bytes(*b"ebbcard\0");
/// Raised with every change of the layout; a card of another version is remade when nobody uses it.
pub const VERSION: u32 = 3;
pub const MAX_SMS: usize = 256;
pub const MAX_PROCESSES: usize = 64;
pub const MAX_CONTEXTS: usize = 128;
/// `pending` of a context with no block waiting for room.
pub const NO_PRIORITY: i32 = i32::MAX;

#[repr(C)]
pub struct Segment {
    pub magic: AtomicU64,
    pub version: AtomicU32,
    pub bytes: AtomicU32,
    pub settings: Settings,
    pub lock: LockWord,
    /// Contexts with grids to run that are not disabled: two or more mean that slices matter.
    pub runnable: AtomicU32,
    /// The context that has the GPU in the isolated domain, as slot + 1, and the one that had it last.
    pub current: AtomicU32,
    pub last: AtomicU32,
    /// The context whose state is still on the chip, as slot + 1: coming back to it costs nothing.
    pub on_chip: AtomicU32,
    /// Not 0: some SM holds more than its limits, because blocks came back that had been suspended.
    pub overfull: AtomicU32,
    /// The end of the current slice (monotonic nanoseconds).
    pub slice_end: AtomicU64,
    /// The most urgent priority for which some context has blocks waiting for room.
    pub best_pending: AtomicI32,
    pub next_context_id: AtomicU64,
    pub switches: AtomicU64,
    pub totals: [SmUse; MAX_SMS],
    /// In the shared domain, nominally when a block last left each SM without a successor (monotonic nanoseconds).
    pub left_at: [AtomicU64; MAX_SMS],
    pub processes: [ProcessSlot; MAX_PROCESSES],
    pub contexts: [ContextSlot; MAX_CONTEXTS],
}

/// Chosen from outside, kept while the card file exists.
#[repr(C)]
pub struct Settings {
    pub domain: AtomicU32,
    pub sms: AtomicU32,
    pub memory_bytes: AtomicU64,
    pub switch_cost: AtomicU64,
    pub default_timeslice: AtomicU64,
    pub uuid: [AtomicU64; 2],
}

/// A robust, process-shared pthread mutex.
#[repr(C)]
pub struct LockWord(pub UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the mutex is only ever handed to pthread functions, which synchronise by themselves, also between
// processes.
unsafe impl Sync for LockWord {}

/// What is taken of one SM.
#[repr(C)]
pub struct SmUse {
    pub threads: AtomicU32,
    pub registers: AtomicU32,
    pub shared: AtomicU32,
    pub blocks: AtomicU32,
}

#[repr(C)]
pub struct ProcessSlot {
    /// 0: free.
    pub pid: AtomicU32,
    /// The futex word on which the process's idle threads wait.
    pub doorbell: AtomicU32,
    /// How many of them wait, so that ringing for nobody costs no system call.
    pub sleepers: AtomicU32,
    pub _pad: AtomicU32,
    /// Start time of the process in clock ticks: tells a reused pid from the process that took the slot.
    pub started: AtomicU64,
    pub used_bytes: AtomicU64,
}

#[repr(C)]
pub struct ContextSlot {
    /// Slot of the owning process + 1; 0: free.
    pub process: AtomicU32,
    pub runnable: AtomicU32,
    pub id: AtomicU64,
    pub timeslice: AtomicU64,
    /// When the context's turn begins (monotonic nanoseconds); 0: it is off the GPU.
    pub begins: AtomicU64,
    /// Monotonic time minus context time, valid while the context is on.
    pub offset: AtomicU64,
    /// When it went off.
    pub off_at: AtomicU64,
    /// Time on the GPU so far, for accounting.
    pub on_time: AtomicU64,
    pub pending: AtomicI32,
    /// Not 0: it has no turn until somebody enables it, and its row below does not count.
    pub disabled: AtomicU32,
    pub resident: [SmUse; MAX_SMS],
}
