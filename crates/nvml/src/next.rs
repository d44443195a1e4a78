//! The real library, and where its functions are.
//!
//! There is one slot per function, null until the first call of any; from then on a call is a load and a jump. A function
//! that the real library does not have, or that is asked for where there is no real library, leads to [`lacking`].

use std::ffi::{CStr, c_int, c_void};
use std::ops::ControlFlow;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

use installation::search::{self, MANAGEMENT, Surroundings};
use rustix::fs::{Access, Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::names::for_each_name;

/// What functions of NVML answer.
pub type Status = c_int;

pub const SUCCESS: Status = 0;
const LIBRARY_NOT_FOUND: Status = 12;
const FUNCTION_NOT_FOUND: Status = 13;

/// The exported symbol by which this library knows itself, under whatever path.
const MARK: &CStr = c"ebb_nvml_version";

macro_rules! places {
    (answered { $($answered:ident)* } passed { $($passed:ident)* }) => {
        /// The places of the functions among the slots.
        #[allow(non_camel_case_types, clippy::enum_variant_names)]
        #[derive(Clone, Copy)]
        #[repr(usize)]
        pub enum Place { $($answered,)* $($passed,)* }

        const NAMES: &[&CStr] = &[
            $(name(concat!(stringify!($answered), "\0")),)*
            $(name(concat!(stringify!($passed), "\0")),)*
        ];
    };
}
for_each_name!(places);

const fn name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("names of functions hold no zero byte"),
    }
}

/// In the order of [`Place`]. The jumps read them as they lie.
pub static SLOTS: [AtomicPtr<c_void>; NAMES.len()] = [const { AtomicPtr::new(ptr::null_mut()) }; NAMES.len()];

/// What [`lacking`] answers.
static ABSENCE: AtomicI32 = AtomicI32::new(FUNCTION_NOT_FOUND);

static STATE: AtomicU32 = AtomicU32::new(UNTRIED);
const UNTRIED: u32 = 0;
const TRIED: u32 = 1;

/// Stands for a function that is not there. Whatever arguments it is called with, it looks at none.
extern "C" fn lacking() -> Status {
    ABSENCE.load(Ordering::Relaxed)
}

/// Where a function is: in the real library, or [`lacking`]. Never null.
pub extern "C" fn resolve(place: usize) -> *mut c_void {
    once();
    // SYNC(library-open): pairs with the exchange in `fill`.
    let known = SLOTS.get(place).map_or(ptr::null_mut(), |slot| slot.load(Ordering::Acquire));
    if known.is_null() { lacking as *mut c_void } else { known }
}

/// The real library's function; `None` if it has none.
pub fn function(place: Place) -> Option<*mut c_void> {
    Some(resolve(place as usize)).filter(|&found| found != lacking as *mut c_void)
}

/// What a function answers that is not there.
pub fn absence() -> Status {
    lacking()
}

/// Opens the real library unless that has been tried.
///
/// There is no lock, on purpose. The loader has one of its own, and a thread that comes here out of a library's start
/// holds it; if another thread held ours and waited for the loader's, both would wait for ever. Threads that come here
/// at the same time all do the whole work, and all find the same.
fn once() {
    if STATE.load(Ordering::Acquire) != UNTRIED {
        return;
    }
    let cache = Cache::read();
    let places = Surroundings {
        setting: None,
        library_path: variable(c"LD_LIBRARY_PATH").map(CStr::to_bytes),
        cache: cache.bytes(),
    };
    let mut handle = None;
    search::each_candidate_for(MANAGEMENT, &places, &mut |_, path| {
        handle = open(path);
        if handle.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if handle.is_none() {
        ABSENCE.store(LIBRARY_NOT_FOUND, Ordering::Relaxed);
    }
    fill(handle);
    // SYNC(library-open): who finds that it was tried finds the slots filled.
    STATE.store(TRIED, Ordering::Release);
}

fn fill(handle: Option<*mut c_void>) {
    for (slot, name) in SLOTS.iter().zip(NAMES) {
        let found = handle.map_or(ptr::null_mut(), |handle| symbol(handle, name));
        let address = if found.is_null() { lacking as *mut c_void } else { found };
        // SYNC(library-open): whoever sees the function's address sees its library loaded. What another thread has filled
        // is the same.
        let _ = slot.compare_exchange(ptr::null_mut(), address, Ordering::Release, Ordering::Relaxed);
    }
}

/// Opens a library if it is NVML, and not this one or another copy of it.
fn open(path: &CStr) -> Option<*mut c_void> {
    rustix::fs::access(path, Access::READ_OK).ok()?;
    // SAFETY: a C string, and flags that exist; what the library does when it is loaded is NVIDIA's affair.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    let right =
        !handle.is_null() && symbol(handle, MARK).is_null() && !symbol(handle, c"nvmlInit_v2").is_null();
    right.then_some(handle)
}

fn symbol(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the handle was opened and is never closed; the name is a C string.
    unsafe { libc::dlsym(handle, name.as_ptr()) }
}

/// The text is the environment's own: used at once, not kept.
fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: a C string; programs that change their environment from another thread meanwhile are wrong with or
    // without us.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: a value of the environment is a C string.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// The cache of the dynamic loader in memory, which is replaced as a whole and never changed in place.
struct Cache {
    memory: *mut c_void,
    length: usize,
}

impl Cache {
    /// Empty where it cannot be read.
    fn read() -> Cache {
        Cache::map().unwrap_or(Cache { memory: ptr::null_mut(), length: 0 })
    }

    fn map() -> Option<Cache> {
        let file =
            rustix::fs::open(c"/etc/ld.so.cache", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let length = usize::try_from(rustix::fs::fstat(&file).ok()?.st_size).ok().filter(|&size| size > 0)?;
        // SAFETY: a new private mapping at a place of the kernel's choice.
        let memory = unsafe {
            rustix::mm::mmap(ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, &file, 0)
        };
        Some(Cache { memory: memory.ok()?, length })
    }

    fn bytes(&self) -> &[u8] {
        if self.memory.is_null() {
            return &[];
        }
        // SAFETY: the mapping has this length and lives as long as self.
        unsafe { std::slice::from_raw_parts(self.memory.cast(), self.length) }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        if !self.memory.is_null() {
            // SAFETY: our own mapping, of which no slice is left.
            let _ = unsafe { rustix::mm::munmap(self.memory, self.length) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_the_name_of_its_place() {
        for (place, name) in [
            (Place::nvmlDeviceGetMemoryInfo, c"nvmlDeviceGetMemoryInfo"),
            (Place::nvmlErrorString, c"nvmlErrorString"),
            (Place::nvmlDeviceGetUUID, c"nvmlDeviceGetUUID"),
            (Place::nvmlVgpuTypeGetResolution, c"nvmlVgpuTypeGetResolution"),
        ] {
            assert_eq!(NAMES[place as usize], name);
        }
    }

    #[test]
    fn every_name_is_there_once() {
        let mut names = NAMES.to_vec();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), NAMES.len());
    }

    #[test]
    fn a_place_that_is_none_leads_nowhere_rather_than_anywhere() {
        assert_eq!(resolve(usize::MAX), lacking as *mut c_void);
    }
}
