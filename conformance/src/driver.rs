//! The library under test.
//!
//! Every entry point is a method of [`Driver`] with the C signature, answering an [`Answer`]. The methods are not
//! marked `unsafe`, although a driver will happily write through a wild pointer: the suite's trade is to hand
//! drivers arguments that no checked wrapper would let pass, so the mark would stand on every line and warn of
//! nothing. The one crossing into C is in [`crate::driver::abi`]; each case runs in a process of its own.

use anyhow::{Context as _, Result, bail};
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

pub mod abi;

pub use abi::*;

/// A `libcuda.so.1`, opened once and kept for the life of the process.
pub struct Driver {
    path: PathBuf,
    handle: *mut c_void,
    table: abi::Table,
}

// SAFETY: the handle and the entry points are plain addresses, and the driver API may be called from any thread.
unsafe impl Send for Driver {}
// SAFETY: as for `Send`; nothing in `Driver` changes after `open`.
unsafe impl Sync for Driver {}

impl Driver {
    /// Opens the library and looks up every entry point by name.
    pub fn open(path: &Path) -> Result<Driver> {
        let name = CString::new(path.as_os_str().as_encoded_bytes()).context("a path with a zero byte")?;
        // SAFETY: `name` is a C string; a driver's initialisers are as trustworthy as the driver we are asked to test.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            bail!("cannot open {}: {}", path.display(), last_dl_error());
        }
        let table = abi::Table::fill(|symbol| lookup(handle, symbol));
        Ok(Driver { path: path.to_owned(), handle, table })
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Address of an exported symbol, null if there is none.
    pub fn symbol(&self, name: &CStr) -> *mut c_void {
        lookup(self.handle, name)
    }

    /// The driver's own name of a result code.
    pub fn error_name(&self, code: u32) -> String {
        let mut text: *const c_char = ptr::null();
        let answer = self.cuGetErrorName(CUresult(code), &mut text);
        if answer.code.0 != 0 || text.is_null() {
            return format!("(no name for {code})");
        }
        // SAFETY: the driver answered success and a non-null pointer, which it documents as a static C string.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

fn lookup(handle: *mut c_void, symbol: &CStr) -> *mut c_void {
    // SAFETY: the handle came from dlopen and is never closed; the name is a C string.
    unsafe { libc::dlsym(handle, symbol.as_ptr()) }
}

fn last_dl_error() -> String {
    // SAFETY: dlerror has no preconditions.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".into();
    }
    // SAFETY: a non-null answer of dlerror is a C string, valid until the next dl call of this thread.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
