//! What a program has set about a kernel, which must hold for its twin too: how much shared memory a block may have, how
//! it is divided, and which clusters are allowed.
//!
//! The driver is asked once, by the thread that first wants a twin: it has the context that the answer depends on. Later
//! changes are seen where they are made. The values are kept here until the twin is there, and given to it before it is
//! first launched.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use cuda_abi::{
    CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, CU_FUNC_ATTRIBUTE_NUM_REGS,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, CUDA_SUCCESS,
    CUdevice, CUfunc_cache, CUfunction_attribute, CUkernel,
};

use crate::frames::Frame;
use crate::next;

const KEPT: [CUfunction_attribute; 4] = [
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
    CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
];

/// What a block needs beside what the launch says.
#[derive(Clone, Copy)]
pub struct Needs {
    /// Of each thread; zero: not known.
    pub registers: u32,
    pub shared: u32,
}

/// No value of any attribute.
const UNKNOWN: c_int = c_int::MIN;
/// No setting of the cache.
const UNSET: u32 = u32::MAX;

pub struct Attributes {
    values: [AtomicI32; KEPT.len()],
    cache: AtomicU32,
    registers: AtomicI32,
    shared: AtomicI32,
    /// Counts what was set.
    changes: AtomicU32,
}

impl Attributes {
    pub const fn new() -> Attributes {
        Attributes {
            values: [const { AtomicI32::new(UNKNOWN) }; KEPT.len()],
            cache: AtomicU32::new(UNSET),
            registers: AtomicI32::new(0),
            shared: AtomicI32::new(0),
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
        let fixed = |attribute| frame.attribute(attribute, device).unwrap_or(0);
        self.registers.store(fixed(CU_FUNC_ATTRIBUTE_NUM_REGS), Ordering::Relaxed);
        self.shared.store(fixed(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), Ordering::Relaxed);
    }

    /// As far as the driver has been asked.
    pub fn needs(&self) -> Needs {
        let known = |value: &AtomicI32| u32::try_from(value.load(Ordering::Relaxed)).unwrap_or(0);
        Needs { registers: known(&self.registers), shared: known(&self.shared) }
    }

    /// The program has set one. Whether that is news: libraries set the same before every launch.
    pub fn set(&self, attribute: CUfunction_attribute, value: c_int) -> bool {
        let at = KEPT.iter().position(|&kept| kept == attribute);
        let news = at.is_some_and(|at| self.values[at].swap(value, Ordering::Relaxed) != value);
        if news {
            // SYNC(attributes): who sees the change counted sees the value.
            self.changes.fetch_add(1, Ordering::Release);
        }
        news
    }

    /// The program has said how it likes its caches. Whether that is news.
    pub fn set_cache(&self, preference: CUfunc_cache) -> bool {
        let news = self.cache.swap(preference.0, Ordering::Relaxed) != preference.0;
        if news {
            // SYNC(attributes): who sees the change counted sees the value.
            self.changes.fetch_add(1, Ordering::Release);
        }
        news
    }

    /// Gives a twin what the original has, and once more if that changes meanwhile.
    pub fn copy_to(&self, kernel: CUkernel, device: CUdevice) {
        const OFTEN: usize = 8;
        let _alone = crate::guard::alone();
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
