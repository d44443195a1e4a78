//! The siding: a stream whose kernels stay on some of the SMs.
//!
//! While a latency tenant has work and bears it (`policy::confine`), what was turned away is made again here instead of waiting for
//! the end of that work. The stream is one of a green context, which is official and needs no right; libraries see the
//! same GPU as ever, so that they choose the same kernels. A green context is a part of the device's primary one, with which it shares
//! memory and code, so there is no siding for any other.
//!
//! To make one takes the driver a millisecond or two, for which it may bring the GPU to rest. So it is made by a thread of the
//! program, between two of its launches, with nothing guarded under way; and once for each number of SMs that is asked for.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use cuda_abi::{
    CU_DEV_RESOURCE_TYPE_SM, CU_GREEN_CTX_DEFAULT_STREAM, CUcontext, CUdevResource, CUdevResourceDesc,
    CUdevice, CUgreenCtx, CUstream,
};

use super::control::Own;
use super::driver::{self, ok};
use super::site::Site;
use crate::log::say;
use crate::next;

/// On how many SMs, in hundredths, launches are to be made that may not run otherwise. Nought: on none, and what there is stays.
static WANTED: AtomicU32 = AtomicU32::new(0);

pub fn want(share: u32) {
    WANTED.store(share, Ordering::Relaxed);
}

/// What a site has of it.
pub struct Siding {
    green: AtomicUsize,
    /// How many SMs were asked for, in hundredths; nought: there is none.
    share: AtomicU32,
    /// This driver, or this GPU, has none to give.
    refused: AtomicBool,
}

impl Siding {
    pub const fn new() -> Siding {
        Siding { green: AtomicUsize::new(0), share: AtomicU32::new(0), refused: AtomicBool::new(false) }
    }

    pub fn is_there(&self) -> bool {
        self.share.load(Ordering::Relaxed) != 0 && !self.refused.load(Ordering::Relaxed)
    }

    /// The driver did not take a launch there. It is not asked again.
    pub fn refuse(&self) {
        if !self.refused.swap(true, Ordering::Relaxed) {
            say!("kernels cannot be kept on some of the SMs here; they wait instead");
        }
    }

    fn is_as_wanted(&self) -> bool {
        let wanted = WANTED.load(Ordering::Relaxed);
        wanted == 0 || wanted == self.share.load(Ordering::Relaxed) || self.refused.load(Ordering::Relaxed)
    }

    /// The context has ended, or is the parent's.
    pub fn forget(&self) {
        self.green.store(0, Ordering::Relaxed);
        self.share.store(0, Ordering::Relaxed);
        self.refused.store(false, Ordering::Relaxed);
    }
}

/// A thread is about to make a guarded launch in this site. Two loads, mostly.
#[inline]
pub fn prepare(site: &'static Site) {
    if !site.siding.is_as_wanted() {
        make(site);
    }
}

#[cold]
fn make(site: &'static Site) {
    let _alone = super::alone();
    // Another thread may have done it meanwhile.
    let share = WANTED.load(Ordering::Relaxed);
    if site.siding.is_as_wanted() {
        return;
    }
    let track = || is_primary(site).then(|| Track::make(site.device(), share)).flatten();
    let made = driver::within(site.context(), || driver::relaxed(track));
    let Some(track) = made else {
        site.siding.refuse();
        return;
    };
    let old = lay(site, track, share).unwrap_or(track);
    let _ = driver::within(site.context(), || {
        driver::relaxed(|| old.unmake());
        Some(())
    });
}

/// Whether the site's context is the one that libraries share.
fn is_primary(site: &Site) -> bool {
    let (device, mut flags, mut active) = (site.device(), 0, 0);
    // SAFETY: places for the answers.
    let asked = unsafe { next::call::cuDevicePrimaryCtxGetState(device, &mut flags, &mut active) };
    if ok(asked).is_none() || active == 0 {
        return false;
    }
    let mut primary: CUcontext = ptr::null_mut();
    // SAFETY: a place for the answer. It is there already, so nothing is made.
    if ok(unsafe { next::call::cuDevicePrimaryCtxRetain(&mut primary, device) }).is_none() {
        return false;
    }
    // SAFETY: retained a moment ago.
    let _ = unsafe { next::call::cuDevicePrimaryCtxRelease_v2(device) };
    primary.expose_provenance() == site.context()
}

