//! How a tenant comes by its seat.
//!
//! A tenant connects to the daemon's socket, says who it is, shows a descriptor of the GPU's own file, and is given a place,
//! its terms and the board's file. The connection stays open: the daemon says on it when terms change, the tenant says nothing
//! more, and its end is how each side learns that the other is gone. One connection is one seat.
//!
//! What a tenant goes by comes on the connection, because nobody else can write there. The board can be written by everybody
//! who sits at it.
//!
//! Messages are packets (`SOCK_SEQPACKET`) of fixed size, so none can be half there. They begin with a magic, the version
//! of the layout and a kind; these three never move, so that a daemon of one version can tell a tenant of another why it is
//! refused. Numbers are little-endian.
//!
//! * [`message`]: requests and replies as bytes, pure
//! * [`socket`]: sending and receiving them, with a file
//! * [`thread_name()`]: how tenants are known to people of other boards
//! * [`descriptor`]: keeping the connection in a program that may close it

pub mod descriptor;
pub mod message;
pub mod socket;
mod thread_name;

pub use descriptor::{FileIdentity, OwnDescriptor, close_in_child};
pub use message::{Granted, Malformed, NAME_BYTES, PROGRAM_BYTES, Reason, Registration, Reply, Request};
pub use socket::{Heard, MappedBoard, Received, hear, receive, register, register_in_program, reply};
pub use thread_name::{class_of_thread, thread_name};
