//! A `libcuda.so.1` that does nothing, as fast as it can.
//!
//! Every function of the driver is exported and answers `CUDA_SUCCESS` without looking at its arguments. That makes
//! it the baseline against which the cost of whatever stands in front of a driver is measured. With
//! `NULLCUDA_ANSWER=<code>` in the environment when the library is loaded, every function answers that code instead:
//! the driver from which nothing but errors comes.
//!
//! Three functions do say something while the answer is success, because programs find their way by them:
//! `cuGetProcAddress` in both forms gives the addresses of this library, and `cuDriverGetVersion` says 13000.
//!
//! A fixture of tests and benchmarks; never installed.

// The safety of a CUDA function is in its manual.
#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_abi::*;

/// The version this driver claims to be.
const VERSION: c_int = 13000;

macro_rules! answers {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        /// What each function answers. One number would do; with one each, no two functions have the same code, and
        /// the compiler does not give two symbols the same address.
        struct Answers { $($name: AtomicU32,)* }

        static ANSWERS: Answers = Answers { $($name: AtomicU32::new(CUDA_SUCCESS.0),)* };

        impl Answers {
            fn set(&self, code: u32) {
                $(self.$name.store(code, Ordering::Relaxed);)*
            }
        }
    };
}
for_each_function!(answers);

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        let wanted = std::env::var("NULLCUDA_ANSWER").ok().and_then(|code| code.parse().ok());
        if let Some(code) = wanted {
            ANSWERS.set(code);
        }
    }
    at_load
};

/// The functions that say something. The arguments are those of the C functions, under their manual's terms.
mod spoken {
    use super::*;

    pub unsafe fn cuDriverGetVersion(driverVersion: *mut c_int) -> CUresult {
        // SAFETY: a place for the version, or null.
        unsafe { give(driverVersion, VERSION) }
    }

    pub unsafe fn cuGetProcAddress(
        symbol: *const c_char,
        pfn: *mut *mut c_void,
        cudaVersion: c_int,
        flags: cuuint64_t,
    ) -> CUresult {
        let mut status = CU_GET_PROC_ADDRESS_SUCCESS;
        // SAFETY: passed on to our caller; the status is our own.
        let answer = unsafe { cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, &mut status) };
        let found = status == CU_GET_PROC_ADDRESS_SUCCESS;
        if answer == CUDA_SUCCESS && !found { CUDA_ERROR_NOT_FOUND } else { answer }
    }

    pub unsafe fn cuGetProcAddress_v2(
        symbol: *const c_char,
        pfn: *mut *mut c_void,
        cudaVersion: c_int,
        flags: cuuint64_t,
        symbolStatus: *mut CUdriverProcAddressQueryResult,
    ) -> CUresult {
        let known =
            u64::from(CU_GET_PROC_ADDRESS_LEGACY_STREAM.0 | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM.0);
        if symbol.is_null() || flags & !known != 0 || cudaVersion > VERSION {
            return CUDA_ERROR_INVALID_VALUE;
        }
        // SAFETY: not null, so the caller's C string.
        let name = unsafe { CStr::from_ptr(symbol) }.to_str().unwrap_or_default();
        let (address, status) = match cuda_abi::symbol(name, cudaVersion, flags) {
            Lookup::Found(function) => (super::ADDRESSES[function.index()], CU_GET_PROC_ADDRESS_SUCCESS),
            Lookup::VersionTooLow => (std::ptr::null(), CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
            Lookup::NotFound => (std::ptr::null(), CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
        };
        // SAFETY: a place for the status, or null, which is allowed here.
        let _ = unsafe { give(symbolStatus, status) };
        // SAFETY: a place for the address, or null.
        unsafe { give(pfn, address.cast_mut()) }
    }

    unsafe fn give<T>(place: *mut T, value: T) -> CUresult {
        if place.is_null() {
            return CUDA_ERROR_INVALID_VALUE;
        }
        // SAFETY: not null, so the place for an answer which the caller has.
        unsafe { place.write(value) };
        CUDA_SUCCESS
    }
}

/// Says nothing: the body of every function that is not in `spoken`.
#[allow(dead_code)]
mod silent {
    use super::CUresult;

    macro_rules! silences {
        ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
            $(#[inline(always)]
            pub unsafe fn $name($(_: $type),*) -> CUresult { cuda_abi::CUDA_SUCCESS })*
        };
    }
    cuda_abi::for_each_function!(silences);
}

mod chosen {
    pub use super::silent::*;
    pub use super::spoken::{cuDriverGetVersion, cuGetProcAddress, cuGetProcAddress_v2};
}

macro_rules! exports {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> CUresult {
            let answer = CUresult(ANSWERS.$name.load(Ordering::Relaxed));
            if answer != CUDA_SUCCESS {
                return answer;
            }
            // SAFETY: the arguments of the CUDA function that is being called, under its manual's terms.
            unsafe { chosen::$name($($arg),*) }
        })*

        const ADDRESSES: [*const c_void; Function::COUNT] = [$($name as *const c_void),*];
    };
}
for_each_function!(exports);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_symbol_has_an_address_of_its_own() {
        let addresses: BTreeSet<usize> = ADDRESSES.iter().map(|address| address.addr()).collect();
        assert_eq!(addresses.len(), Function::COUNT);
    }

    #[test]
    fn functions_are_found_by_name_version_and_flag() {
        let (mut address, mut status) = (std::ptr::null_mut(), CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
        // SAFETY: a C string and places for the answers.
        let answer =
            unsafe { cuGetProcAddress_v2(c"cuMemAlloc".as_ptr(), &mut address, 12000, 0, &mut status) };
        assert_eq!((answer, status), (CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS));
        assert_eq!(address.cast_const(), cuMemAlloc_v2 as *const c_void);
        // SAFETY: a C string and a place for the answer.
        let answer = unsafe { cuGetProcAddress(c"cuNoSuchThing".as_ptr(), &mut address, 12000, 0) };
        assert_eq!(answer, CUDA_ERROR_NOT_FOUND);
        assert!(address.is_null());
    }
}
