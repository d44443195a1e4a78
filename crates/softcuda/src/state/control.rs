//! Controls on the contexts of this process, all at once.
//!
//! NVIDIA's driver has controls for a channel group: its timeslice, preempt, disable, enable. A library in front of
//! this driver asks for the same on the contexts here. What is set also holds for contexts made later, so it may be
//! said before there is one, even before `cuInit`. A fork starts without any of it, as it starts without contexts.

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use model::Nanos;
use softgpu::card::{self, Card};

use super::driver::{self, Driver};
use super::lock;

/// What later contexts get, in nanoseconds; 0: what the card gives.
static TIMESLICE: AtomicU64 = AtomicU64::new(0);
/// Whether later contexts start disabled.
static DISABLED: AtomicBool = AtomicBool::new(false);

/// A slice longer than this is a mistake in the unit.
const LONGEST_SLICE: Nanos = Nanos::from_millis(10_000);

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    Count,
    Timeslice,
    SetTimeslice(Nanos),
    Preempt,
    Disable,
    Enable,
    /// A new descriptor of a file on which best-effort tenants of this card meet: 0 the lock, 1 the queue before it.
    LockFile(usize),
    /// A new descriptor of the card's own file, open for reading and writing: it shows that its owner may use the card.
    CardFile,
}

/// Why nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such control, or not with this value.
    Unknown,
    /// Only a card could say, and there is none before `cuInit`.
    NoCard,
}

impl Refusal {
    /// As the kernel says it.
    pub fn errno(self) -> i32 {
        match self {
            Refusal::Unknown => -libc::EINVAL,
            Refusal::NoCard => -libc::ENODEV,
        }
    }
}

impl Control {
    /// A control by its number in C.
    pub fn numbered(operation: u32, value: u64) -> Result<Control, Refusal> {
        match operation {
            0 => Ok(Control::Count),
            1 => Ok(Control::Timeslice),
            2 if (1..=LONGEST_SLICE.0).contains(&value) => Ok(Control::SetTimeslice(Nanos(value))),
            3 => Ok(Control::Preempt),
            4 => Ok(Control::Disable),
            5 => Ok(Control::Enable),
            6 if value < 2 => Ok(Control::LockFile(usize::from(value == 1))),
            7 if value == 0 => Ok(Control::CardFile),
            _ => Err(Refusal::Unknown),
        }
    }

    /// Does it. The answer is the timeslice where that was asked for, otherwise how many contexts there are.
    pub fn perform(self) -> Result<u64, Refusal> {
        let driver = driver::running();
        match self {
            Control::Timeslice => return timeslice(driver),
            Control::LockFile(which) => return descriptor(driver, |card| card.lock_file(which).ok()),
            Control::CardFile => return descriptor(driver, |card| card.open_again().ok()),
            Control::SetTimeslice(slice) => remember(|| TIMESLICE.store(slice.0, Ordering::Relaxed)),
            Control::Disable => remember(|| DISABLED.store(true, Ordering::Relaxed)),
            Control::Enable => remember(|| DISABLED.store(false, Ordering::Relaxed)),
            Control::Count | Control::Preempt => {}
        }
        Ok(driver.map_or(0, |driver| self.impose(driver)))
    }

    /// Does it to the contexts there are, and gives their number.
    fn impose(self, driver: &Driver) -> u64 {
        // Whoever comes last reads, under the lock, what was remembered last: requests of two threads do not mix, and
        // a context made meanwhile gets the same by `adopt`.
        let _one_at_a_time = lock(&driver.controls);
        let contexts = driver.card.own_contexts();
        for &context in &contexts {
            // A context that was destroyed since the list was made needs nothing any more.
            let _ = match self {
                Control::Count | Control::Timeslice | Control::LockFile(_) | Control::CardFile => Ok(()),
                Control::SetTimeslice(_) => impose_timeslice(&driver.card, context),
                Control::Preempt => driver.card.preempt(context),
                Control::Disable | Control::Enable => match DISABLED.load(Ordering::Relaxed) {
                    true => driver.card.disable(context),
                    false => driver.card.enable(context),
                },
            };
        }
        contexts.len() as u64
    }
}

/// Gives a new context what was set before it was there.
pub fn adopt(driver: &Driver, context: u64) {
    let _one_at_a_time = lock(&driver.controls);
    // It is new and its handle is not out yet, so it cannot be gone.
    let _ = impose_timeslice(&driver.card, context);
    if DISABLED.load(Ordering::Relaxed) {
        let _ = driver.card.disable(context);
    }
}

fn impose_timeslice(card: &Card, context: u64) -> Result<(), card::Error> {
    match TIMESLICE.load(Ordering::Relaxed) {
        0 => Ok(()),
        slice => card.set_timeslice(context, Nanos(slice)),
    }
}

/// A file of the card as a number that is the caller's from now on.
fn descriptor(driver: Option<&Driver>, open: impl Fn(&Card) -> Option<File>) -> Result<u64, Refusal> {
    let file = driver.and_then(|driver| open(&driver.card)).ok_or(Refusal::NoCard)?;
    u64::try_from(std::os::fd::IntoRawFd::into_raw_fd(file)).map_err(|_| Refusal::NoCard)
}

/// That of the first context, or the one that the next context will have.
fn timeslice(driver: Option<&Driver>) -> Result<u64, Refusal> {
    let first = driver.and_then(|driver| {
        let contexts = driver.card.own_contexts();
        contexts.iter().find_map(|&context| driver.card.timeslice(context).ok())
    });
    let remembered = match TIMESLICE.load(Ordering::Relaxed) {
        0 => driver.map(|driver| driver.card.default_timeslice()),
        slice => Some(Nanos(slice)),
    };
    first.or(remembered).map(|slice| slice.0).ok_or(Refusal::NoCard)
}

/// Remembers something for the contexts of this process, not of its forks.
fn remember(store: impl FnOnce()) {
    extern "C" fn in_child() {
        TIMESLICE.store(0, Ordering::Relaxed);
        DISABLED.store(false, Ordering::Relaxed);
    }
    static WATCHING: AtomicBool = AtomicBool::new(false);
    // No lock, not even a `Once`: a fork in the middle of it would find it taken for ever.
    if !WATCHING.swap(true, Ordering::Relaxed) {
        // SAFETY: the handler only stores to statics; it lives as long as the library, which is never unloaded.
        let registered = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        debug_assert_eq!(registered, 0, "there is room for one more handler");
    }
    store();
}
