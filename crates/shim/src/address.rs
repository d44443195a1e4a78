//! `cuGetProcAddress`: who asks the driver for a function gets ours.
//!
//! The driver decides whether a name, a version and a flag have an answer, and which: it may be older or newer than
//! our tables. We only put our own function in the place of the one it names. A function that nobody here knows is
//! given as it is, and counted, so that a report can say that something was not seen.

#![allow(non_snake_case)]

use std::ffi::{CStr, c_char, c_int, c_void};

use cuda_abi::{
    CUDA_SUCCESS, CUdriverProcAddressQueryResult, CUresult, Function, Lookup, cuuint64_t, symbol,
};
use telemetry::{Counter, Note};

use crate::{exports, next, own, watch};

/// # Safety
/// As the driver's manual says.
pub unsafe fn cuGetProcAddress(
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    version: c_int,
    flags: cuuint64_t,
) -> CUresult {
    // SAFETY: passed on to our caller.
    let result = unsafe { next::call::cuGetProcAddress(symbol, pfn, version, flags) };
    if result == CUDA_SUCCESS {
        // SAFETY: the driver has read the name and written the address.
        unsafe { put_ours(symbol, pfn, version, flags) };
    }
    result
}

/// # Safety
/// As the driver's manual says.
pub unsafe fn cuGetProcAddress_v2(
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    version: c_int,
    flags: cuuint64_t,
    status: *mut CUdriverProcAddressQueryResult,
) -> CUresult {
    // SAFETY: passed on to our caller.
    let result = unsafe { next::call::cuGetProcAddress_v2(symbol, pfn, version, flags, status) };
    if result == CUDA_SUCCESS {
        // SAFETY: the driver has read the name and written the address.
        unsafe { put_ours(symbol, pfn, version, flags) };
    }
    result
}

/// # Safety
/// The driver must have answered this question with success.
unsafe fn put_ours(symbol: *const c_char, pfn: *mut *mut c_void, version: c_int, flags: cuuint64_t) {
    if symbol.is_null() || pfn.is_null() {
        return;
    }
    // SAFETY: the driver has read it as a C string.
    let name = unsafe { CStr::from_ptr(symbol) };
    // SAFETY: the driver has written an address there.
    let given = unsafe { pfn.read() };
    if given.is_null() {
        return;
    }
    if let Some(ours) = ours(name.to_str().unwrap_or_default(), given, version, flags) {
        // SAFETY: where the driver has written, we may.
        unsafe { pfn.write(ours) };
    }
}

/// Our function for the one that the driver gave.
fn ours(name: &str, given: *mut c_void, version: c_int, flags: cuuint64_t) -> Option<*mut c_void> {
    let function = known(name, given, version, flags);
    watch::quietly("cuGetProcAddress", |watch| {
        watch.ledger.add(Counter::FunctionsAsked, 1);
        if function.is_none() {
            watch.ledger.add(Counter::FunctionsForeign, 1);
            watch.ledger.note(Note::NewerDriver);
            watch.ledger.detail(name.as_bytes());
        }
    });
    function.map(|function| exports::address_of(function).cast_mut())
}

fn known(name: &str, given: *mut c_void, version: c_int, flags: cuuint64_t) -> Option<Function> {
    let meant = match symbol(name, version, flags) {
        Lookup::Found(function) => Some(function),
        Lookup::VersionTooLow | Lookup::NotFound => None,
    };
    // The name first: two functions of a driver may be one piece of code.
    if meant.is_some_and(|function| next::address(function) == Some(given)) {
        return meant;
    }
    // Asked for the newest, a driver gives its own newest, and our tables may know a newer one.
    if let Some(function) = next::function_at(given) {
        return Some(function);
    }
    let unexported = meant.filter(|&function| next::address(function).is_none() && !own::contains(given))?;
    next::adopt(unexported, given);
    Some(unexported)
}
