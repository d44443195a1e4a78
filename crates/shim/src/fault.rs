//! Failures on demand.
//!
//! With the feature `faults`, `EBB_FAULT` names what fails: `panic` (every hook), `panic:cuLaunchKernel` (that one),
//! `memory` (nothing more can be remembered), `disk` (the ledger cannot be made), `twin` (twins of kernels in PTX subtract
//! where they should add). Tests show that none of them changes what the host program sees; the last one does, unless
//! twins are held against their originals. Without the feature nothing of this is in the library.

#[cfg(feature = "faults")]
mod asked {
    use std::borrow::Cow;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

    use crate::surroundings::Variables;

    static KIND: AtomicU8 = AtomicU8::new(0);
    /// Memory fails once the watch has begun, so that the ledger can say so.
    static BEGUN: AtomicBool = AtomicBool::new(false);
    /// The hook that panics; null for all.
    static HOOK: AtomicPtr<std::ffi::c_char> = AtomicPtr::new(std::ptr::null_mut());
    const PANIC: u8 = 1;
    const MEMORY: u8 = 2;
    const DISK: u8 = 3;
    const TWIN: u8 = 4;

    pub fn read(variables: &Variables) {
        let Some(fault) = variables.fault else { return };
        let text = fault.to_bytes();
        let kind = match text {
            b"memory" => MEMORY,
            b"disk" => DISK,
            b"twin" => TWIN,
            _ if text.starts_with(b"panic") => PANIC,
            _ => return,
        };
        if text.starts_with(b"panic:") {
            let name = fault.as_ptr().wrapping_add("panic:".len());
            HOOK.store(name.cast_mut(), Ordering::Relaxed);
        }
        KIND.store(kind, Ordering::Relaxed);
    }

    pub fn panic(hook: &str) {
        if KIND.load(Ordering::Relaxed) != PANIC {
            return;
        }
        let wanted = HOOK.load(Ordering::Relaxed);
        // SAFETY: null, or the rest of a variable of the environment.
        let meant =
            wanted.is_null() || unsafe { std::ffi::CStr::from_ptr(wanted) }.to_bytes() == hook.as_bytes();
        assert!(!meant, "a fault was asked for");
    }

    pub fn begun() {
        BEGUN.store(true, Ordering::Relaxed);
    }

    pub fn memory() -> bool {
        KIND.load(Ordering::Relaxed) == MEMORY && BEGUN.load(Ordering::Relaxed)
    }

    pub fn disk() -> bool {
        KIND.load(Ordering::Relaxed) == DISK
    }

    /// The text of a twin, as it will be rewritten.
    pub fn twin(text: &str) -> Cow<'_, str> {
        match KIND.load(Ordering::Relaxed) == TWIN {
            true => text.replace("add.rn.f32", "sub.rn.f32").replace("add.f32", "sub.f32").into(),
            false => text.into(),
        }
    }
}

#[cfg(feature = "faults")]
pub use asked::{begun, disk, memory, panic, read, twin};

#[cfg(not(feature = "faults"))]
mod none {
    use std::borrow::Cow;

    use crate::surroundings::Variables;

    #[inline(always)]
    pub fn read(_: &Variables) {}

    #[inline(always)]
    pub fn begun() {}

    #[inline(always)]
    pub fn panic(_: &str) {}

    #[inline(always)]
    pub fn memory() -> bool {
        false
    }

    #[inline(always)]
    pub fn disk() -> bool {
        false
    }

    #[inline(always)]
    pub fn twin(text: &str) -> Cow<'_, str> {
        text.into()
    }
}

#[cfg(not(feature = "faults"))]
pub use none::{begun, disk, memory, panic, read, twin};
