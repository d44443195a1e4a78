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
//! Beside the ledger lies the *event log*: the last thousands of things that happened to the process, each with its
//! time. It is written by every thread without a lock and read by whoever polls it; what nobody has read in time is
//! overwritten, and the reader knows how much that was.
//!
//! * [`Counter`], [`Note`]: what can be counted and what can be said
//! * [`Ledger`]: the writer
//! * [`Reading`]: the reader; [`UnwrittenLedger`]: who could not make one
//! * [`Event`], [`What`]: something that happened; [`EventLog`]: the writer of them, [`EventReader`]: the reader
//!
//! Inside: `ring` (how a slot is published, tried in every order by `models`), `rings` (which ring a thread writes into), `shard`
//! (in which place a thread counts and writes), `log` (the file), `poll` (reading it).

mod counter;
mod error;
mod event;
mod file;
mod layout;
mod ledger;
mod log;
#[cfg(all(test, loom))]
mod models;
mod note;
mod poll;
mod reading;
mod ring;
mod rings;
mod shard;
mod sync;
#[cfg(all(any(test, feature = "trials"), not(loom)))]
pub mod trials;
mod unwritten;

pub use counter::{AllocationKind, CopyKind, Counter, LaunchKind, ModuleKind, StreamKind};
pub use error::Error;
pub use event::{Event, NO_KERNEL, NO_POST, What};
pub use file::Stem;
pub use layout::KERNELS;
pub use ledger::{Kernel, KernelIdentity, Ledger};
pub use log::{COURSE, EventLog, LAUNCHES, POSTS};
pub use note::Note;
pub use poll::{EventReader, Polled};
pub use reading::{KernelReading, Reading};
pub use unwritten::UnwrittenLedger;
