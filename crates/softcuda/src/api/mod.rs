//! The functions of the driver, under their CUDA names, by subject.
//!
//! Parameters are already safe (see `entry`). A function checks them as a real driver does, finds what the
//! handles stand for, and leaves the rest to `state`.

#![allow(non_snake_case, clippy::too_many_arguments)]

mod attributes;
mod context;
mod copy;
mod device;
mod event;
mod fill;
mod function;
mod graph;
mod graph_exec;
mod graph_node;
mod green;
mod host_memory;
pub mod implemented;
mod init;
mod ipc;
mod jit;
mod launch;
mod library;
mod link;
mod memory;
mod module;
mod occupancy;
mod pointer;
mod pool;
mod primary;
mod stream;
mod stream_capture;
mod stream_memory;
mod user_object;
mod vmm;

/// What nearly every file here needs.
mod prelude {
    pub use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
    pub use std::sync::Arc;

    pub use cuda_abi::*;

    pub use crate::entry::{Address, Array, In, Out, Text};
    pub use crate::error::{Error, Result, refuse, require};
    pub use crate::handles::Handle;
    pub use crate::state::context::Context;
    pub use crate::state::driver::{DEVICE, driver};
    pub use crate::state::stream::Stream;
    pub use crate::state::{current, lock};
}
