//! The CUDA driver and programs as installed on this machine.
//!
//! Eight questions are answered here; but for the two about folders, which make a folder where it is missing, by looking and never by
//! changing anything:
//!
//! * [`search`]: where may the real `libcuda.so.1` be, and where NVML? The shim asks this inside other people's processes, so it
//!   is pure, takes what it reads as bytes, and allocates nothing.
//! * [`driver`]: of the places it may be, where is it?
//! * [`library`]: what is this library file: whose, for which architecture, exporting which names?
//! * [`program`]: will a library preloaded into this command be loaded at all? The loader says nothing when it is
//!   not (static programs, set-user-id programs, another C library), so somebody must ask beforehand.
//! * [`machine`]: kernel module, device nodes, MPS, containers, other preloads.
//! * [`runtime`]: in which folder do the processes of this user find each other?
//! * [`memory`]: in which folder is kept what was found out about kernels?
//! * [`secret`]: may a file with a secret in it be believed to be one?
//!
//! Files come from anybody: every offset in them is an allegation until checked.
#![forbid(unsafe_code)]

mod architecture;
mod cache;
pub mod driver;
mod error;
pub mod library;
pub mod machine;
pub mod memory;
pub mod program;
pub mod runtime;
pub mod search;
pub mod secret;

pub use architecture::Architecture;
pub use error::Error;
pub use library::Library;
pub use machine::Machine;
