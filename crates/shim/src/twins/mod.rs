//! Twins: the rewritten kernels beside the program's own.
//!
//! A best-effort tenant of the shared domain launches, while somebody may want it to stop, not the kernel that the program
//! names but its *twin*, which has a prologue and one parameter more (`guard`). The program's own kernel stays as it was
//! loaded. To make a twin takes milliseconds to seconds: its image is found, unpacked, rewritten, loaded. That is the work
//! of the *smith*, a thread of this process. Until it has answered, and for kernels that it refuses, the original is
//! launched.
//!
//! * `wanted`: whether any of this may matter in this process
//! * `kept`: images, from the moment they are loaded; `piece`: the part of one that a device runs
//! * `place`: what a kernel's frame knows of its twin; `attributes`: what the program has set about it
//! * `queue`, `smith`: who makes twins; `forge`: how; `function`: what a context calls one
//! * `sample`: how long kernels take, and so how long they take to stop; `lately`: what of that is to be counted upon; `room`: how many
//!   blocks are on a GPU at once
//! * `sighting`, `tally`, `book`: what was seen of that, on its way to the profiles on disk, and what they know from earlier runs
//! * `cache`: rewritten images on disk; `demotions`: what was found out about kernels the hard way

mod attributes;
mod book;
mod cache;
mod demotions;
mod forge;
mod function;
mod kept;
mod lately;
mod piece;
mod place;
mod queue;
mod room;
pub mod sample;
mod sighting;
mod smith;
mod tally;
mod wanted;

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use cuda_abi::{CUDA_SUCCESS, CUdevice, CUfunc_cache, CUfunction, CUfunction_attribute, CUkernel};
use guard::{Parameter, Reason, Rule, Verdict};
use model::Nanos;

use crate::frames::{Frame, Module};
use crate::guard::driver;
use crate::{guard as runtime, next, watch};

pub use function::{Function, Home};
pub use kept::Kept;
pub use place::Place;
pub use smith::starve;
pub use wanted::are_wanted;

/// Whether kernels of this process were looked at and none of them can be stopped between blocks.
pub fn all_refused() -> bool {
    place::JUDGED.all_refused()
}

/// A kernel that can be stopped between its blocks.
pub struct Twin {
    /// A `CUkernel` of a library of ours.
    handle: usize,
    /// The kernel's own parameters, in order. The control words come behind them.
    pub parameters: &'static [Parameter],
    /// Where the control words lie in a packed buffer of parameters.
    pub control_offset: u32,
    /// Whether its launches and those of others like it may overlap.
    pub overlaps: bool,
    /// The kernel that the program knows.
    pub frame: &'static Frame,
    /// The number of its verdict, which may become stricter.
    verdict: AtomicU8,
    /// Whether it has been given what the program has set about the original.
    equipped: AtomicBool,
    /// What it is called in a context.
    pub function: Function,
}

impl Twin {
    fn new(
        handle: CUkernel,
        kernel: &guard::Kernel,
        parameters: &'static [Parameter],
        frame: &'static Frame,
        verdict: Verdict,
    ) -> Twin {
        Twin {
            handle: handle.addr(),
            parameters,
            control_offset: kernel.control_offset,
            overlaps: kernel.overlaps,
            frame,
            verdict: AtomicU8::new(verdict.number()),
            equipped: AtomicBool::new(false),
            function: Function::new(),
        }
    }

    /// What to launch in place of the original: a kernel of a library, which any context takes for a function.
    pub fn kernel(&self) -> CUfunction {
        ptr::without_provenance_mut(self.handle)
    }

    fn library_kernel(&self) -> CUkernel {
        ptr::without_provenance_mut(self.handle)
    }

    /// Before a launch: gives it what the program has set about the original so far; what is set later, `follow` gives it.
    /// Not the smith's work, because the driver wants to be asked in a context.
    #[inline]
    pub fn equip(&self) {
        // SYNC(equipped): who sees it equipped finds the driver told.
        if !self.equipped.load(Ordering::Acquire) {
            self.equip_now();
        }
    }

    #[cold]
    fn equip_now(&self) {
        self.frame.place.attributes.copy_to(self.library_kernel(), current_device());
        // SYNC(equipped): pairs with the load in `equip`.
        self.equipped.store(true, Ordering::Release);
    }

    /// Asks what it is called in the thread's context, which has this number.
    #[cold]
    pub fn find_function(&self, home: Home) {
        let mut function = ptr::null_mut();
        // SAFETY: a kernel of a library of ours, and a place for the answer.
        let result = driver::relaxed(|| unsafe {
            next::call::cuKernelGetFunction(&mut function, self.library_kernel())
        });
        self.function.put(home, (result == CUDA_SUCCESS && !function.is_null()).then_some(function));
    }

