//! Kernels that can be stopped at their next block.
//!
//! A GPU has no means to take a running grid off its SMs and leave the rest of the process alone. But a grid is many
//! blocks, most of which wait for room, and a block can be asked to leave before it has done anything. So a kernel is
//! given a *prologue*: a few instructions in which one thread of the block looks at a word of device memory. While the
//! word is zero the block marks itself as run and goes on. When it is not, the block leaves: it is *turned away*, and
//! the launch is *cut*. Blocks that began always finish, so nothing has to be undone and nothing is done twice. To
//! resume, the same grid is launched again; blocks that have run see their mark and leave at once. No block is given
//! another's index, so whatever a kernel computes from its indices stays what it was, bit for bit.
//!
//! # Twins
//!
//! The kernel as the program loaded it is never touched. This crate makes of an image a second one, whose kernels have
//! the prologue and one parameter more, [`Control`]; whoever loads both may launch either. Images are machine code
//! ([`rewrite_cubin`]) or text ([`rewrite_ptx`]). A kernel that must not or cannot be rewritten stays byte for byte as
//! it was, and has a [`Verdict`] with its [`Reason`]: a kernel is never half rewritten.
//!
//! # Two rules
//!
//! Blocks are in principle independent, and then any set of them may be turned away ([`Rule::Plain`]: one word per
//! block). In practice some wait for blocks with lower numbers, and the blocks of a cluster must all run or all leave.
//! For these the blocks that run are a prefix of the linear order ([`Rule::Ordered`]). One prologue has both rules and
//! does what the launch asks for. Which one a kernel needs is read off its instructions before it is ever cut
//! ([`machine`]), for a wrong guess is a hang.
//!
//! # A guest
//!
//! The crate lives in other people's processes: no I/O, no threads, no clock, and no input makes it panic.
//!
//! * [`control`]: the words a rewritten kernel is launched with
//! * [`verdict`]: what may be done with a kernel, and why not more
//! * [`finding`]: what trials on the GPU have shown of it
//! * [`demotion`]: what was found out about kernels the hard way, line by line
//! * [`kept`]: a rewritten image as it lies on disk
//! * [`prologue`]: the instructions put before a kernel's own, for each architecture
//! * [`machine`]: what can be told from a kernel's instructions
//! * [`splice`]: prologues into machine code
//! * [`text`]: prologues into PTX
//! * [`rule`]: the two rules as a model, in which every order of events can be tried
#![forbid(unsafe_code)]

pub mod control;
pub mod demotion;
mod error;
pub mod finding;
pub mod kept;
pub mod machine;
pub mod prologue;
mod rewritten;
pub mod rule;
pub mod splice;
pub mod text;
#[cfg(any(test, feature = "trials"))]
pub mod trials;
pub mod verdict;

pub use control::{Control, Mode};
pub use error::Error;
pub use finding::{Finding, Obstacle};
pub use rewritten::{Kernel, Parameter, Rewritten};
pub use splice::rewrite_cubin;
pub use text::rewrite_ptx;
pub use verdict::{Launch, Reason, Rule, Verdict};

/// Changes whenever the same image would be rewritten to something else. What was rewritten by another version is not
/// to be used.
pub const VERSION: u32 = 1;
