//! The symbols of the library.
//!
//! Every function of the driver is exported. `refusals` answers for all of them; a function named in
//! `api::implemented` hides its refusal, so the list there is the list of what works. The twins for per-thread
//! default streams follow from those.

#![allow(non_snake_case, clippy::too_many_arguments)]

use std::ffi::{c_int, c_void};

use cuda_abi::{CUresult, Function};

use crate::entry::{self, FromC, Out, Passed};
use crate::error::Result;
use crate::state::control::Control;

/// Those that are hidden by an implementation are of no use, and the compiler says so.
#[allow(dead_code)]
pub mod refusals {
    use crate::error::{Error, Result};

    macro_rules! refuse_each {
        ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
            $(pub fn $name($(_: $type),*) -> Result<()> { Err(Error::unsupported(stringify!($name))) })*
        };
    }
    cuda_abi::for_each_function!(refuse_each);
}

mod twins {
    use super::*;

    macro_rules! pass_each {
        ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $plain:ident;)*) => {
            $(pub fn $name($($arg: Passed<$type>),*) -> Result<()> {
                entry::per_thread(move || super::chosen::$plain($($arg.on()),*))
            })*
        };
    }
    cuda_abi::for_each_per_thread_function!(pass_each);
}

mod chosen {
    pub use crate::api::implemented::*;

    macro_rules! import_each {
        ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $plain:ident;)*) => {
            $(pub use super::twins::$name;)*
        };
    }
    cuda_abi::for_each_per_thread_function!(import_each);
}

macro_rules! export_each {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> CUresult {
            entry::call(stringify!($name), move || {
                chosen::$name($({
                    // SAFETY: an argument of the CUDA function that is being called, under its manual's terms.
                    unsafe { FromC::from_c($arg) }
                }),*)
            })
        })*

        const ADDRESSES: [*const c_void; Function::COUNT] = [$($name as *const c_void),*];
    };
}
cuda_abi::for_each_function!(export_each);

/// The one symbol that no driver of NVIDIA's has: controls on all contexts of the calling process, for a library in
/// front of this one, which knows a software GPU by it. `operation` is 0 to count the contexts, 1 for the timeslice in
/// nanoseconds, 2 to set it to `value`, 3 to preempt, 4 to disable, 5 to enable, 6 for a new descriptor of a file on which
/// tenants of the card meet (`value` 0: the lock, 1: the queue before it); what is set holds for later contexts, too. The
/// answer, if it has a place to go, is the timeslice for 1, the descriptor for 6, and the number of contexts for all others.
///
/// # Safety
/// `answer` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ebb_softgpu_control(operation: u32, value: u64, answer: *mut u64) -> c_int {
    // SAFETY: an argument of this function, under the terms above.
    let place: Out<u64> = unsafe { FromC::from_c(answer) };
    entry::control(|| {
        let answer = Control::numbered(operation, value)?.perform()?;
        place.set_if_wanted(answer);
        Ok(())
    })
}

/// Where a function of the library is, for `cuGetProcAddress`.
pub fn address_of(function: Function) -> *const c_void {
    ADDRESSES[function.index()]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cuda_abi::*;

    use super::*;

    #[test]
    fn every_symbol_has_an_address_of_its_own() {
        let addresses: BTreeSet<usize> =
            Function::all().map(|function| address_of(function).addr()).collect();
        assert_eq!(addresses.len(), Function::COUNT);
        assert!(!addresses.contains(&0));
    }

    #[test]
    fn what_is_not_implemented_says_so() {
        // SAFETY: a refusal looks at no argument.
        let answer = unsafe { cuTexObjectDestroy(0) };
        assert_eq!(answer, CUDA_ERROR_NOT_SUPPORTED);
    }

    #[test]
    fn nothing_works_before_cu_init_but_what_needs_no_device() {
        let mut count = 0;
        // SAFETY: a place for the result.
        assert_eq!(unsafe { cuDeviceGetCount(&mut count) }, CUDA_ERROR_NOT_INITIALIZED);
        // SAFETY: a place for the result.
        assert_eq!(unsafe { cuDriverGetVersion(&mut count) }, CUDA_SUCCESS);
        assert_eq!(count, 13000);
        // SAFETY: no pointers.
        assert_eq!(unsafe { cuStreamSynchronize_ptsz(std::ptr::null_mut()) }, CUDA_ERROR_NOT_INITIALIZED);
    }
}
