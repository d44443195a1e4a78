//! This library's own file and place in memory.

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;

use crate::exports;

/// Whether an address lies in this library.
pub fn contains(address: *const c_void) -> bool {
    !address.is_null() && image(address).is_some_and(|found| Some(found.base) == own().map(|own| own.base))
}

/// The path under which this library was loaded, if it is one that means the same everywhere.
pub fn path() -> Option<&'static CStr> {
    own().map(|own| own.path).filter(|path| path.to_bytes().starts_with(b"/"))
}

struct Loaded {
    base: usize,
    path: &'static CStr,
}

fn own() -> Option<Loaded> {
    image(exports::ebb_shim_version as *const c_void)
}

fn image(address: *const c_void) -> Option<Loaded> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for, and there is room for the answer.
    if unsafe { libc::dladdr(address, info.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: zeros are a value, and the call has filled it in.
    let info = unsafe { info.assume_init() };
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's name of an object that stays loaded as long as it is in use.
    let path = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(Loaded { base: info.dli_fbase.addr(), path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_this_library_are_its_own() {
        assert!(contains(exports::cuInit as *const c_void));
        assert!(!contains(libc::getpid as *const c_void));
        assert!(!contains(std::ptr::null()));
    }
}
