//! `libnvidia-ml.so.1` in front of NVIDIA's: what a tenant with a limit sees of a GPU's memory.
//!
//! Programs size themselves by what NVML says as well as by what CUDA says. They open `libnvidia-ml.so.1` and look functions
//! up in that very library, so a function of the same name elsewhere is never found, and to interpose `dlsym` would break
//! programs that have nothing to do with a GPU. But a library that is loaded already and goes by that name is what the loader
//! answers with. This is that library: `ebb run` preloads it into tenants that have a limit, and into no others.
//!
//! Every function of NVML is here. All but three are jumps that leave registers and stack as they came, so nothing needs to be
//! known of their arguments; what the real library does not have says so in NVML's words. Answered here are the two
//! questions about memory: the real library is asked, and its numbers are lowered to what the shim would tell this process by
//! `cuMemGetInfo`. The third is the one function that gives a text, which must be one even where there is no real library.
//!
//! * `names`: which functions there are
//! * `jumps`: the symbols, and the way from each to its slot
//! * `next`: the real library, found and opened at the first call, and the slots
//! * `memory`: the answers about memory; `view`: what the shim says of them
//!
//! The library is a guest. It does nothing before the first call, not even when it is loaded; it has no heap, no lock and no
//! thread, prints nothing, and no line of it can panic: whatever cannot be found out leaves the real library's answer as it is.

// The jumps are written for x86-64. Elsewhere the library lacks them, and `ebb run` does not preload it.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

mod jumps;
mod memory;
mod names;
mod next;
mod view;
