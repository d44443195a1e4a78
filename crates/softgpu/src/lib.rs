//! A GPU in software.
//!
//! It executes PTX on the CPU, with the behaviour that matters to whoever shares a GPU: SMs with limited room,
//! blocks dispatched in linear order, streams and priorities that act at block boundaries, contexts that take
//! turns with a timeslice and a switching cost or run all at once, faults that kill their context, and several
//! processes on one card. There is no C and no CUDA handle in here: `softcuda` puts those in front.
//!
//! From the text of a kernel to its effect:
//!
//! * [`lower`] turns PTX into an image in [`isa`], a dense program; it alone knows what instructions mean.
//! * [`simt`] executes a block of a launch: warps of 32 lanes that diverge and come together again.
//! * [`numeric`] is the arithmetic of PTX, bit for bit, as pure functions.
//! * [`memory`] is the address space of a process.
//! * [`engine`] makes submitted work happen: tasks, grids, blocks on SMs, and time.
//! * [`card`] is what processes share: who is there, whose turn it is, what is taken of each SM.

pub mod card;
pub mod engine;
pub mod error;
pub mod isa;
pub mod lower;
pub mod memory;
pub mod numeric;
pub mod simt;
