//! The answers about memory.
//!
//! They are those of `cuMemGetInfo` at the same moment: the total is the limit, or the card if that is less; free is what is left
//! of the limit, or what the card has free if that is less; what is not free is used. Nothing is reserved, for a
//! limit counts what the tenant asked for and nothing else.

#![allow(non_snake_case)]

use std::ffi::{c_char, c_uint, c_void};
use std::mem;

use crate::next::{self, Place, SUCCESS, Status};
use crate::view::{self, Device, View};

/// What the first version of the question is answered with.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// What the second version is answered with. The caller says which structure it has.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionedMemory {
    version: c_uint,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// How NVML tells structures apart: their size, and their number in the highest byte.
const SECOND: c_uint = mem::size_of::<VersionedMemory>() as c_uint | 2 << 24;

type GetMemory<T> = unsafe extern "C" fn(Device, *mut T) -> Status;
type GetText = unsafe extern "C" fn(Status) -> *const c_char;

/// What a process with this view is shown of a card.
fn shown(total: u64, free: u64, view: View) -> Memory {
    let total = total.min(view.limit);
    let free = free.min(view.limit.saturating_sub(view.used)).min(total);
    Memory { total, free, used: total - free }
}

/// Asks the real library.
///
/// # Safety
/// As NVIDIA's manual says of the function of this place, which must be one that takes a device and a place for a `T`.
unsafe fn asked<T>(place: Place, device: Device, memory: *mut T) -> Status {
    let Some(get) = next::function(place) else { return next::absence() };
    // SAFETY: the real library's function of this place, with the signature that our caller vouches for.
    let get = unsafe { mem::transmute::<*mut c_void, GetMemory<T>>(get) };
    // SAFETY: passed on to our caller.
    unsafe { get(device, memory) }
}

/// # Safety
/// As NVIDIA's manual says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo(device: Device, memory: *mut Memory) -> Status {
    // SAFETY: passed on to our caller.
    let status = unsafe { asked(Place::nvmlDeviceGetMemoryInfo, device, memory) };
    if status != SUCCESS || memory.is_null() {
        return status;
    }
    // SAFETY: a device that has just been answered for.
    if let Some(view) = unsafe { view::of(device) } {
        // SAFETY: the real library has just written there.
        let card = unsafe { memory.read() };
        // SAFETY: where the real library has written, we may.
        unsafe { memory.write(shown(card.total, card.free, view)) };
    }
    status
}

/// # Safety
/// As NVIDIA's manual says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: Device, memory: *mut VersionedMemory) -> Status {
    // SAFETY: passed on to our caller.
    let status = unsafe { asked(Place::nvmlDeviceGetMemoryInfo_v2, device, memory) };
    if status != SUCCESS || memory.is_null() {
        return status;
    }
    // A structure of another version may be shorter than ours, so only its first word is looked at before it is known.
    // SAFETY: the real library has just read there.
    let version = unsafe { memory.cast::<c_uint>().read() };
    // SAFETY: a device that has just been answered for.
    let view = if version == SECOND { unsafe { view::of(device) } } else { None };
    if let Some(view) = view {
        // SAFETY: the real library has just written a structure of this version there.
        let card = unsafe { memory.read() };
        let Memory { total, free, used } = shown(card.total, card.free, view);
        // SAFETY: where the real library has written, we may.
        unsafe { memory.write(VersionedMemory { version, total, reserved: 0, free, used }) };
    }
    status
}

/// # Safety
/// As NVIDIA's manual says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlErrorString(status: Status) -> *const c_char {
    let Some(get) = next::function(Place::nvmlErrorString) else {
        return c"NVIDIA's management library (libnvidia-ml.so.1) was not found".as_ptr();
    };
    // SAFETY: the real library's function of this name, with the signature that NVIDIA's header gives for it.
    let get = unsafe { mem::transmute::<*mut c_void, GetText>(get) };
    // SAFETY: passed on to our caller.
    unsafe { get(status) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_limit_is_the_card_and_what_is_left_of_it_is_free() {
        let view = View { limit: 20 * GIB, used: 5 * GIB };
        assert_eq!(
            shown(80 * GIB, 60 * GIB, view),
            Memory { total: 20 * GIB, free: 15 * GIB, used: 5 * GIB }
        );
    }

    #[test]
    fn nothing_is_more_than_the_card_has() {
        let view = View { limit: 100 * GIB, used: GIB };
        assert_eq!(
            shown(80 * GIB, 70 * GIB, view),
            Memory { total: 80 * GIB, free: 70 * GIB, used: 10 * GIB }
        );
        let view = View { limit: 20 * GIB, used: 5 * GIB };
        assert_eq!(shown(80 * GIB, 3 * GIB, view), Memory { total: 20 * GIB, free: 3 * GIB, used: 17 * GIB });
    }

    #[test]
    fn whoever_has_more_than_a_lowered_limit_has_nothing_left() {
        let view = View { limit: 2 * GIB, used: 5 * GIB };
        assert_eq!(shown(80 * GIB, 60 * GIB, view), Memory { total: 2 * GIB, free: 0, used: 2 * GIB });
    }

    #[test]
    fn the_structures_are_as_long_as_nvml_has_them() {
        assert_eq!((mem::size_of::<Memory>(), SECOND), (24, 0x0200_0028));
    }
}
