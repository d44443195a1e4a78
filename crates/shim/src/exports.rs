//! The symbols of the library.
//!
//! Every function of the driver is exported and forwarded. One that hands over work passes the gate first (`tenancy`); one
//! that may meet kernels which were cut has them completed first (`guard`). After the call, its hook looks on, if it has
//! one; where it has none (`entry::Unwatched`) nothing is left of that line, and the function is a load and a jump.

#![allow(non_snake_case, clippy::too_many_arguments)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use cuda_abi::{CUresult, Function};

use crate::entry::{self, Raw};
use crate::hooks::{self, seen};
use crate::memory::management;
use crate::{guard, tenancy};

/// What a call does: it goes to the driver, but for those that are answered here. A named import hides a glob.
mod chosen {
    pub use crate::address::{cuGetProcAddress, cuGetProcAddress_v2};
    pub use crate::guard::launch::{
        cuLaunchKernel, cuLaunchKernel_ptsz, cuLaunchKernelEx, cuLaunchKernelEx_ptsz,
    };
    pub use crate::memory::calls::{
        cuArray3DCreate, cuArray3DCreate_v2, cuArrayCreate, cuArrayCreate_v2, cuArrayDestroy, cuMemAlloc,
        cuMemAlloc_v2, cuMemAllocAsync, cuMemAllocAsync_ptsz, cuMemAllocFromPoolAsync,
        cuMemAllocFromPoolAsync_ptsz, cuMemAllocManaged, cuMemAllocPitch, cuMemAllocPitch_v2, cuMemCreate,
        cuMemFree, cuMemFree_v2, cuMemFreeAsync, cuMemFreeAsync_ptsz, cuMemMap, cuMemPoolCreate,
        cuMemPoolDestroy, cuMemRelease, cuMemRetainAllocationHandle, cuMemUnmap, cuMipmappedArrayCreate,
        cuMipmappedArrayDestroy,
    };
    pub use crate::memory::view::{cuDeviceTotalMem, cuDeviceTotalMem_v2, cuMemGetInfo, cuMemGetInfo_v2};
    pub use crate::next::call::*;
    pub use crate::tenancy::around::{
        cuCtxDestroy, cuCtxDestroy_v2, cuCtxDetach, cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2,
        cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, cuStreamBeginCapture, cuStreamBeginCapture_ptsz,
        cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz, cuStreamBeginCaptureToCig,
        cuStreamBeginCaptureToCig_ptsz, cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz,
        cuStreamBeginRecaptureToGraph, cuStreamBeginRecaptureToGraph_ptsz, cuStreamDestroy,
        cuStreamDestroy_v2, cuStreamEndCapture, cuStreamEndCapture_ptsz, cuStreamEndCaptureToCig,
        cuStreamEndCaptureToCig_ptsz,
    };
    pub use crate::tenancy::priority::{cuStreamCreate, cuStreamCreateWithPriority};
}

macro_rules! export_each {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        $(
            /// # Safety
            /// As the driver's manual says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name($($arg: $type),*) -> CUresult {
                let _inside = match const { hooks::hands_over_work(stringify!($name)) } {
                    true => {
                        let per_thread = const { hooks::is_per_thread(stringify!($name)) };
                        let streams = || [$(guard::stream_in(&$arg)),*];
                        tenancy::admit(
                            const { hooks::work(stringify!($name)) },
                            || guard::could_hold(per_thread, streams()),
                            || guard::hold(per_thread, streams()),
                        )
                    }
                    false => None,
                };
                static CALLED: guard::Called = guard::Called::new();
                let _alone = guard::before_rest(
                    const { guard::rest(stringify!($name)) },
                    &CALLED,
                    [$(guard::kernel_in(&$arg)),*],
                );
                guard::before_copy(
                    const { guard::copies(stringify!($name)) },
                    const { hooks::is_per_thread(stringify!($name)) },
                    [$(guard::stream_in(&$arg)),*],
                    [$(guard::told_in(&$arg)),*],
                );
                guard::before(
                    const { guard::touch(stringify!($name)) },
                    const { hooks::is_per_thread(stringify!($name)) },
                    [$(guard::stream_in(&$arg)),*],
                );
                let _passing = match const { guard::disturbs_trials(stringify!($name)) } {
                    true => guard::pass(),
                    false => None,
                };
                // SAFETY: passed on to our caller.
                let result = unsafe { chosen::$name($($arg),*) };
                entry::observe(seen::$name, stringify!($name), result, || ($({
                    // SAFETY: an argument of a call that the driver has just answered.
                    unsafe { Raw::new($arg) }
                },)*));
                result
            }
        )*

        const ADDRESSES: [*const c_void; Function::COUNT] = [$($name as *const c_void),*];
    };
}
cuda_abi::for_each_function!(export_each);

/// Says that a library is ebb's shim, and which layout of ledgers it writes.
#[unsafe(no_mangle)]
pub extern "C" fn ebb_shim_version() -> c_int {
    1
}

/// How much of a GPU's memory this process may have, and how much it and others of its tenant have: for the library in front
/// of NVML, which knows GPUs by UUID and by a number of its own. 1, or 0 where there is no limit and nothing is written.
///
/// # Safety
/// A C string, and two places for numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ebb_memory_view(
    uuid: *const c_char,
    index: c_uint,
    limit: *mut u64,
    used: *mut u64,
) -> c_int {
    if uuid.is_null() || limit.is_null() || used.is_null() {
        return 0;
    }
    // SAFETY: not null, so the caller's C string.
    let uuid = unsafe { CStr::from_ptr(uuid) };
    let Some(room) = management::room(uuid.to_bytes(), index) else { return 0 };
    // SAFETY: not null, so the caller's place for a number.
    unsafe { limit.write(room.limit) };
    // SAFETY: not null, so the caller's place for a number.
    unsafe { used.write(room.limit.saturating_sub(room.left)) };
    1
}

/// Where a function of this library is, for `cuGetProcAddress`.
pub fn address_of(function: Function) -> *const c_void {
    ADDRESSES[function.index()]
}
