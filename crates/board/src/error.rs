//! What can go wrong with a board, and on the way to one.

use rustix::io::Errno;

use crate::link::{Malformed, Reason};

/// No heap in here: these are met inside other people's programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the board cannot be made: {0}")]
    Make(Errno),
    #[error("the board cannot be mapped: {0}")]
    Map(Errno),
    #[error("what was given as a board is not a memory file")]
    NotAMemoryFile,
    /// Somebody could shorten it under us, and our next load would be a SIGBUS.
    #[error("the board is not sealed against changes of its size")]
    NotSealed,
    #[error("the board has {found} bytes instead of {expected}")]
    Size { found: u64, expected: u64 },
    #[error("what was given as a board does not begin like one")]
    NotABoard,
    #[error("the board has layout {found}, this ebb knows {}", crate::VERSION)]
    Version { found: u32 },
    #[error("the board belongs to another GPU")]
    OtherGpu,
    /// The place was given to somebody else meanwhile, or never existed.
    #[error("the seat is no longer ours")]
    Stale,
    #[error("the daemon cannot be reached: {0}")]
    Connect(Errno),
    #[error("talking to the daemon failed: {0}")]
    Talk(Errno),
    #[error("the daemon did not answer in time")]
    TimedOut,
    /// Its number means another file by now, or none.
    #[error("the program has closed the connection to the daemon")]
    Taken,
    #[error("the daemon hung up")]
    HungUp,
    #[error("the daemon's answer makes no sense: {0}")]
    Malformed(Malformed),
    /// A grant comes with exactly one file.
    #[error("the daemon's answer came with {0} files")]
    Files(usize),
    #[error("the daemon refused: {0}")]
    Refused(Reason),
}
