//! What a program has set about a kernel, which must hold for its twin too: how much shared memory a block may have, how
//! it is divided, and which clusters are allowed.
//!
//! The driver is asked once, by the thread that first wants a twin: it has the context that the answer depends on. Later
//! changes are seen where they are made. The values are kept here, so that the smith finds them when the twin is there.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use cuda_abi::{
    CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
    CUDA_SUCCESS, CUdevice, CUfunc_cache, CUfunction_attribute, CUkernel,
};

use crate::frames::Frame;
use crate::next;

const KEPT: [CUfunction_attribute; 4] = [
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
    CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
];

/// No value of any attribute.
const UNKNOWN: c_int = c_int::MIN;
/// No setting of the cache.
const UNSET: u32 = u32::MAX;

pub struct Attributes {
    values: [AtomicI32; KEPT.len()],
    cache: AtomicU32,
    /// Counts what was set.
    changes: AtomicU32,
}

impl Attributes {
    pub const fn new() -> Attributes {
        Attributes {
            values: [const { AtomicI32::new(UNKNOWN) }; KEPT.len()],
            cache: AtomicU32::new(UNSET),
            changes: AtomicU32::new(0),
        }
    }

    /// Asks the driver what holds for the original.
    pub fn learn(&self, frame: &Frame, device: CUdevice) {
        for (place, attribute) in self.values.iter().zip(KEPT) {
            if let Some(value) = frame.attribute(attribute, device) {
                // What was set meanwhile is newer.
                let _ = place.compare_exchange(UNKNOWN, value, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }

    /// The program has set one.
    pub fn set(&self, attribute: CUfunction_attribute, value: c_int) {
        if let Some(at) = KEPT.iter().position(|&kept| kept == attribute) {
            self.values[at].store(value, Ordering::Relaxed);
            // SYNC(attributes): who sees the change counted sees the value.
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// The program has said how it likes its caches.
    pub fn set_cache(&self, preference: CUfunc_cache) {
        self.cache.store(preference.0, Ordering::Relaxed);
        // SYNC(attributes): who sees the change counted sees the value.
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Gives a twin what the original has, and once more if that changes meanwhile.
    pub fn copy_to(&self, kernel: CUkernel, device: CUdevice) {
        const OFTEN: usize = 8;
        for _ in 0..OFTEN {
            // SYNC(attributes): pairs with the additions where they are set.
            let changes = self.changes.load(Ordering::Acquire);
            self.copy_once(kernel, device);
            if self.changes.load(Ordering::Acquire) == changes {
                return;
            }
        }
    }

    fn copy_once(&self, kernel: CUkernel, device: CUdevice) {
        for (place, attribute) in self.values.iter().zip(KEPT) {
            let value = place.load(Ordering::Relaxed);
            if value != UNKNOWN && current(kernel, attribute, device).is_some_and(|current| current != value)
            {
                // SAFETY: a kernel of ours, and a value that the driver has taken or given for the original.
                let _ = unsafe { next::call::cuKernelSetAttribute(attribute, value, kernel, device) };
            }
        }
        let cache = self.cache.load(Ordering::Relaxed);
        if cache != UNSET {
            // SAFETY: a kernel of ours, and a preference that the driver has taken for the original.
            let _ = unsafe { next::call::cuKernelSetCacheConfig(kernel, CUfunc_cache(cache), device) };
        }
    }
}

fn current(kernel: CUkernel, attribute: CUfunction_attribute, device: CUdevice) -> Option<c_int> {
    let mut value = 0;
    // SAFETY: a kernel of ours, and a place for the answer.
    let result = unsafe { next::call::cuKernelGetAttribute(&mut value, attribute, kernel, device) };
    (result == CUDA_SUCCESS).then_some(value)
}
