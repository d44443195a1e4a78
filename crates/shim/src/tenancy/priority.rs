//! Streams of latency tenants go first, in the shared domain.
//!
//! Where contexts run at the same time, the GPU takes blocks from the stream of the highest priority. A program that says
//! nothing about priorities gets the lowest, so a latency tenant's streams are made with the highest instead. Who asks
//! for a priority gets what it asks for: it means something among its own streams. Default streams are made by the driver,
//! and have only the priority of their client (`ebb run` sets it).

#![allow(non_snake_case)]

use std::ffi::c_uint;

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
    unsafe { next::call::cuStreamCreateWithPriority(stream, flags, highest_priority()) }
}

/// By what `ebb run` said: streams are made before there is a seat.
fn goes_first() -> bool {
    let is = |name, value| variable(name).is_some_and(|found| found == value);
    is(c"EBB_DOMAIN", c"shared") && membership::class() == Class::Latency && variable(c"EBB_SOCKET").is_some()
}
