//! The interface of the CUDA driver, as facts: types, functions, versions, errors. Nothing here does anything.
//!
//! Nearly all of it is generated from NVIDIA's headers by `cargo xtask gen`; the headers themselves are not
//! in the repository. Two decisions run through it.
//!
//! **A C enum is an integer.** We stand where the driver stands: callers may be newer than these headers and
//! pass values nobody here has heard of. So every enum is a newtype over an integer with constants beside it
//! ([`CUresult`]`(1)` is [`CUDA_ERROR_INVALID_VALUE`]); a Rust `enum` would make such a call undefined behaviour.
//!
//! **A symbol is what counts.** In C, `cuMemAlloc` is a macro for `cuMemAlloc_v2`, and programs may still ask
//! for the old one. The functions listed here are the exported symbols, all of them, with the signature each
//! symbol has had since it appeared. [`symbol`] tells which of them a program means.
//!
//! # Dealing out the functions
//!
//! [`for_each_function!`] takes the name of a macro and calls it once, with every function as
//!
//! ```text
//! fn cuInit(Flags: ::core::ffi::c_uint) -> $crate::CUresult;
//! fn cuDriverGetVersion(driverVersion: *mut ::core::ffi::c_int) -> $crate::CUresult;
//! ```
//!
//! sorted by name. All types are full paths, so the callback needs no imports. One invocation rather than one
//! per function, so that the callback can make one struct or one array of them.
//!
//! *A table of a library's functions*, for whoever calls a driver: fields that are looked up by name.
//!
//! ```
//! macro_rules! table {
//!     ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
//!         #[allow(non_snake_case)]
//!         pub struct Driver {
//!             $(pub $name: Option<unsafe extern "C" fn($($arg: $type),*) -> $result>,)*
//!         }
//!         impl Driver {
//!             /// # Safety
//!             /// `find` must give the address of the function of that name, or null.
//!             pub unsafe fn load(find: impl Fn(&str) -> *mut core::ffi::c_void) -> Driver {
//!                 // SAFETY: the caller gives addresses of these functions; null is None.
//!                 Driver { $($name: unsafe { core::mem::transmute::<_, Option<_>>(find(stringify!($name))) },)* }
//!             }
//!         }
//!     };
//! }
//! cuda_abi::for_each_function!(table);
//! # // SAFETY: null is always allowed.
//! # assert!(unsafe { Driver::load(|_| std::ptr::null_mut()) }.cuInit.is_none());
//! ```
//!
//! *A library's exports*, for whoever is a driver: every symbol must exist, most call an implementation, the
//! rest refuse. Let one module refuse everything and another take the implemented ones by name: a named
//! import hides a glob, so the list of names is the list of what works.
//!
//! ```
//! mod entry {                                     // written by hand
//!     pub unsafe fn cuInit(_flags: u32) -> cuda_abi::CUresult { cuda_abi::CUDA_SUCCESS }
//! }
//! macro_rules! refusals {
//!     ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
//!         $(pub unsafe fn $name($(_: $type),*) -> $result { cuda_abi::CUDA_ERROR_NOT_SUPPORTED })*
//!     };
//! }
//! #[allow(non_snake_case)]
//! mod refuse { cuda_abi::for_each_function!(refusals); }
//! mod chosen {
//!     pub use super::refuse::*;
//!     pub use super::entry::{cuInit};             // hides refuse::cuInit
//! }
//! macro_rules! exports {
//!     ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
//!         $(#[unsafe(no_mangle)]
//!         pub unsafe extern "C" fn $name($($arg: $type),*) -> $result {
//!             // SAFETY: passed on to our caller.
//!             unsafe { super::chosen::$name($($arg),*) }
//!         })*
//!         /// By `Function::index`, for `cuGetProcAddress`.
//!         pub fn addresses() -> [*const core::ffi::c_void; cuda_abi::Function::COUNT] {
//!             [$($name as *const core::ffi::c_void),*]
//!         }
//!     };
//! }
//! #[allow(non_snake_case)]
//! mod export { cuda_abi::for_each_function!(exports); }
//! # fn main() {
//! # // SAFETY: neither touches anything.
//! # assert_eq!(unsafe { export::cuInit(0) }, cuda_abi::CUDA_SUCCESS);
//! # assert_eq!(unsafe { export::cuCtxSynchronize() }, cuda_abi::CUDA_ERROR_NOT_SUPPORTED);
//! # let index = cuda_abi::Function::named("cuInit").unwrap().index();
//! # assert_eq!(export::addresses()[index], export::cuInit as *const core::ffi::c_void);
//! # }
//! ```
//!
//! A library *in front of* a driver is the same with `refuse` replaced by a forward through the table.
//!
//! [`for_each_per_thread_function!`] deals only the `_ptsz` and `_ptds` functions, each with the function it is
//! the twin of: `fn cuLaunchKernel_ptsz(f: …) -> …= cuLaunchKernel;`. Whoever keeps "which stream is stream 0"
//! in a thread's state can write all of them at once, as items of `chosen` above, which hide the glob too.

#![no_std]
#![deny(unsafe_code)]

mod constants;
mod error;
mod generated;
mod lookup;

pub use constants::*;
pub use generated::types::*;
pub use lookup::symbol;

/// One exported symbol of the driver.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function(u16);

/// The answer of [`symbol`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// This function. `cuGetProcAddress` gives its address, if the driver has it.
    Found(Function),
    /// The name exists, but was published in a later version than asked for.
    VersionTooLow,
    /// No version has the name.
    NotFound,
}
