//! The driver's own calls into the kernel, overheard.
//!
//! Preloaded, this library stands in front of the C library's `ioctl` too, through which the driver makes its channel
//! groups. They are kept in the capture, so that a tenant can say how fast its own work leaves the GPU (`lever`). Every
//! other call passes: what is not an allocation or a release of the driver's costs one compare and a jump.
//!
//! A file is not watched for its end. A number that means another file by now is harmless: a group is asked for by its
//! client's handle, and the driver refuses a client on any file but the one it was made on; other files do not know the
//! request.

use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use switch::{Capture, Event, Kind, wire};

/// The channel groups of this process.
pub static CAPTURE: Capture = Capture::new();

/// Counts the groups and channels that were made, so that the keepers see when there are new ones.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A number that changes whenever this process has new groups or channels.
pub fn made() -> u32 {
    // SYNC(channels-made): whoever sees the count sees the group in the capture.
    MADE.load(Ordering::Acquire)
}

/// In the child of a fork, which has the files but none of the objects.
pub fn in_child() {
    CAPTURE.forget_all();
}

type Ioctl = unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int;

/// The real `ioctl`, once it has been asked for.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// `ioctl(file, request, argument)`. In C it takes any further arguments; the kernel takes one, and that is where the
/// calling convention of a function with three arguments puts it.
///
/// # Safety
/// As the manual of `ioctl` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // The kernel looks at the lower half only.
    if switch::concerns(request as u32) {
        // SAFETY: passed on to our caller.
        return unsafe { overheard(file, request, argument) };
    }
    // SAFETY: passed on to our caller.
    unsafe { passed_on(file, request, argument) }
}

#[inline(always)]
unsafe fn passed_on(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let mut real = REAL.load(Ordering::Relaxed);
    if real.is_null() {
        real = find();
    }
    // SAFETY: what `find` stores is an `ioctl`.
    let real: Ioctl = unsafe { std::mem::transmute(real) };
    // SAFETY: passed on to our caller.
    unsafe { real(file, request, argument) }
}

#[cold]
unsafe fn overheard(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let before = CAPTURE.moment();
    // SAFETY: passed on to our caller.
    let result = unsafe { passed_on(file, request, argument) };
    if result != 0 || argument.is_null() {
        return result;
    }
    let request = request as u32;
    // SAFETY: the kernel has just read and written so many bytes there, as the request says.
    let bytes = unsafe { std::slice::from_raw_parts(argument.cast::<u8>(), wire::argument_size(request)) };
    if let Event::Made(object) = CAPTURE.observe(before, file, request, bytes, result)
        && matches!(object.kind(), Kind::Group | Kind::Channel)
    {
        // SYNC(channels-made): pairs with the load in `made`.
        MADE.fetch_add(1, Ordering::Release);
    }
    result
}

#[cold]
fn find() -> *mut c_void {
    // SAFETY: a C string; the next library behind this one that has the name is asked for.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"ioctl".as_ptr()) };
    let usable = if found.is_null() { straight as *mut c_void } else { found };
    REAL.store(usable, Ordering::Relaxed);
    usable
}

/// Where no library has one, the kernel has.
unsafe extern "C" fn straight(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // SAFETY: passed on to our caller.
    unsafe { libc::syscall(libc::SYS_ioctl, file, request, argument) as c_int }
}
