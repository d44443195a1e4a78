//! The driver's own calls into the kernel, overheard.
//!
//! Preloaded, this library stands in front of the C library's `ioctl` too, through which the driver makes its channel
//! groups. They are kept in the capture, so that a tenant can say how fast its own work leaves the GPU (`lever`). Every
//! other call passes: what is not an allocation or a release of the driver's costs one compare and a jump.
//!
//! A file is not watched for its end. So it is remembered which files objects were made on, and a call is made only if its
//! number still means one of them ([`OwnFiles`]). Which opening of such a file it is nobody needs to know: a group is asked
//! for by its client's handle, and the driver refuses a client on any opening but the one it was made on.

use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use board::link::FileIdentity;
use switch::{Capture, Errno, Event, Kernel, Kind, System, wire};

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
    if let Event::Made(object) = CAPTURE.observe(before, file, request, bytes, result) {
        remember(file);
        if matches!(object.kind(), Kind::Group | Kind::Channel) {
            // SYNC(channels-made): pairs with the load in `made`.
            MADE.fetch_add(1, Ordering::Release);
        }
    }
    result
}

/// The files on which objects were made: the driver has one for all. The inode is written last, and is never
/// zero; a file that finds no place is not used.
static FILES: [[AtomicU64; 2]; 4] = [const { [const { AtomicU64::new(0) }; 2] }; 4];

fn remembered() -> impl Iterator<Item = FileIdentity> {
    let whole = FILES.iter().filter_map(|[device, inode]| {
        // SYNC(channels-file): pairs with the store in `remember`.
        let inode = inode.load(Ordering::Acquire);
        (inode != 0).then(|| [device.load(Ordering::Relaxed), inode])
    });
    whole.map(FileIdentity::from_words)
}

/// Objects are made one after the other, under the driver's own lock. Should two threads come here at once, one of them may
/// take the other's place, and its file is remembered with the next object.
fn remember(file: c_int) {
    let Some(identity) = FileIdentity::of_number(file) else { return };
    if remembered().any(|known| known == identity) {
        return;
    }
    let free = FILES.iter().find(|[_, inode]| inode.load(Ordering::Relaxed) == 0);
    if let (Some([device, inode]), [on, number]) = (free, identity.to_words()) {
        device.store(on, Ordering::Relaxed);
        // SYNC(channels-file): a thread that sees the inode sees the device.
        inode.store(number, Ordering::Release);
    }
}

/// The way to the driver by files that are still its own: a program that has closed them may have others of their numbers.
#[derive(Clone, Copy)]
pub struct OwnFiles;

impl Kernel for OwnFiles {
    fn ioctl(&self, file: i32, call: &mut wire::Control, parameters: &mut [u8]) -> Result<(), Errno> {
        let own = FileIdentity::of_number(file).is_some_and(|now| remembered().any(|known| known == now));
        if own { System.ioctl(file, call, parameters) } else { Err(Errno(libc::EBADF)) }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn nothing_is_asked_of_a_file_on_which_no_object_was_made() {
        let ask =
            |file: &File| OwnFiles.ioctl(file.as_raw_fd(), &mut wire::Control::new(1, 2, 3), &mut [0; 8]);
        let own = File::open("/dev/null").unwrap();
        assert_eq!(ask(&own), Err(Errno(libc::EBADF)));
        remember(own.as_raw_fd());
        // It is asked, and does not know the request.
        assert_eq!(ask(&own), Err(Errno(libc::ENOTTY)));
        assert_eq!(ask(&File::open("/dev/zero").unwrap()), Err(Errno(libc::EBADF)));
        assert_eq!(ask(&File::open("/dev/null").unwrap()), Err(Errno(libc::ENOTTY)), "another opening of it");
    }
}
