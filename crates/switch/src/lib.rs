//! Channel groups of the driver: capture, timeslice, disable.
//!
//! A CUDA context is, for the kernel driver, a few *channel groups* (compute, and one for each way of copying), each
//! with *channels* into which work is written. The hardware gives the GPU to one group at a time, for the group's
//! *timeslice*, and takes it away in the middle of a kernel. Whoever may set the timeslice of a group decides how
//! fast it leaves when somebody else has work; whoever may disable its channels decides whether it runs at all.
//!
//! # Why this needs no rights
//!
//! The driver lets anybody make these calls on objects of a *client*, and a client belongs to whoever opened it. It
//! checks that by comparing the open file description on which a call comes with the one on which the client was
//! made: not the process, not the user, not a capability. CUDA opens `/dev/nvidiactl` inside the process, so code
//! inside the process that makes its calls on the very same descriptor *is* the client. All it needs are the
//! handles, and these pass by in the arguments of `ioctl` when CUDA makes its objects. Nothing is patched, nobody is
//! root, and nothing of another process can be touched, because its clients belong to another open file.
//!
//! # What is kept, and what is believed
//!
//! [`Capture`] is shown each call after it was made and keeps the few kinds of objects that matter ([`Kind`]) in a
//! table of fixed size. A call says what its maker wanted; only the status in it says what came to be. So nothing of
//! a call is believed unless the system call and the driver's own status both say success, and what is forgotten is
//! forgotten with everything below it, as the driver does. Objects that were duplicated from elsewhere
//! are not taken: they might be somebody else's.
//!
//! The table can be behind the driver by the length of a call on another thread. That is harmless: handles mean
//! something only inside the client, so a call on what is no more is refused by the driver. A *file*, however, must be
//! forgotten before it is closed ([`Capture::closing`]), for its number may mean another file a moment later; and the
//! child of a fork, who inherits the files but did not make what is behind them, forgets everything
//! ([`Capture::forget_all`]).
//!
//! # A guest
//!
//! The crate lives in other people's processes. It is `no_std` and has no heap; it takes no lock; every loop is bounded
//! by the size of the table; it does no I/O but the call it is asked to make; and it leaves `errno` alone. What is not
//! its business costs the program one compare ([`concerns`]).
//!
//! * [`wire`]: numbers and structures of the driver, as bytes
//! * [`capture`]: which objects this process has
//! * [`control`]: what can be done to them, through a [`Kernel`]
//! * [`driver`]: which drivers this is known to work with

#![no_std]

pub mod capture;
pub mod control;
pub mod driver;
mod error;
mod kernel;
mod status;
pub mod wire;

pub use capture::{Capture, Event, Group, Kind, Moment, Object, concerns};
pub use control::{Halt, Micros, Scope, Switch, Wait};
pub use error::Error;
pub use kernel::{Errno, Kernel, System};
pub use status::Status;