    /// The least strict rule under which it may be stopped.
    pub fn rule(&self) -> Rule {
        match Verdict::from_number(self.verdict.load(Ordering::Relaxed)) {
            Some(Verdict::Guard(rule)) => rule,
            _ => Rule::Ordered,
        }
    }
}

/// The twin of a kernel, if there is one by now. The first question for it has it made; nobody waits, but for tests that
/// want every launch guarded (`EBB_GUARD=now`).
#[inline]
pub fn of(frame: &'static Frame) -> Option<&'static Twin> {
    frame.place.twin().or_else(|| if frame.place.is_answered() { None } else { ask(frame) })
}

#[cold]
fn ask(frame: &'static Frame) -> Option<&'static Twin> {
    /// How long a test waits for the smith, who may have much to do.
    const PATIENCE: Nanos = Nanos::from_millis(60_000);
    if !are_wanted() {
        return None;
    }
    if frame.place.ask() {
        let device = current_device();
        {
            let _alone = runtime::alone();
            frame.place.attributes.learn(frame, device);
        }
        if smith::order(queue::Order::Make(frame)).is_none() {
            frame.place.unask();
        }
    }
    if wanted::at_once() {
        frame.place.wait(PATIENCE, smith::is_at_work);
    }
    frame.place.twin()
}

fn current_device() -> CUdevice {
    let mut device = 0;
    // SAFETY: a place for the answer.
    let result = unsafe { next::call::cuCtxGetDevice(&mut device) };
    if result == CUDA_SUCCESS { device } else { 0 }
}

/// Takes a twin out of use for good, in this process and in those to come. One whose blocks waited for others gets a second
/// chance, in order, if it had not been launched so.
pub fn demote(frame: &'static Frame, reason: Reason) {
    let stricter = match frame.place.twin().map(Twin::rule) {
        Some(Rule::Plain) if reason == Reason::WaitsForOthers => Verdict::Guard(Rule::Ordered),
        _ => Verdict::Refuse(reason),
    };
    frame.place.judge(stricter);
    watch::quietly("a demotion", |watch| {
        // The same kernel may go by several handles.
        watch.frames.each_function(|other| {
            if ptr::eq(other.module, frame.module) && other.name == frame.name && other.place.is_answered() {
                other.place.judge(stricter);
                entered(other);
            }
        });
    });
    // Not heard, it is not known to later runs, which find it out again.
    let _ = smith::order(queue::Order::Remember(frame));
}

/// Has the ledger say what is thought of a kernel.
fn entered(frame: &'static Frame) {
    let Some(verdict) = frame.place.verdict() else { return };
    watch::quietly("a verdict", |watch| {
        if let Some(kernel) = frame.learned(watch).and_then(|learned| learned.kernel) {
            kernel.judged(verdict.number());
        }
    });
}

/// Has the ledger say what earlier runs knew of a kernel's blocks, so that its certificate is not that of a stranger.
fn foreseen(frame: &'static Frame, block: Nanos, certificate: Nanos) {
    frame.place.lately.expect(sample::block_within(certificate));
    watch::quietly("a certificate", |watch| {
        if let Some(kernel) = frame.learned(watch).and_then(|learned| learned.kernel) {
            kernel.foreseen(block.0, certificate.0);
        }
    });
}

/// A launch of a kernel's twin was cut.
pub fn cut(frame: &'static Frame) {
    watch::quietly("a cut", |watch| {
        if let Some(kernel) = frame.learned(watch).and_then(|learned| learned.kernel) {
            kernel.cut(1);
        }
    });
}

/// A module is gone, and its kernels with it.
pub fn unloaded(module: &'static Module) {
    if are_wanted() {
        module.kept.forget();
        if smith::is_started() {
            // Not heard, the rewritten code stays loaded.
            let _ = smith::order(queue::Order::Forget(module));
        }
    }
}

/// The program has set an attribute of a kernel.
pub fn attribute_set(
    frame: &'static Frame,
    attribute: CUfunction_attribute,
    value: c_int,
    device: Option<CUdevice>,
) {
    if are_wanted() && frame.place.attributes.set(attribute, value) {
        follow(frame, device);
    }
}

/// The program has said how a kernel likes its caches.
pub fn cache_set(frame: &'static Frame, preference: CUfunc_cache, device: Option<CUdevice>) {
    if are_wanted() && frame.place.attributes.set_cache(preference) {
        follow(frame, device);
    }
}

fn follow(frame: &'static Frame, device: Option<CUdevice>) {
    if let Some(twin) = frame.place.twin() {
        frame.place.attributes.copy_to(twin.library_kernel(), device.unwrap_or_else(current_device));
    }
}

/// In the child of a fork, which has nothing loaded.
pub fn in_child() {
    kept::in_child();
    sample::in_child();
    smith::in_child();
}
