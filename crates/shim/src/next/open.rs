//! Finding and opening the driver, once.

use std::ffi::{CStr, c_void};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use installation::search;

use super::{fill, fill_with_nothing};
use crate::loader;
use crate::log::say;
use crate::surroundings::{self, Variables};

static STATE: AtomicU32 = AtomicU32::new(UNTRIED);
const UNTRIED: u32 = 0;
const OPEN: u32 = 1;
const ABSENT: u32 = 2;

/// The path under which the driver was opened; a C string in the arena, or null.
static PATH: AtomicPtr<std::ffi::c_char> = AtomicPtr::new(std::ptr::null_mut());
/// Which file the driver is.
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);

/// Opens the driver unless that has been tried.
///
/// There is no lock, on purpose. The loader has one of its own, and a thread that comes here out of a library's start
/// holds it; if another thread held ours and waited for the loader's, both would wait for ever. Threads that come here
/// at the same time all do the whole work, and all find the same.
pub fn once() {
    if STATE.load(Ordering::Acquire) != UNTRIED {
        return;
    }
    crate::watch::follow_forks();
    let variables = Variables::read();
    let cache = surroundings::loader_cache();
    let places = search::Surroundings {
        setting: variables.driver.map(CStr::to_bytes),
        library_path: variables.library_path.map(CStr::to_bytes),
        cache: cache.as_deref().unwrap_or_default(),
    };
    let mut state = ABSENT;
    search::each_candidate(&places, &mut |source, path| match open(path) {
        Ok(handle) => {
            say!("the driver is {path:?} ({source})");
            remember(path);
            HANDLE.store(handle, Ordering::Release);
            fill(|name| symbol(handle, name));
            state = OPEN;
            ControlFlow::Break(())
        }
        Err(reason) => {
            say!("{path:?} ({source}): {reason}");
            ControlFlow::Continue(())
        }
    });
    if state == ABSENT {
        say!("no driver was found, so there is no device");
        fill_with_nothing();
    }
    STATE.store(state, Ordering::Release);
}

/// The driver as the loader knows it, or null.
static HANDLE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// A symbol of the driver that is none of CUDA's; null if it has none.
pub fn foreign(name: &CStr) -> *mut c_void {
    let handle = HANDLE.load(Ordering::Acquire);
    if handle.is_null() { handle } else { symbol(handle, name) }
}

/// The driver's path, if there is one.
pub fn behind() -> Option<&'static CStr> {
    let path = PATH.load(Ordering::Acquire);
    // SAFETY: a path that was remembered is a C string that is never freed.
    (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })
}

/// Whether a file is the driver behind.
pub fn is_behind(path: &CStr) -> bool {
    once();
    if STATE.load(Ordering::Acquire) != OPEN {
        return false;
    }
    let known = (DEVICE.load(Ordering::Relaxed), INODE.load(Ordering::Relaxed));
    rustix::fs::stat(path).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == known)
}

fn remember(path: &CStr) {
    if let Ok(stat) = rustix::fs::stat(path) {
        DEVICE.store(stat.st_dev, Ordering::Relaxed);
        INODE.store(stat.st_ino, Ordering::Relaxed);
    }
    if let Some(copy) = crate::arena::copy(path.to_bytes_with_nul()) {
        PATH.store(copy.as_ptr().cast_mut().cast(), Ordering::Release);
    }
}

/// Opens a library if it is a driver, and not this one or another copy of it.
fn open(path: &CStr) -> Result<*mut c_void, &'static str> {
    if rustix::fs::access(path, rustix::fs::Access::READ_OK).is_err() {
        return Err("cannot be read");
    }
    let handle = loader::open(path);
    if handle.is_null() {
        return Err("cannot be loaded");
    }
    if !symbol(handle, surroundings::SHIM_MARK).is_null() {
        return Err("is ebb's own library");
    }
    if symbol(handle, c"cuInit").is_null() || symbol(handle, c"cuDriverGetVersion").is_null() {
        return Err("is not a CUDA driver");
    }
    Ok(handle)
}

fn symbol(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the handle was opened and is never closed; the name is a C string.
    unsafe { libc::dlsym(handle, name.as_ptr()) }
}
