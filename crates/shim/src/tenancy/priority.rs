//! Streams of latency tenants go first, in the shared domain.
//!
//! Where contexts run at the same time, the GPU takes blocks from the stream of the highest priority. A program that says
//! nothing about priorities gets the lowest, which is what best-effort tenants have too; so a latency tenant's streams are
//! made with the highest but one, and those for which it asks for more than the lowest with the highest. Default streams are
//! made by the driver, and have only the priority of their client (`ebb run` sets it).

#![allow(non_snake_case)]

use std::ffi::{c_int, c_uint};

use cuda_abi::{CUresult, CUstream};
use model::Class;

use super::membership;
use super::raise::highest_priority;
use crate::next;
use crate::surroundings::variable;

/// # Safety
/// As the driver's manual says.
pub unsafe fn cuStreamCreate(stream: *mut CUstream, flags: c_uint) -> CUresult {
    if !goes_first() {
        // SAFETY: passed on to our caller.
        return unsafe { next::call::cuStreamCreate(stream, flags) };
    }
    // SAFETY: passed on to our caller; the priority is one that the driver named.
    unsafe { next::call::cuStreamCreateWithPriority(stream, flags, raised(0, highest_priority())) }
}

/// # Safety
/// As the driver's manual says.
pub unsafe fn cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int) -> CUresult {
    let priority = if goes_first() { raised(priority, highest_priority()) } else { priority };
    // SAFETY: passed on to our caller.
    unsafe { next::call::cuStreamCreateWithPriority(stream, flags, priority) }
}

/// The higher a priority, the lower its number; nought is the lowest.
fn raised(asked: c_int, highest: c_int) -> c_int {
    if asked < 0 { highest } else { (highest + 1).min(0) }
}

/// By what `ebb run` said: streams are made before there is a seat.
fn goes_first() -> bool {
    let is = |name, value| variable(name).is_some_and(|found| found == value);
    is(c"EBB_DOMAIN", c"shared") && membership::class() == Class::Latency && variable(c"EBB_SOCKET").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_raised_and_keep_their_order() {
        assert_eq!([0, -1, -5].map(|asked| raised(asked, -5)), [-4, -5, -5]);
        assert_eq!([0, 3].map(|asked| raised(asked, 0)), [0, 0], "a device with one priority");
    }
}
