//! What a process says about itself, in shared memory.
//!
//! A *ledger* is a small file that one process maps and counts into, and that anybody with the right to read it
//! can look at while the process runs and after it has died, however it died. It is the proof that the shim was
//! attached, and the place from which every viewer reads.
//!
//! The writer lives in somebody else's process, so it does not allocate, does not lock and never fails after it
//! has been opened: counting is one addition to memory that is known to be there. The reader lives in ours and
//! trusts nothing: a ledger is bytes from outside, and every number in it an allegation until checked.
//!
//! * [`Counter`], [`Note`]: what can be counted and what can be said
//! * [`Ledger`]: the writer
//! * [`Reading`]: the reader

mod counter;
mod error;
mod layout;
mod ledger;
mod note;
mod reading;

pub use counter::{AllocationKind, CopyKind, Counter, LaunchKind, ModuleKind, StreamKind};
pub use error::Error;
pub use layout::KERNELS;
pub use ledger::{Kernel, KernelIdentity, Ledger};
pub use note::Note;
pub use reading::{KernelReading, Reading};
