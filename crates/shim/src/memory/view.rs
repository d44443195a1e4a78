//! What a program is told when it asks how much memory there is.
//!
//! With a limit the card is as large as that. What is free is what is left of the limit, or of the card if that is less. The
//! first does not depend on who else is there, so programs that start at the same time and size themselves by the answer
//! each see their own share.

#![allow(non_snake_case)]

use std::ffi::c_uint;

use cuda_abi::{CUDA_SUCCESS, CUdevice, CUresult};

use super::account::{self, Room};
use super::{Home, quietly};
use crate::next;

/// A number that may be too large for its place.
trait Amount: Copy {
    fn wide(self) -> u64;
    fn narrow(amount: u64) -> Self;
}

impl Amount for usize {
    fn wide(self) -> u64 {
        self as u64
    }

    fn narrow(amount: u64) -> usize {
        usize::try_from(amount).unwrap_or(usize::MAX)
    }
}

impl Amount for c_uint {
    fn wide(self) -> u64 {
        self.into()
    }

    fn narrow(amount: u64) -> c_uint {
        c_uint::try_from(amount).unwrap_or(c_uint::MAX)
    }
}

/// Lowers what the driver has written.
///
/// # Safety
/// Null, or a place where the driver has written a number.
unsafe fn lower<T: Amount>(place: *mut T, most: u64) {
    if place.is_null() {
        return;
    }
    // SAFETY: as the caller says.
    let said = unsafe { place.read() };
    // SAFETY: as the caller says.
    unsafe { place.write(T::narrow(said.wide().min(most))) };
}

fn room(name: &'static str, home: Option<Home>) -> Option<Room> {
    quietly(name, |watch| account::of(home?.device).room(watch)).flatten()
}

macro_rules! infos {
    ($($name:ident($type:ty);)*) => {
        $(
            /// # Safety
            /// As the driver's manual says.
            pub unsafe fn $name(free: *mut $type, total: *mut $type) -> CUresult {
                // SAFETY: passed on to our caller.
                let result = unsafe { next::call::$name(free, total) };
                if result == CUDA_SUCCESS
                    && let Some(room) = room(stringify!($name), Home::here())
                {
                    // SAFETY: the driver has just written there, or nowhere if it is null.
                    unsafe { lower(free, room.left) };
                    // SAFETY: the driver has just written there, or nowhere if it is null.
                    unsafe { lower(total, room.limit) };
                }
                result
            }
        )*
    };
}
infos! {
    cuMemGetInfo(c_uint);
    cuMemGetInfo_v2(usize);
}

macro_rules! totals {
    ($($name:ident($type:ty);)*) => {
        $(
            /// # Safety
            /// As the driver's manual says.
            pub unsafe fn $name(bytes: *mut $type, device: CUdevice) -> CUresult {
                // SAFETY: passed on to our caller.
                let result = unsafe { next::call::$name(bytes, device) };
                if result == CUDA_SUCCESS
                    && let Some(room) = room(stringify!($name), Home::on(device))
                {
                    // SAFETY: the driver has just written there.
                    unsafe { lower(bytes, room.limit) };
                }
                result
            }
        )*
    };
}
totals! {
    cuDeviceTotalMem(c_uint);
    cuDeviceTotalMem_v2(usize);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_lowered_and_never_raised() {
        let (mut wide, mut narrow) = (1usize << 40, 700u32);
        // SAFETY: a number of ours.
        unsafe { lower(&raw mut wide, 1 << 30) };
        // SAFETY: a number of ours.
        unsafe { lower(&raw mut narrow, 1 << 40) };
        assert_eq!((wide, narrow), (1 << 30, 700));
        // SAFETY: null may be given.
        unsafe { lower(std::ptr::null_mut::<usize>(), 1) };
    }
}
