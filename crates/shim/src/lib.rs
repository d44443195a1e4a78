//! `libcuda.so.1` in front of a driver.
//!
//! A program that opens `libcuda.so.1` gets this library, because it is preloaded under that very name or lies
//! first on the library path. Every function of the driver is here, with its exact ABI, and goes on to the same
//! function of the real driver; what a program asks for by `cuGetProcAddress` it gets from here too. Nothing about
//! a call is changed: hooks only look on, and count. Only *when* work is handed to the GPU is decided here, in a process
//! that is a tenant: a best-effort one waits at a gate for its turn; and how much memory there is, in one that has a limit.
//!
//! The library is a guest. It does nothing before the first CUDA call; it does not touch the host's heap; it never
//! prints unless `EBB_LOG` is set, never waits without a bound, and a hook that fails takes itself out of the way
//! and says so in the ledger.
//!
//! A call passes these rooms, in this order:
//!
//! * `exports`: the C symbols, one line each, and `cuGetProcAddress`, which deals them out (`address`)
//! * `next`: the driver behind, found and opened at the first call; a forwarded call is one load and one jump
//! * `entry`: what an argument means once the driver has answered; where a panic ends
//! * `hooks`: what a call says about the program, one file per subject
//! * `frames`: what is known about a handle: names and hashes of kernels, nodes of graphs, learned once
//! * `watch`: this process's ledger and what becomes of it in a fork
//! * `twins`: the rewritten kernels that a best-effort tenant launches instead, and the thread that makes them
//! * `guard`: stopping between the blocks of a kernel, and what must wait until cut launches are whole again
//! * `memory`: how much of each GPU's memory this process has, and may have
//! * `tenancy`: sharing the GPU: the gate, the keeper, the token, bursts; `channels`, which overhears the driver's `ioctl`
//!
//! Beside them: `undocumented` (functions without a header), `loader` (opens by absolute path), `own`, `thread`, `arena`, `heap`, `lock`, `log` and, for tests, `fault`.

// The jumps of `loader` and `undocumented` are written for x86-64. Elsewhere these two rooms are shut: programs that open
// the driver by its path are not seen there, and functions without a header are not exported.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

mod address;
mod arena;
mod channels;
mod entry;
mod exports;
mod fault;
mod frames;
mod guard;
mod heap;
mod hooks;
mod loader;
mod lock;
mod log;
mod memory;
mod next;
mod own;
mod surroundings;
mod tenancy;
mod thread;
mod twins;
mod undocumented;
mod watch;
