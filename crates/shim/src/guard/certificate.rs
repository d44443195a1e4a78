//! How long it takes to stop what is on the GPU, and what becomes of kernels that take longer than they promised.
//!
//! A kernel's *certificate* comes from launches that were timed (`twins::sample`), in this run or an earlier one; that of
//! the process, at any moment, is the longest among the launches of which it is not known that they are done. Every stop is held against it. Other things than
//! a block may delay a stop: a processor that was busy, a latency tenant's own kernels on the same SMs. What is decided here is remembered
//! for good, so it must not be decided by those: a promise counts as broken when it took many times as long, and a kernel is given up
//! after three of those with none kept between them. It is held from then on, as a whole.

use cuda_abi::CUdevice;
use guard::Reason;
use model::Nanos;

use super::lane::Lane;
use super::site::{self, Site};
use crate::frames::Frame;
use crate::log::say;
use crate::twins;
use crate::watch::{self, Watch};

/// What is assumed of a kernel that was not timed yet: most blocks are shorter.
const ASSUMED: Nanos = Nanos::from_micros(100);
/// A promise is broken when a stop took so many times as long, and longer than that by this.
const TIMES: u32 = 8;
const BEYOND: Nanos = Nanos::from_millis(50);
/// So many broken promises in a row are one too many.
const STRIKES: u8 = 3;
/// Of so many kernels is remembered how often they broke theirs.
const KNOWN: usize = 16;

/// What a stop is held against: the kernel in flight that takes longest.
#[derive(Clone, Copy)]
pub struct Promise {
    pub certificate: Nanos,
    frame: &'static Frame,
}

impl Promise {
    pub fn is_broken_by(&self, took: Nanos) -> bool {
        took > self.certificate.scaled(TIMES, 1) + BEYOND
    }
}

/// How long it takes to stop a kernel once it is told to.
pub fn of(frame: &'static Frame, watch: &Watch) -> Nanos {
    let kernel = frame.learned(watch).and_then(|learned| learned.kernel);
    kernel.and_then(|kernel| kernel.certificate_ns()).map_or(ASSUMED, Nanos)
}

/// The longest of what is in flight on a device, cut launches included; nought: nothing is.
pub fn in_flight(device: CUdevice) -> Nanos {
    let sites = site::places().iter().filter(|site| site.device() == device);
    let promised = sites.filter_map(|site| {
        let _held = site.hold()?;
        slowest(site)
    });
    promised.map(|promise| promise.certificate).max().unwrap_or(Nanos::ZERO)
}

/// The launch in flight that takes longest to stop. The site is held.
pub fn slowest(site: &'static Site) -> Option<Promise> {
    let watch = watch::of_this_process()?;
    let of_lane = |lane: Lane| {
        let _held = lane.lock()?;
        lane.free();
        let ring = &lane.state().ring;
        let promises = ring.records().map(|at| {
            let frame = ring.frame(at);
            Promise { certificate: of(frame, watch), frame }
        });
        promises.max_by_key(|promise| promise.certificate)
    };
    site.lanes().filter_map(of_lane).max_by_key(|promise| promise.certificate)
}

/// Which kernels broke their promises, and how often.
pub struct Strikes([Option<(&'static Frame, u8)>; KNOWN]);

impl Strikes {
    pub const fn new() -> Strikes {
        Strikes([None; KNOWN])
    }

    /// A stop took so long. Whether that broke a promise.
    pub fn judge(&mut self, promise: &Promise, took: Nanos) -> bool {
        let broken = promise.is_broken_by(took);
        promise.frame.place.count_stop(broken);
        if !broken {
            self.forgive(promise.frame);
            return false;
        }
        if self.strike(promise.frame) == STRIKES {
            say!("a kernel that stops within {} took {took}, not for the first time", promise.certificate);
            twins::demote(promise.frame, Reason::BrokeCertificate);
        }
        true
    }

    fn forgive(&mut self, frame: &'static Frame) {
        self.0.iter_mut().for_each(|known| *known = known.filter(|(other, _)| !std::ptr::eq(*other, frame)));
    }

    fn strike(&mut self, frame: &'static Frame) -> u8 {
        let is_known =
            |known: &Option<(&'static Frame, u8)>| known.is_some_and(|(other, _)| std::ptr::eq(other, frame));
        // Where there is no room the one with the fewest makes it.
        let fewest = |known: &Option<(&'static Frame, u8)>| known.map_or(0, |(_, count)| count);
        let place = self.0.iter().position(is_known);
        let place = place.or_else(|| (0..KNOWN).min_by_key(|&place| fewest(&self.0[place]))).unwrap_or(0);
        let count = if is_known(&self.0[place]) { fewest(&self.0[place]) } else { 0 };
        let count = count.saturating_add(1);
        self.0[place] = Some((frame, count));
        count
    }
}
