//! The driver as a program finds it: by its name, and its functions by theirs.

use std::ffi::{CString, c_char, c_int, c_void};

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

pub struct Driver {
    library: *mut c_void,
}

/// Calls a function of the driver with these arguments, in C's types.
macro_rules! call {
    ($driver:expr, $name:ident($($argument:expr => $type:ty),*)) => {{
        let function = $driver.find(stringify!($name));
        // SAFETY: the function of that name takes these arguments and gives a number.
        let function: unsafe extern "C" fn($($type),*) -> u32 = unsafe { std::mem::transmute(function) };
        // SAFETY: places are places of ours, and handles are those that were given out.
        match unsafe { function($($argument),*) } {
            0 => Ok(()),
            code => Err(code),
        }
    }};
}
pub(crate) use call;

impl Driver {
    /// With the primary context as the thread's own.
    pub fn open() -> Driver {
        const NOW: c_int = 2;
        // SAFETY: a C string, and a flag that exists.
        let library = unsafe { dlopen(c"libcuda.so.1".as_ptr(), NOW) };
        assert!(!library.is_null());
        let driver = Driver { library };
        call!(driver, cuInit(0 => u32)).unwrap();
        driver.make_current();
        driver
    }

    pub fn make_current(&self) {
        let mut context: *mut c_void = std::ptr::null_mut();
        call!(self, cuDevicePrimaryCtxRetain(&raw mut context => *mut *mut c_void, 0 => c_int)).unwrap();
        call!(self, cuCtxSetCurrent(context => *mut c_void)).unwrap();
    }

    pub fn find(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap();
        // SAFETY: a library that was opened, and a C string.
        let found = unsafe { dlsym(self.library, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?}");
        found
    }
}
