//! Calls for which the driver may bring the GPU to rest.
//!
//! The driver loads code when it is first used, and then, as when memory is allocated, it may wait for everything that
//! runs in the context, holding locks. A launch that is cut does not end before it is resumed, and whoever resumes it would
//! stand before these locks. So such a call is made while no guarded launch is under way, and none begins before the call
//! has returned. (Seen on an H200: the first use of a kernel beside a cut one never came back.)

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use cuda_abi::{CUfunction, CUkernel};
use model::Nanos;

use super::{order, site};
use crate::frames::Frame;
use crate::watch;

/// Calls under way that must be alone, and guarded launches under way.
static ALONE: AtomicU32 = AtomicU32::new(0);
static ENTERING: AtomicU32 = AtomicU32::new(0);

/// What runs and is not cut may be waiting for the program itself, which is waiting here.
const AT_MOST: Nanos = Nanos::from_millis(1_000);

/// When a call may bring the GPU to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    Never,
    Always,
    /// When it is first made: it may use kernels of the driver's own.
    First,
    /// When it is the first about a kernel.
    Kernel,
}

const ALWAYS: &[&str] = &[
    "cuModuleLoad",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuModuleGetGlobal",
    "cuModuleEnumerate",
    "cuLibraryLoad",
    "cuLibraryUnload",
    "cuLibraryGet",
    "cuLibraryEnumerate",
    "cuLink",
    "cuMemAlloc",
    "cuMemHostAlloc",
    "cuMemHostRegister",
    "cuMemFree",
    "cuMemHostUnregister",
    "cuMemCreate",
    "cuMemRelease",
    "cuMemMap",
    "cuMemUnmap",
    "cuMemSetAccess",
    "cuMemAddressReserve",
    "cuMemAddressFree",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemPoolTrimTo",
    "cuArray",
    "cuMipmappedArray",
    "cuTex",
    "cuSurf",
    "cuIpc",
    "cuImportExternal",
    "cuDestroyExternal",
    "cuStreamCreate",
    "cuStreamDestroy",
    "cuGreenCtx",
    "cuCtxCreate",
    "cuCtxDestroy",
    "cuCtxDetach",
    "cuCtxSetLimit",
    "cuCtxReset",
    "cuDevicePrimaryCtxRelease",
    "cuDevicePrimaryCtxReset",
    "cuGraphInstantiate",
    "cuGraphUpload",
    "cuGraphLaunch",
    "cuGraphExec",
];

const ABOUT_KERNELS: &[&str] = &["cuFunc", "cuKernel", "cuOccupancy"];
const WORK: &[&str] = &["cuMemcpy", "cuMemset", "cuMemPrefetch", "cuMemDiscard", "cuLaunchHostFunc"];

/// When the function of that name may bring the GPU to rest. Launches see to it themselves.
pub const fn rest(name: &str) -> Rest {
    if order::contains(name, "Async") || order::begins_one(name, WORK) {
        Rest::First
    } else if order::begins_one(name, ALWAYS) {
        Rest::Always
    } else if order::begins_one(name, ABOUT_KERNELS) {
        Rest::Kernel
    } else {
        Rest::Never
    }
}

/// Whether a function was called before.
pub struct Called(AtomicBool);

impl Called {
    pub const fn new() -> Called {
        Called(AtomicBool::new(false))
    }
}

/// For as long as it is there, no guarded launch is under way.
pub struct Alone(());

