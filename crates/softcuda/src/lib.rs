//! `libcuda.so.1` over the software GPU.
//!
//! A program that loads this library finds the whole CUDA driver interface: every symbol is there, those that
//! the software GPU has no counterpart for (textures, graphics, multicast, green contexts and the like) answer
//! with CUDA's own `NOT_SUPPORTED` and, if `EBB_LOG` is set, say so on stderr. Nothing pretends.
//!
//! A call passes three rooms. `exports` is the C symbol; it turns the arguments into safe types (`entry`) and
//! catches panics. `api` holds the CUDA functions, by subject: arguments are checked, in the order and with
//! the codes of a real driver. `state` is what the driver knows: contexts, streams, graphs, modules; it sits on
//! the engine, the memory and the executor of `softgpu`. A handle is a number that is looked up at every use
//! (`handles`), so a stale one is refused and never followed.

mod api;
mod entry;
mod error;
mod exports;
mod handles;
mod log;
mod state;
