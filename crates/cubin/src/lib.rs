//! The images a CUDA driver is asked to load: PTX text, fatbin containers, cubins.
//!
//! [`Image::read`] tells them apart by their first bytes. A [`Fatbin`] is a list of [`Entry`]s, each the same
//! program for another target, as PTX or as machine code, often compressed; a [`Cubin`] is an ELF file of
//! machine code, of which only what names it is read there. Who wants to change machine code takes the [`File`] apart:
//! sections and symbols, relocations, [`kernel::Kernel`]s with what belongs to each, and the compiler's records about
//! them ([`info`]). What is not changed is written back byte for byte.
//!
//! Bytes come from anybody, so every number in them is an allegation: offsets are checked before use, a claimed
//! size is held against [`fatbin::decompressed_limit`] before memory is spent on it and against the truth
//! afterwards, and all work is linear in the input (times that limit, where data is decompressed).
//!
//! What the driver does where the format leaves a choice was tried on an H200 with driver 580; comments say so.
#![forbid(unsafe_code)]

mod bytes;
mod compression;
pub mod elf;
mod error;
pub mod fatbin;
pub mod file;
mod image;
pub mod info;
pub mod kernel;
pub mod relocation;
mod target;

pub use elf::Cubin;
pub use error::Error;
pub use fatbin::{Entry, Fatbin, Kind};
pub use file::File;
pub use image::{Image, text};
pub use target::{Target, Variant};
