//! The library under test.
//!
//! Every entry point is a method of [`Driver`] with the C signature, answering an [`Answer`]. The methods are not
//! marked `unsafe`, although a driver will happily write through a wild pointer: the suite's trade is to hand
//! drivers arguments that no checked wrapper would let pass, so the mark would stand on every line and warn of
//! nothing. The one crossing into C is in [`crate::driver::abi`]; each case runs in a process of its own.

use crate::answer::Code;
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
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
    /// Opens the library and looks up every entry point, by name or as [`BY_PROC_ADDRESS`] says.
    pub fn open(path: &Path) -> Result<Driver> {
        let name = CString::new(path.as_os_str().as_encoded_bytes()).context("a path with a zero byte")?;
        // SAFETY: `name` is a C string; a driver's initialisers are as trustworthy as the driver we are asked to test.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            bail!("cannot open {}: {}", path.display(), last_dl_error());
        }
        let table = abi::Table::fill(|symbol| lookup(handle, symbol));
        let mut driver = Driver { path: path.to_owned(), handle, table };
        if std::env::var_os(BY_PROC_ADDRESS).is_some() {
            driver.table = driver.table_by_proc_address()?;
        }
        Ok(driver)
    }

    /// What `cuGetProcAddress` answers for every name, version and flag under which a symbol can be had.
    fn table_by_proc_address(&self) -> Result<abi::Table> {
        let mut found: HashMap<&str, *mut c_void> = HashMap::new();
        for name in base_names() {
            let c_name = CString::new(name)?;
            for &version in VERSIONS {
                for flag in [0, u64::from(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM.0)] {
                    let Lookup::Found(function) = abi::symbol(name, version, flag) else { continue };
                    let (mut address, status) = (ptr::null_mut(), ptr::null_mut());
                    let answer =
                        self.cuGetProcAddress_v2(c_name.as_ptr(), &mut address, version, flag, status);
                    if answer.code == Code::SUCCESS {
                        found.insert(function.name(), address);
                    }
                }
            }
        }
        let address_of = |symbol: &CStr| symbol.to_str().ok().and_then(|name| found.get(name).copied());
        Ok(abi::Table::fill(|symbol| address_of(symbol).unwrap_or(ptr::null_mut())))
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Address of an exported symbol, null if there is none.
    pub fn symbol(&self, name: &CStr) -> *mut c_void {
        lookup(self.handle, name)
    }

    /// The file that has answered to the path: the loader may have given another library of that name.
    pub fn file(&self) -> Result<PathBuf> {
        let address = self.symbol(c"cuInit");
        ensure!(!address.is_null(), "{} is no CUDA driver: it has no cuInit", self.path.display());
        let mut about = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: any address may be asked for, and there is a place for the answer.
        let known = unsafe { libc::dladdr(address, about.as_mut_ptr()) };
        // SAFETY: zeroes are a value of this struct of pointers, and the call can only have written pointers.
        let about = unsafe { about.assume_init() };
        ensure!(known != 0 && !about.dli_fname.is_null(), "the loader does not know where cuInit lies");
        // SAFETY: the loader's own name of a library that is never closed.
        let name = unsafe { CStr::from_ptr(about.dli_fname) };
        Ok(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
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

/// Set in the environment, it makes [`Driver::open`] take every entry point from `cuGetProcAddress`, as the runtime does.
pub const BY_PROC_ADDRESS: &str = "EBB_CONFORMANCE_BY_PROC_ADDRESS";

/// Every version at which some function appeared, as far as the newest driver this suite has met.
pub const VERSIONS: &[i32] = &[
    2000, 2010, 2020, 2030, 3000, 3010, 3020, 4000, 4010, 4020, 5000, 5050, 6000, 6050, 7000, 7050, 8000,
    9000, 9010, 9020, 10000, 10010, 10020, 11000, 11010, 11020, 11030, 11040, 11050, 11060, 11070, 11080,
    12000, 12010, 12020, 12030, 12040, 12050, 12060, 12080, 12090, 13000,
];

/// The names one asks for: those symbols that the table itself knows as a base name at the newest version.
pub fn base_names() -> impl Iterator<Item = &'static str> {
    Function::all().map(Function::name).filter(|name| !matches!(abi::symbol(name, -1, 0), Lookup::NotFound))
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
