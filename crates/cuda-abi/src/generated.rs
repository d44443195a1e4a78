//! Written by `cargo xtask gen` from the CUDA headers, and reproduced by `cargo xtask gen --check`.
//!
//! The names are the headers' own, so the lints about names and about bindgen's habits are off here and only
//! here.

pub(crate) mod errors;
pub(crate) mod functions;
pub(crate) mod procs;

/// The one kind of unsafe code in the crate is bindgen's: a structure with unions or pointers in it has a
/// `Default` of all zero bytes, which is a valid value of every type here (an integer, a null pointer, `None`
/// for a function, and arrays and unions of those).
#[allow(non_camel_case_types, non_snake_case, non_upper_case_globals)]
#[allow(unsafe_code, clippy::undocumented_unsafe_blocks, clippy::multiple_unsafe_ops_per_block)]
#[allow(clippy::all)]
pub(crate) mod types;
