//! The driver behind.
//!
//! There is one slot per function. Before the first call every slot leads to `resolve`, which opens the driver and
//! fills all slots; from then on a call is a load and a jump. A function that the driver behind does not have leads
//! to `lacking`, which says so in CUDA's words.

#![allow(clippy::too_many_arguments)]

mod open;

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use cuda_abi::{CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, CUDA_ERROR_NO_DEVICE, CUresult, Function};

use crate::{exports, undocumented};

pub use open::{behind, foreign, is_behind};

macro_rules! slots {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        /// What each function is in C. A host may unwind through us, when it cancels a thread say.
        #[allow(non_camel_case_types)]
        mod signature {
            $(pub type $name = unsafe extern "C-unwind" fn($($type),*) -> $result;)*
        }

        /// The places of the functions, in the order of `Function::index`.
        #[allow(non_camel_case_types, clippy::enum_variant_names)]
        #[repr(usize)]
        enum Place { $($name,)* }

        /// Calls of the driver behind.
        #[allow(non_snake_case, dead_code)]
        pub mod call {
            use super::*;
            $(
                /// # Safety
                /// As the driver's manual says.
                #[inline(always)]
                pub unsafe fn $name($($arg: $type),*) -> $result {
                    // SYNC(driver-open): whoever sees the driver's address sees the driver loaded.
                    let address = SLOTS[Place::$name as usize].load(Ordering::Acquire);
                    // SAFETY: a slot holds a function of its own name, of the driver's or of this module's, and
                    // never null.
                    let function: signature::$name = unsafe { std::mem::transmute(address) };
                    // SAFETY: passed on to our caller.
                    unsafe { function($($arg),*) }
                }
            )*
        }

        #[allow(non_snake_case)]
        mod resolve {
            use super::*;
            $(pub unsafe extern "C-unwind" fn $name($($arg: $type),*) -> $result {
                open::once();
                // SAFETY: passed on to our caller.
                unsafe { call::$name($($arg),*) }
            })*
        }

        #[allow(non_snake_case)]
        mod lacking {
            use super::*;
            $(pub unsafe extern "C-unwind" fn $name($(_: $type),*) -> $result { absence() })*
        }

        static SLOTS: [AtomicPtr<c_void>; Function::COUNT] =
            [$(AtomicPtr::new(resolve::$name as *mut c_void)),*];
        const RESOLVE: [*mut c_void; Function::COUNT] = [$(resolve::$name as *mut c_void),*];
        const LACKING: [*mut c_void; Function::COUNT] = [$(lacking::$name as *mut c_void),*];
        const NAMES: [&CStr; Function::COUNT] = [$(
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("names of functions hold no zero byte"),
            }
        ),*];
    };
}
cuda_abi::for_each_function!(slots);

/// What a function answers that is not there. A program whose driver lacks it would not even have found it.
static ABSENCE: AtomicI32 = AtomicI32::new(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER.0 as i32);

pub fn absence() -> CUresult {
    CUresult(ABSENCE.load(Ordering::Relaxed).cast_unsigned())
}

/// Fills all slots from a table of addresses; null is a function that the driver does not have. So is our own function
/// of that name: to call it would be to call ourselves for ever.
fn fill(address_of: impl Fn(&CStr) -> *mut c_void) {
    for (index, (name, function)) in NAMES.iter().zip(Function::all()).enumerate() {
        let found = address_of(name);
        let own = exports::address_of(function).cast_mut();
        let address = if found.is_null() || found == own { LACKING[index] } else { found };
        // What another thread has filled stays: it may have found more since.
        // SYNC(driver-open): pairs with the load in every call.
        let slot = &SLOTS[index];
        let _ = slot.compare_exchange(RESOLVE[index], address, Ordering::Release, Ordering::Relaxed);
    }
    undocumented::fill(address_of);
}

/// Opens the driver if nobody has called it yet.
pub fn open() {
    open::once();
}

/// Lets every function answer that there is no device.
fn fill_with_nothing() {
    ABSENCE.store(CUDA_ERROR_NO_DEVICE.0.cast_signed(), Ordering::Relaxed);
    fill(|_| std::ptr::null_mut());
}

/// Where the driver's own function is; `None` if it has none.
pub fn address(function: Function) -> Option<*mut c_void> {
    let address = SLOTS[function.index()].load(Ordering::Acquire);
    (address != LACKING[function.index()]).then_some(address)
}

/// A function that the driver gives by `cuGetProcAddress` only, and does not export.
pub fn adopt(function: Function, address: *mut c_void) {
    // SYNC(driver-open): pairs with the load in every call.
    SLOTS[function.index()].store(address, Ordering::Release);
}

/// The function whose address this is in the driver behind.
pub fn function_at(address: *mut c_void) -> Option<Function> {
    Function::all().find(|function| SLOTS[function.index()].load(Ordering::Relaxed) == address)
}