impl Drop for Alone {
    fn drop(&mut self) {
        ALONE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A thread that is about to make a guarded launch.
pub struct Entering(());

impl Entering {
    /// `None` while a call must be alone.
    ///
    /// SYNC(alone): a launch counts itself, then looks for calls that must be alone; such a call counts itself, then
    /// looks for launches. All four in one order, so one of the two sees the other.
    #[inline]
    pub fn begin() -> Option<Entering> {
        ENTERING.fetch_add(1, Ordering::SeqCst);
        let entering = Entering(());
        (ALONE.load(Ordering::SeqCst) == 0).then_some(entering)
    }
}

impl Drop for Entering {
    fn drop(&mut self) {
        ENTERING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A call is about to be made. One load while nothing was ever guarded.
#[inline(always)]
pub fn before<const N: usize>(rest: Rest, called: &Called, kernels: [Option<usize>; N]) -> Option<Alone> {
    if rest == Rest::Never || !site::any() { None } else { see_to(rest, called, &kernels) }
}

#[cold]
fn see_to(rest: Rest, called: &Called, kernels: &[Option<usize>]) -> Option<Alone> {
    let needed = match rest {
        Rest::Never => false,
        Rest::Always => true,
        Rest::First => is_new(&called.0),
        Rest::Kernel => kernels.iter().flatten().any(|handle| match frame(*handle) {
            Some(frame) => is_new(&frame.uses.asked),
            None => is_new(&called.0),
        }),
    };
    needed.then(alone)
}

/// The kernel that an argument is, if it is one. The type decides, so nothing is left of this when the call is compiled.
#[inline(always)]
pub fn kernel_in<T: Any>(argument: &T) -> Option<usize> {
    let argument = argument as &dyn Any;
    let function = argument.downcast_ref::<CUfunction>().map(|function| function.addr());
    function.or_else(|| argument.downcast_ref::<CUkernel>().map(|kernel| kernel.addr()))
}

/// What has been done with a kernel once, so that its code is loaded.
pub struct Uses {
    asked: AtomicBool,
    launched: AtomicBool,
    twin_launched: AtomicBool,
}

impl Uses {
    pub const fn new() -> Uses {
        Uses {
            asked: AtomicBool::new(false),
            launched: AtomicBool::new(false),
            twin_launched: AtomicBool::new(false),
        }
    }
}

fn frame(handle: usize) -> Option<&'static Frame> {
    watch::of_this_process()?.frames.function(handle)
}

#[inline]
fn is_new(used: &AtomicBool) -> bool {
    // Read before written: threads that launch the same kernel need not fight for the line.
    !used.load(Ordering::Relaxed) && !used.swap(true, Ordering::Relaxed)
}

/// Waits until no guarded launch is under way, and lets none begin.
pub fn alone() -> Alone {
    // SYNC(alone): see `Entering::begin`.
    ALONE.fetch_add(1, Ordering::SeqCst);
    let alone = Alone(());
    let began = board::now();
    while ENTERING.load(Ordering::SeqCst) != 0 && board::now().since(began) < AT_MOST {
        std::thread::yield_now();
    }
    order::gate_all();
    let mut patience = AT_MOST;
    order::lanes().for_each(|lane| lane.wait_for_rest(lane.gates(), &mut patience));
    alone
}

/// An ordinary launch is about to be made, of a kernel that may not have been loaded yet.
#[inline(always)]
pub fn before_launch(function: CUfunction) -> Option<Alone> {
    if !site::any() {
        return None;
    }
    // Of a kernel that nobody knows it may always be the first launch.
    let new = frame(function.addr()).is_none_or(|frame| is_new(&frame.uses.launched));
    new.then(alone)
}

/// What a guarded launch is made under.
pub enum Under {
    Entering { _entering: Entering },
    Alone { _alone: Alone },
}

/// A twin is about to be launched, and perhaps asked about before; `None` while a call must be alone.
#[inline]
pub fn before_twin(frame: &Frame, asked_about: bool) -> Option<Under> {
    if is_new(&frame.uses.twin_launched) || asked_about {
        return Some(Under::Alone { _alone: alone() });
    }
    Entering::begin().map(|entering| Under::Entering { _entering: entering })
}

/// In the child of a fork.
pub fn in_child() {
    ALONE.store(0, Ordering::Relaxed);
    ENTERING.store(0, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_loads_code_or_memory_is_alone() {
        for name in ["cuModuleGetFunction", "cuLibraryLoadData", "cuMemAlloc_v2", "cuGraphLaunch_ptsz"] {
            assert_eq!(rest(name), Rest::Always, "{name}");
        }
        for name in ["cuOccupancyMaxPotentialClusterSize", "cuFuncGetAttribute", "cuKernelGetFunction"] {
            assert_eq!(rest(name), Rest::Kernel, "{name}");
        }
        for name in ["cuMemsetD32Async", "cuMemAllocAsync_ptsz", "cuMemcpyDtoH_v2"] {
            assert_eq!(rest(name), Rest::First, "{name}");
        }
        for name in ["cuLaunchKernel", "cuStreamSynchronize", "cuEventRecord", "cuCtxGetCurrent"] {
            assert_eq!(rest(name), Rest::Never, "{name}");
        }
    }

    #[test]
    fn no_launch_is_entered_while_somebody_is_alone() {
        let alone = alone();
        assert!(Entering::begin().is_none());
        drop(alone);
        assert!(Entering::begin().is_some());
    }
}
