//! Threads of our own in somebody else's process.

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use model::Nanos;

use crate::next;

/// How much later than asked a thread of ours may wake.
const TIMER_SLACK: Nanos = Nanos::from_micros(1);

/// Starts a thread that nobody waits for. `false` if there can be none.
pub fn start(work: extern "C" fn(*mut c_void) -> *mut c_void, argument: *mut c_void) -> bool {
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    let started = without_signals(|| {
        // SAFETY: a place for the thread; our callers give what stays.
        unsafe { libc::pthread_create(thread.as_mut_ptr(), ptr::null(), work, argument) }
    });
    if started == 0 {
        // SAFETY: it was started, so it has a number.
        let thread = unsafe { thread.assume_init() };
        // SAFETY: nobody waits for it.
        unsafe { libc::pthread_detach(thread) };
    }
    started == 0
}

/// The signals of the program are for its own threads: one that is started here starts with all of them blocked.
fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: a place for the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the set was filled, and there is a place for the old one.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let result = work();
    // SAFETY: the set that was there before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    result
}

/// Says who the calling thread is, in at most 15 bytes.
pub fn rename(name: &CStr) {
    // SAFETY: the name of the calling thread, as a short C string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// What a thread of ours does first: it says who it is, and that it knows what it asks the driver while streams are being
/// captured. A program's capture forbids much to all threads that did not say so.
pub fn begin(name: &CStr) {
    rename(name);
    // Unasked, the kernel lets a sleeper lie for 50 µs more than he wanted: longer than most waits between two looks at a resume.
    // SAFETY: a setting of the calling thread, in nanoseconds.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK.0 as libc::c_ulong) };
    let mut mode = cuda_abi::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: a place for the mode, which is of this thread only.
    let _ = unsafe { next::call::cuThreadExchangeStreamCaptureMode(&mut mode) };
}
