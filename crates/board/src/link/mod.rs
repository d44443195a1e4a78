//! How a tenant comes by its seat.
//!
//! A tenant connects to the daemon's socket, says who it is, and is given a place and the board's file. Nothing more is
//! said on the connection, but it stays open: its end is how each side learns that the other is gone. One connection is one
//! seat.
//!
//! Messages are packets (`SOCK_SEQPACKET`) of fixed size, so none can be half there. They begin with a magic, the version
//! of the layout and a kind; these three never move, so that a daemon of one version can tell a tenant of another why it is
//! refused. Numbers are little-endian.
//!
//! * [`message`]: requests and replies as bytes, pure
//! * [`socket`]: sending and receiving them, with a file

pub mod message;
pub mod socket;

pub use message::{Granted, Malformed, NAME_BYTES, PROGRAM_BYTES, Reason, Registration, Reply, Request};
pub use socket::{Received, receive, register, reply};
