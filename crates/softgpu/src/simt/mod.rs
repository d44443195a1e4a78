//! The executor: warps of 32 lanes in lockstep, with divergence.
//!
//! A [`Block`] is a coroutine: `start` begins a block of the grid, `run` advances it by about so many warp
//! instructions and says why it stopped. All state is in the `Block`, so suspending one means not running it.
//!
//! A warp is a set of *splits*, each with a program counter, a mask of lanes and a call frame. Lanes are
//! columns of the register file, so splits never disturb each other's registers. A warp that has not diverged
//! is a single split and runs in a loop that checks nothing. In a diverged warp the split that is deepest in
//! calls, then lowest in the program, runs first, and splits that meet at the start of a basic block in the
//! same frame become one again: compilers lay code out so that this is where paths join. A split that keeps
//! branching backwards while others wait gives way, so a lane may spin on a lock that its neighbour holds.
//!
//! | file | subject |
//! |---|---|
//! | `launch`, `module` | what is run: launches, loaded modules, kernels |
//! | `block`, `warp`, `machine` | scheduling of warps, of splits, and the instruction loop |
//! | `lanes` | reading and writing rows of registers |
//! | `control`, `sync` | branches and calls; instructions of several lanes |
//! | `barrier`, `mbarrier` | barriers of the block; barrier objects in its memory |
//! | `address`, `access`, `atomics` | memory |
//! | `stack`, `print` | the stack of a thread; device-side printf |
//! | `special`, `clock` | special registers; sleeping, and waiting for a clock without burning time |
//! | `ops` | arithmetic, by family |

pub(crate) mod access;
pub(crate) mod address;
pub(crate) mod atomics;
pub(crate) mod barrier;
mod block;
pub(crate) mod clock;
pub(crate) mod control;
pub(crate) mod lanes;
mod launch;
mod machine;
pub(crate) mod mbarrier;
mod module;
pub(crate) mod ops;
pub(crate) mod print;
pub(crate) mod special;
pub(crate) mod stack;
pub(crate) mod sync;
mod warp;

pub use block::Block;
pub use launch::{Clock, Launch, Outcome, Output};
pub use machine::{Flow, Machine};
pub use module::{Kernel, Module};