/// Puts a new one in the place of the old, which is given back; `None`: something is under way there.
fn lay(site: &'static Site, track: Track, share: u32) -> Option<Track> {
    let _held = site.hold()?;
    if !site.control.has_done_all(Own::Siding) {
        return None;
    }
    let stream = site.control.put_stream(Own::Siding, track.stream);
    let green = site.siding.green.swap(track.green.expose_provenance(), Ordering::Relaxed);
    site.siding.share.store(share, Ordering::Relaxed);
    Some(Track { green: ptr::with_exposed_provenance_mut(green), stream })
}

/// The site's context is about to end.
pub fn end(site: &Site) {
    let green = ptr::with_exposed_provenance_mut(site.siding.green.load(Ordering::Relaxed));
    Track { green, stream: site.control.put_stream(Own::Siding, ptr::null_mut()) }.unmake();
    site.siding.forget();
}

/// A green context and the stream in it.
#[derive(Clone, Copy)]
struct Track {
    green: CUgreenCtx,
    stream: CUstream,
}

impl Track {
    /// In the calling thread's context, with so many hundredths of the SMs of its device.
    fn make(device: CUdevice, share: u32) -> Option<Track> {
        let [mut all, mut some, mut rest] = [CUdevResource::default(); 3];
        // SAFETY: a place for the answer.
        ok(unsafe { next::call::cuDeviceGetDevResource(device, &mut all, CU_DEV_RESOURCE_TYPE_SM) })?;
        // SAFETY: the driver has filled in what it said it would.
        let sms = unsafe { all.__bindgen_anon_1.sm }.smCount;
        let (mut groups, count) = (1, (sms * share / 100).max(1));
        // SAFETY: places for one group, for the rest and for how many there are.
        ok(unsafe {
            next::call::cuDevSmResourceSplitByCount(&mut some, &mut groups, &all, &mut rest, 0, count)
        })?;
        let mut described: CUdevResourceDesc = ptr::null_mut();
        // SAFETY: one resource, as the driver has made it, and a place for the answer.
        ok(unsafe { next::call::cuDevResourceGenerateDesc(&mut described, &mut some, 1) })?;
        let mut green: CUgreenCtx = ptr::null_mut();
        let flags = CU_GREEN_CTX_DEFAULT_STREAM.0;
        // SAFETY: a description that was just made, and a place for the answer.
        ok(unsafe { next::call::cuGreenCtxCreate(&mut green, described, device, flags) })?;
        let mut track = Track { green, stream: ptr::null_mut() };
        if track.make_stream().is_none() {
            track.unmake();
            return None;
        }
        Some(track)
    }

    fn make_stream(&mut self) -> Option<()> {
        const NON_BLOCKING: u32 = 1;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: places for the answers.
        ok(unsafe { next::call::cuCtxGetStreamPriorityRange(&mut least, &mut greatest) })?;
        // Like the helper's: of another priority than most streams of programs, so that it does not stand behind them.
        let priority = (least - 1).max(greatest);
        // SAFETY: a green context that was just made, and a place for the answer.
        ok(unsafe {
            next::call::cuGreenCtxStreamCreate(&mut self.stream, self.green, NON_BLOCKING, priority)
        })
    }

    fn unmake(self) {
        if !self.stream.is_null() {
            // SAFETY: our own stream, which nobody uses any more.
            let _ = unsafe { next::call::cuStreamDestroy_v2(self.stream) };
        }
        if !self.green.is_null() {
            // SAFETY: our own green context, which nobody uses any more.
            let _ = unsafe { next::call::cuGreenCtxDestroy(self.green) };
        }
    }
}
