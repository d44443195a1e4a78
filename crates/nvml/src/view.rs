//! What this process may have of a GPU, and what it has, as the shim says.
//!
//! The shim is in the process too, preloaded before this library, and exports one function for it. A process that has lost the
//! shim (a program may change `LD_PRELOAD` for what it starts) has no limit either, and is shown the card.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem;
use std::ptr;

use crate::next::{self, Place, SUCCESS, Status};

pub type Device = *mut c_void;

/// As long as the longest that NVML gives, its final zero byte included.
const UUID_BYTES: usize = 96;

/// In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    pub limit: u64,
    pub used: u64,
}

type Ask = unsafe extern "C" fn(*const c_char, c_uint, *mut u64, *mut u64) -> c_int;
type GetUuid = unsafe extern "C" fn(Device, *mut c_char, c_uint) -> Status;
type GetIndex = unsafe extern "C" fn(Device, *mut c_uint) -> Status;

/// `None` where this process has no limit on the GPU.
///
/// # Safety
/// A device that the real library has just answered a question about.
pub unsafe fn of(device: Device) -> Option<View> {
    // SAFETY: a C string; all libraries of the program are asked, of which the shim is one of the first.
    let ask = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"ebb_memory_view".as_ptr()) };
    if ask.is_null() {
        return None;
    }
    // SAFETY: the shim exports the name, with this signature.
    let ask = unsafe { mem::transmute::<*mut c_void, Ask>(ask) };
    let mut uuid = [0; UUID_BYTES];
    // SAFETY: passed on to our caller.
    unsafe { uuid_of(device, &mut uuid)? };
    // SAFETY: passed on to our caller.
    let index = unsafe { index_of(device) }.unwrap_or(c_uint::MAX);
    let mut view = View { limit: 0, used: 0 };
    // SAFETY: a text that ends with a nought, and places for the answers.
    let has = unsafe { ask(uuid.as_ptr(), index, &raw mut view.limit, &raw mut view.used) };
    (has == 1).then_some(view)
}

/// # Safety
/// As for [`of`].
unsafe fn uuid_of(device: Device, uuid: &mut [c_char; UUID_BYTES]) -> Option<()> {
    let get = next::function(Place::nvmlDeviceGetUUID)?;
    // SAFETY: the real library's function of this name, with the signature that NVIDIA's header gives for it.
    let get = unsafe { mem::transmute::<*mut c_void, GetUuid>(get) };
    // The last byte is not the library's, so that the text ends whatever is written.
    // SAFETY: a device of the real library's, and as much room as is said.
    let status = unsafe { get(device, uuid.as_mut_ptr(), UUID_BYTES as c_uint - 1) };
    (status == SUCCESS).then_some(())
}

/// # Safety
/// As for [`of`].
unsafe fn index_of(device: Device) -> Option<c_uint> {
    let get = next::function(Place::nvmlDeviceGetIndex)?;
    // SAFETY: the real library's function of this name, with the signature that NVIDIA's header gives for it.
    let get = unsafe { mem::transmute::<*mut c_void, GetIndex>(get) };
    let mut index = 0;
    // SAFETY: a device of the real library's, and a place for the answer.
    let status = unsafe { get(device, ptr::from_mut(&mut index)) };
    (status == SUCCESS).then_some(index)
}
