//! What the process finds around it: variables, the loader's cache. Read without the host's heap.

use std::ffi::CStr;
use std::ops::Deref;
use std::ptr;

use rustix::fs::{Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// The exported symbol by which this library knows itself, under whatever path.
pub const SHIM_MARK: &CStr = c"ebb_shim_version";

/// The variables that matter to us.
pub struct Variables {
    pub driver: Option<&'static CStr>,
    pub library_path: Option<&'static CStr>,
    /// The folder for ledgers of one run, and the one for those of all tenants of a shared GPU.
    pub run: Option<&'static CStr>,
    pub ledgers: Option<&'static CStr>,
    pub disabled: bool,
    /// Events are written down, unless the user does not want it.
    pub events: bool,
    /// The user does not mind questions that the driver answers with an error.
    pub may_ask_in_vain: bool,
    #[cfg(feature = "faults")]
    pub fault: Option<&'static CStr>,
}

impl Variables {
    pub fn read() -> Variables {
        Variables {
            driver: variable(c"EBB_DRIVER"),
            library_path: variable(c"LD_LIBRARY_PATH"),
            run: variable(c"EBB_RUN"),
            ledgers: variable(c"EBB_LEDGERS"),
            disabled: variable(c"EBB_DISABLE").is_some_and(|value| value == c"1"),
            events: variable(c"EBB_EVENTS").is_none_or(|value| value != c"0"),
            may_ask_in_vain: variable(c"EBB_PARAMETERS").is_some_and(|value| value == c"1"),
            #[cfg(feature = "faults")]
            fault: variable(c"EBB_FAULT"),
        }
    }
}

/// A variable that is set and not empty. The text is the environment's own: used at once, not kept.
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: a C string; programs that change their environment from another thread meanwhile are wrong with or
    // without us.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: a value of the environment is a C string.
    let value = unsafe { CStr::from_ptr(value) };
    (!value.is_empty()).then_some(value)
}

/// A file in memory, for reading.
pub struct Mapped {
    memory: *mut std::ffi::c_void,
    length: usize,
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping has this length and lives as long as self.
        unsafe { std::slice::from_raw_parts(self.memory.cast(), self.length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of which no slice is left.
        let _ = unsafe { rustix::mm::munmap(self.memory, self.length) };
    }
}

/// The cache of the dynamic loader, which is replaced as a whole and never changed in place.
pub fn loader_cache() -> Option<Mapped> {
    map(c"/etc/ld.so.cache")
}

fn map(path: &CStr) -> Option<Mapped> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let length = usize::try_from(rustix::fs::fstat(&file).ok()?.st_size).ok().filter(|&size| size > 0)?;
    // SAFETY: a new private mapping at a place of the kernel's choice.
    let memory =
        unsafe { rustix::mm::mmap(ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, &file, 0) };
    Some(Mapped { memory: memory.ok()?, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_the_one_that_others_look_for() {
        assert_eq!(SHIM_MARK.to_str(), Ok(installation::search::SHIM_MARK));
    }

    #[test]
    fn an_empty_variable_is_none() {
        assert_eq!(variable(c"EBB_NO_SUCH_VARIABLE"), None);
        assert!(variable(c"PATH").is_some());
    }
}
