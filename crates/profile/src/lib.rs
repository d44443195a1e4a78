//! What is known of kernels, kept on disk.
//!
//! How long a kernel takes, how long one of its blocks, and what gap follows is learned while it runs. A program that starts
//! should not have to learn again what another run has learned, so it is kept: for each *platform* (kind of GPU, driver,
//! version of ebb) a file with a *record* for each kernel, and for each place of a recurring sequence that is worth it.
//!
//! ```text
//! a tenant  ──  Batch, now and then and in the end  ──┐
//! a tenant  ──  Batch  ───────────────────────────────┤ append, under the folder's lock
//!                                                     v
//!                              NVIDIA_H200-580.159.04-0.1.0-5f3c….profile  ──> Reading, by anybody, without a lock
//! ```
//!
//! **Records are sums.** Who has seen something writes down what it has seen, not what is known now. So nobody has to read
//! before it writes, two who write at the same time do not undo each other's, and what is lost with one who is killed is what it
//! had not handed over yet. A file is a journal of such sums; now and then somebody adds them up and writes the file anew. The
//! other way, where everybody reads all, adds its own and renames a new file over the old, writes megabytes to keep a few
//! hundred bytes, and holds the lock for as long.
//!
//! **Nobody waits long.** A batch is written in one piece under a lock that is held for some 30 µs, and that the kernel frees
//! when its owner dies. It is waited for with a bound; who does not get it keeps its batch and comes again. Readers take none.
//! To add up a full file takes a tenth of a second, so tenants do that in time, on a thread that nobody waits for
//! ([`Store::tidy`]); otherwise one append in some hundreds takes that long.
//!
//! **Bytes are allegations.** Each record has a sum of its own, so that what is damaged costs one record. A file whose
//! beginning is wrong, or that is mostly damaged, is set aside under another name, which whoever found it is told, and learned
//! anew. No input makes a reader panic, or allocate more than the bytes it was given warrant.
//!
//! **All is bounded.** A file has a greatest length. Before it would be longer it is put in order, and the least useful records
//! go: not those that were demoted, which somebody paid for, but what is rarely launched and was not seen for weeks.
//!
//! Everybody who can write to a folder is believed, and only they are: it belongs to one user, and is refused if others can change
//! it. Each process writes for itself, so what a user's programs have shown stays with that user. A batch is plain bytes, and may as
//! well go through somebody else, who should then keep it for the user it came from.
//!
//! * [`Platform`]: what a file is about; [`Key`], [`Record`]: what is in it; [`Spans`]: times, counted
//! * [`Batch`]: what one process has to say; [`Profile`]: all that is known; [`Store`]: the folder
//! * [`demoted`]: what the guard has found out, in a file of its own
//! * `header`, `frame`, `codec`: the bytes, from the whole to the part

#![forbid(unsafe_code)]

mod aside;
mod batch;
mod codec;
pub mod demoted;
mod error;
#[cfg(test)]
mod examples;
mod frame;
mod header;
mod platform;
mod profile;
mod record;
mod spans;
mod store;

pub use aside::Trouble;
pub use batch::Batch;
pub use demoted::{Demoted, demoted};
pub use error::Error;
pub use frame::Damage;
pub use header::{BadHeader, FORMAT};
pub use platform::Platform;
pub use profile::Profile;
pub use record::{Certificate, Demotion, Key, Record, Word};
pub use spans::Spans;
pub use store::{Found, Limits, Reading, Rotten, Store};
