//! A site: one context in which launches are guarded.
//!
//! Streams, device memory and twins belong to contexts, so everything that stopping needs is made once for each. Programs
//! have one context, some a few; what they do in more than there are sites for is not guarded, only held.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use cuda_abi::CUdevice;
use telemetry::Note;

use super::control::{Control, LANES};
use super::driver;
use super::lane::{Lane, State};
use super::marks::Marks;
use super::set::Set;
use super::siding::{self, Siding};
use crate::lock::{Held, Lock};
use crate::log::say;
use crate::tenancy::key::Key;
use crate::twins::Home;
use crate::watch;

pub const SITES: usize = 8;

static ALL: [Site; SITES] = {
    let mut all = [const { Site::new(0) }; SITES];
    let mut place = 0;
    while place < SITES {
        all[place].place = place as u32;
        place += 1;
    }
    all
};
/// So many places were ever taken. Zero in a process that guards nothing.
static USED: AtomicUsize = AtomicUsize::new(0);
static LOCK: Lock = Lock::new();

/// A context whose site could not be made is not tried again.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

pub struct Site {
    /// Its index among all.
    place: u32,
    /// Zero: nobody's.
    context: AtomicUsize,
    device: AtomicI32,
    /// Another number for every context that was ever here.
    generation: AtomicU32,
    /// Held by whoever stops and resumes, and by whoever ends the site.
    lock: Lock,
    /// Nothing goes on before somebody resumes it.
    stopped: AtomicBool,
    /// Counts launches: the lower half is the serial, the upper the era.
    launches: AtomicU64,
    pub control: Control,
    pub siding: Siding,
    pub marks: Marks,
    pub lanes: [State; LANES],
    /// The lanes that are some stream's.
    pub used: Set,
    /// The lanes that have launches without a gate behind them.
    pub ungated: Set,
}

/// All sites that are in use.
pub fn all() -> impl Iterator<Item = &'static Site> {
    used().iter().filter(|site| site.context() != 0)
}

#[inline]
fn used() -> &'static [Site] {
    // SYNC(sites): pairs with the store in `make`.
    &ALL[..USED.load(Ordering::Acquire)]
}

/// The places of sites, whether they are in use or not.
pub fn places() -> &'static [Site; SITES] {
    &ALL
}

/// Whether there has been a site.
#[inline(always)]
pub fn any() -> bool {
    USED.load(Ordering::Relaxed) != 0
}

/// The site of a context, if there is one.
#[inline]
pub fn of(context: usize) -> Option<&'static Site> {
    used().iter().find(|site| context != 0 && site.context() == context)
}

/// Whether the context of that number is there.
pub fn is_there(home: Home) -> bool {
    all().any(|site| site.home() == home)
}

/// The site of a context, which is current in the calling thread. It is made if there is none.
pub fn make(context: usize) -> Option<&'static Site> {
    if let Some(site) = of(context) {
        return Some(site);
    }
    if context == 0 || REFUSED.load(Ordering::Relaxed) == context {
        return None;
    }
    let _held = LOCK.acquire()?;
    if let Some(site) = of(context) {
        return Some(site);
    }
    let (place, site) = ALL.iter().enumerate().find(|(_, site)| site.context() == 0)?;
    let _alone = super::alone();
    if driver::relaxed(|| site.open(context)).is_none() {
        REFUSED.store(context, Ordering::Relaxed);
        say!("there is no memory for the guard; launches are not guarded in this context");
        watch::quietly("guard", |watch| watch.ledger.note(Note::OutOfMemory));
        return None;
    }
    // SYNC(sites): whoever counts the site sees it made.
    USED.store(USED.load(Ordering::Relaxed).max(place + 1), Ordering::Release);
    Some(site)
}

impl Site {
    const fn new(place: u32) -> Site {
        Site {
            place,
            context: AtomicUsize::new(0),
            device: AtomicI32::new(-1),
            generation: AtomicU32::new(0),
            lock: Lock::new(),
            stopped: AtomicBool::new(false),
            launches: AtomicU64::new(0),
            control: Control::new(),
            siding: Siding::new(),
            marks: Marks::new(),
            lanes: [const { State::new() }; LANES],
            used: Set::new(),
            ungated: Set::new(),
        }
    }

    fn open(&self, context: usize) -> Option<()> {
        let device = driver::current_device()?;
        self.control.make()?;
        if self.marks.make().is_none() {
            self.control.unmake();
            return None;
        }
        self.device.store(device, Ordering::Relaxed);
        self.generation.fetch_add(1, Ordering::Relaxed);
        self.set_stopped(false);
        // The first serial is 1, in the first era.
        self.launches.store(1 << 32, Ordering::Relaxed);
        // SYNC(site-open): whoever finds the context finds its memory.
        self.context.store(context, Ordering::Release);
        Some(())
    }

    #[inline]
    pub fn context(&self) -> usize {
        // SYNC(site-open): pairs with the store in `open`.
        self.context.load(Ordering::Acquire)
    }

    pub fn device(&self) -> CUdevice {
        self.device.load(Ordering::Relaxed)
    }

    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// A number that no other context ever has: the place, counted from one, and how many contexts were here before.
    #[inline]
    pub fn home(&self) -> Home {
        u64::from(self.place + 1) << 32 | u64::from(self.generation())
    }

    pub fn set_stopped(&self, stopped: bool) {
        self.stopped.store(stopped, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Keeps others from stopping, resuming and ending; `None` when there is no site here.
    pub fn hold(&self) -> Option<Held<'_>> {
        let held = self.lock.acquire()?;
        (self.context() != 0).then_some(held)
    }

    /// Ends the site: its context is about to end. Everything in it was waited for.
    pub fn close(&'static self) {
        let Some(_held) = self.lock.acquire() else { return };
        let context = self.context.swap(0, Ordering::AcqRel);
        if context == 0 {
            return;
        }
        self.lanes().for_each(Lane::forget);
        let _ = driver::within(context, || {
            siding::end(self);
            self.control.unmake();
            self.marks.unmake();
            Some(())
        });
    }

    /// The number of the next launch, and the era in which no other has it. Zero is no number.
    pub fn next_serial(&self) -> (u32, u32) {
        loop {
            let count = self.launches.fetch_add(1, Ordering::Relaxed);
            let (serial, era) = (count as u32, (count >> 32) as u32);
            if serial != 0 {
                return (serial, era);
            }
        }
    }

    /// The lanes that are in use.
    pub fn lanes(&'static self) -> impl Iterator<Item = Lane> {
        self.used.all().map(move |number| Lane::at(self, number)).filter(|lane| lane.is_used())
    }

    #[inline]
    pub fn lane(&'static self, key: Key) -> Option<Lane> {
        Lane::near(self, key).find(|lane| lane.key() == key)
    }
}

/// A context ends, or all of a device.
pub fn close(meant: impl Fn(&Site) -> bool) {
    all().filter(|site| meant(site)).for_each(Site::close);
    REFUSED.store(0, Ordering::Relaxed);
}

/// In the child of a fork, which has none of the parent's contexts.
pub fn in_child() {
    LOCK.reset();
    for site in &ALL {
        site.context.store(0, Ordering::Relaxed);
        site.lock.reset();
        site.control.forget();
        site.siding.forget();
        site.marks.forget();
        site.lanes.iter().for_each(State::in_child);
        site.used.clear();
        site.ungated.clear();
    }
    USED.store(0, Ordering::Relaxed);
    REFUSED.store(0, Ordering::Relaxed);
}
