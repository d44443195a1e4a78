//! Between C and the hooks.
//!
//! A hook is a plain function that is shown the arguments of a call after the driver has answered it. What it does
//! cannot change the answer; if it panics, the panic ends here, hooks are switched off in this process, and the
//! ledger says so.

use std::ffi::{CStr, c_char};
use std::panic::{self, AssertUnwindSafe};

use cuda_abi::{CUDA_ERROR_NOT_READY, CUDA_SUCCESS, CUresult};
use telemetry::{Counter, StreamKind};

use crate::watch::{self, Watch};

/// An argument as it came, of a call that the driver has answered with success.
///
/// That is what makes looking through pointers right here: the driver has read what it reads and written what it
/// writes. Nothing is kept beyond the hook.
#[derive(Clone, Copy)]
pub struct Raw<T>(T);

impl<T: Copy> Raw<T> {
    /// # Safety
    /// The argument must be one of a call of the driver that has been answered.
    #[inline(always)]
    pub unsafe fn new(argument: T) -> Raw<T> {
        Raw(argument)
    }

    #[inline(always)]
    pub fn value(self) -> T {
        self.0
    }
}

impl<T> Raw<*mut T> {
    /// A handle, as a number.
    #[inline(always)]
    pub fn handle(self) -> usize {
        self.0.addr()
    }
}

impl<T: Copy> Raw<*mut T> {
    /// What the driver has written there.
    #[inline]
    pub fn written(self) -> Option<T> {
        // SAFETY: null, or a place that the driver has written a T to.
        (!self.0.is_null()).then(|| unsafe { self.0.read() })
    }

    /// The first of so many that the driver has written there.
    pub fn each(self, count: u32) -> impl Iterator<Item = T> {
        let count = if self.0.is_null() { 0 } else { count as usize };
        // SAFETY: the driver has written or read so many there, and each lies inside.
        (0..count).map(move |index| unsafe { self.0.wrapping_add(index).read() })
    }
}

impl<T: Copy> Raw<*const T> {
    /// What the driver has read there.
    #[inline]
    pub fn read(self) -> Option<T> {
        // SAFETY: null, or a place where the driver has read a T.
        (!self.0.is_null()).then(|| unsafe { self.0.read() })
    }
}

impl Raw<*const c_char> {
    pub fn text(&self) -> Option<&CStr> {
        // SAFETY: null, or a C string that the driver has read.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) })
    }
}

/// What a hook is shown besides the arguments.
pub struct Seen {
    pub watch: &'static Watch,
    /// Whether stream 0 means the thread's own.
    per_thread: bool,
    /// Not so for a query that finds work under way.
    ready: bool,
}

impl Seen {
    #[inline]
    pub fn add(&self, counter: Counter, amount: u64) {
        self.watch.ledger.add(counter, amount);
    }

    #[inline]
    pub fn count(&self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Which kind of stream a handle means.
    #[inline]
    pub fn stream(&self, handle: usize) -> StreamKind {
        stream_kind(handle, self.per_thread)
    }

    pub fn per_thread(&self) -> bool {
        self.per_thread
    }

    pub fn ready(&self) -> bool {
        self.ready
    }
}

/// Which kind of stream a handle means; `per_thread`: whether stream 0 means the thread's own.
#[inline]
pub fn stream_kind(handle: usize, per_thread: bool) -> StreamKind {
    const LEGACY: usize = 1;
    const PER_THREAD: usize = 2;
    match handle {
        0 if per_thread => StreamKind::PerThread,
        0 | LEGACY => StreamKind::Default,
        PER_THREAD => StreamKind::PerThread,
        _ => StreamKind::Created,
    }
}

/// The hook of a function that has none.
pub struct Unwatched;

/// A hook for a function with these arguments.
pub trait Hook<Arguments> {
    const LOOKS: bool;
    fn look(&self, seen: &Seen, arguments: Arguments);
}

impl<Arguments> Hook<Arguments> for Unwatched {
    const LOOKS: bool = false;
    fn look(&self, _: &Seen, _: Arguments) {}
}

macro_rules! hooks_of {
    ($($letter:ident)*) => {
        impl<F: Fn(&Seen, $($letter),*), $($letter),*> Hook<($($letter,)*)> for F {
            const LOOKS: bool = true;
            #[allow(non_snake_case)]
            #[inline(always)]
            fn look(&self, seen: &Seen, ($($letter,)*): ($($letter,)*)) {
                self(seen, $($letter),*)
            }
        }
    };
}
hooks_of!();
hooks_of!(A);
hooks_of!(A B);
hooks_of!(A B C);
hooks_of!(A B C D);
hooks_of!(A B C D E);
hooks_of!(A B C D E G);
hooks_of!(A B C D E G H);
hooks_of!(A B C D E G H I);
hooks_of!(A B C D E G H I J);
hooks_of!(A B C D E G H I J K);
hooks_of!(A B C D E G H I J K L);

/// Shows a call that has been answered to its hook.
#[inline(always)]
pub fn observe<Arguments, H: Hook<Arguments>>(
    hook: H,
    name: &'static str,
    result: CUresult,
    arguments: impl FnOnce() -> Arguments,
) {
    if !H::LOOKS {
        return;
    }
    let Some(watch) = watch::of_this_process() else { return };
    // A query that finds work under way has been answered all the same.
    if result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY {
        return refused(watch, name);
    }
    let seen = Seen { watch, per_thread: is_per_thread(name), ready: result == CUDA_SUCCESS };
    guarded(watch, name, || hook.look(&seen, arguments()));
}

/// Lets nothing but a return out.
#[inline(always)]
pub fn guarded(watch: &'static Watch, name: &'static str, work: impl FnOnce()) {
    let work = || {
        crate::fault::panic(name);
        work();
    };
    if panic::catch_unwind(AssertUnwindSafe(work)).is_err() {
        watch::give_up(watch, name);
    }
}

/// By how names begin: of the functions that have hooks, these are the ones whose successes are counted so.
const LAUNCHES: &[&str] = &["cuLaunch", "cuGraphLaunch", "cuStreamAddCallback"];
const ALLOCATIONS: &[&str] =
    &["cuMemAlloc", "cuMemCreate", "cuMemHostAlloc", "cuMemHostRegister", "cuArrayCreate", "cuArray3DCreate"];

#[cold]
fn refused(watch: &'static Watch, name: &'static str) {
    let begins = |names: &[&str]| names.iter().any(|begin| name.starts_with(begin));
    if begins(LAUNCHES) {
        watch.ledger.add(Counter::LaunchesRefused, 1);
    } else if begins(ALLOCATIONS) {
        watch.ledger.add(Counter::AllocationsRefused, 1);
    }
}

/// The twins for programs that were compiled so that stream 0 is the thread's own.
#[inline(always)]
fn is_per_thread(name: &str) -> bool {
    name.ends_with("_ptsz") || name.ends_with("_ptds")
}
