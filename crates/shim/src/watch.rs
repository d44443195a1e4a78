//! This process's ledger, and what becomes of it in a fork.
//!
//! Nothing is made before the first call that a hook wants to see. A forked child is another process: it forgets
//! everything and begins its own ledger when it first uses CUDA, which most never do.

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use rustix::fs::{Mode, OFlags};
use telemetry::{EventLog, Ledger, Note, Stem, UnwrittenLedger};

use crate::frames::Frames;
use crate::lock::Lock;
use crate::log::say;
use crate::surroundings::Variables;
use crate::{arena, channels, fault, guard, heap, memory, next, tenancy, twins};

/// What hooks work with.
pub struct Watch {
    pub ledger: Ledger,
    /// Where what happens is written down; nowhere, if nobody could read it or wants to.
    pub events: Option<EventLog>,
    pub frames: Frames,
}

/// Null: not begun. [`off`]: no hooks in this process.
static WATCH: AtomicPtr<Watch> = AtomicPtr::new(ptr::null_mut());
static LOCK: Lock = Lock::new();
static OFF: AtomicBool = AtomicBool::new(false);

/// An address that is no watch.
fn off() -> *mut Watch {
    (&raw const OFF).cast_mut().cast()
}

/// The watch of this process; `None` where hooks are off.
#[inline(always)]
pub fn of_this_process() -> Option<&'static Watch> {
    // SYNC(watch-begin): whoever sees the watch sees its ledger and its tables.
    let watch = WATCH.load(Ordering::Acquire);
    if watch.is_null() {
        return begin();
    }
    // SAFETY: neither null nor off: a watch in the arena, which stays.
    (watch != off()).then(|| unsafe { &*watch })
}

/// Whether a call of CUDA has been looked at in this process.
pub fn is_begun() -> bool {
    !WATCH.load(Ordering::Acquire).is_null()
}

/// Something to note outside of a hook, if anybody watches; a panic in it ends here.
pub fn quietly(name: &'static str, work: impl FnOnce(&'static Watch)) {
    if let Some(watch) = of_this_process() {
        crate::entry::guarded(watch, name, || work(watch));
    }
}

#[cold]
fn begin() -> Option<&'static Watch> {
    // Not under the lock: the driver has locks of its own.
    let version = driver_version();
    let _held = LOCK.acquire()?;
    let present = WATCH.load(Ordering::Acquire);
    if !present.is_null() {
        // SAFETY: neither null nor off: a watch in the arena, which stays.
        return (present != off()).then(|| unsafe { &*present });
    }
    let variables = Variables::read();
    fault::read(&variables);
    let watch = if variables.disabled { None } else { open(&variables, version) };
    let address = watch.map_or(off(), |watch| ptr::from_ref(watch).cast_mut());
    // SYNC(watch-begin): pairs with the load in `of_this_process`.
    WATCH.store(address, Ordering::Release);
    fault::begun();
    watch
}

fn open(variables: &Variables, version: i32) -> Option<&'static Watch> {
    // A panic is caught where a hook is called; the message that Rust prints before is not ours to print.
    std::panic::set_hook(Box::new(|_| ()));
    let mut command = [0; 256];
    let command = command_line(&mut command);
    let (folder, stem) = (variables.run.or(variables.ledgers), Stem::now());
    let public = folder.map(|folder| match fault::disk() {
        true => Err(telemetry::Error::Make(rustix::io::Errno::NOSPC)),
        false => Ledger::create(folder, stem, command),
    });
    let events = match (folder, &public) {
        (Some(folder), Some(Ok(_))) if variables.events => Some(tenancy::event_log(folder, stem)),
        _ => None,
    };
    let ledger = match (public, folder) {
        (Some(Ok(ledger)), _) => ledger,
        (Some(Err(error)), Some(folder)) => {
            UnwrittenLedger::tell(folder, &error);
            say!("{error}; this process will be missing from the report");
            Ledger::private().ok()?
        }
        _ => Ledger::private().ok()?,
    };
    if let Some(Err(error)) = &events {
        ledger.note(Note::NoEvents);
        say!("{error}; this process will be missing from traces");
    }
    match next::behind() {
        Some(path) => ledger.driver(path.to_bytes(), version),
        None => ledger.note(Note::NoDriver),
    }
    let events = events.and_then(Result::ok);
    arena::place(Watch { ledger, events, frames: Frames::new(variables.may_ask_in_vain)? })
}

fn driver_version() -> i32 {
    let mut version = 0;
    // SAFETY: a place for the answer. The driver answers this before it is initialised.
    let result = unsafe { next::call::cuDriverGetVersion(&mut version) };
    if result == cuda_abi::CUDA_SUCCESS { version } else { 0 }
}

/// Takes hooks out of the way, for good: what failed once may fail again, and the program must not notice.
#[cold]
pub fn give_up(watch: &'static Watch, name: &'static str) {
    watch.ledger.note(Note::HooksOff);
    watch.ledger.detail(name.as_bytes());
    WATCH.store(off(), Ordering::Release);
    tenancy::retire();
    say!("the hook of {name} failed; ebb only forwards calls from now on");
}

/// In the child of a fork: no lock is held, nothing is known, no ledger is begun.
extern "C" fn in_child() {
    LOCK.reset();
    arena::in_child();
    heap::in_child();
    twins::in_child();
    channels::in_child();
    memory::in_child();
    tenancy::in_child();
    guard::in_child();
    if WATCH.load(Ordering::Relaxed) != off() {
        WATCH.store(ptr::null_mut(), Ordering::Relaxed);
    }
}

/// Has forks followed from now on.
pub fn follow_forks() {
    static FOLLOWED: AtomicBool = AtomicBool::new(false);
    if !FOLLOWED.swap(true, Ordering::Relaxed) {
        // SAFETY: a function that only stores to statics. Refused, it leaves forks that use CUDA uncounted.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}

/// The beginning of this process's command line, with spaces between the arguments.
pub fn command_line(buffer: &mut [u8; 256]) -> &[u8] {
    let path: &CStr = c"/proc/self/cmdline";
    let read = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .and_then(|file| rustix::io::read(file, &mut buffer[..]));
    let text = &mut buffer[..read.unwrap_or(0)];
    for byte in &mut *text {
        if *byte == 0 {
            *byte = b' ';
        }
    }
    text.trim_ascii_end()
}
