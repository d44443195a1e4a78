//! Lines on standard error, for whoever asks with `EBB_LOG`.

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::surroundings;

static WANTED: AtomicU8 = AtomicU8::new(UNASKED);
const UNASKED: u8 = 0;
const YES: u8 = 1;
const NO: u8 = 2;

pub fn wanted() -> bool {
    match WANTED.load(Ordering::Relaxed) {
        UNASKED => {
            let answer = surroundings::variable(c"EBB_LOG").is_some_and(|value| value != c"0");
            WANTED.store(if answer { YES } else { NO }, Ordering::Relaxed);
            answer
        }
        answer => answer == YES,
    }
}

/// One line, cut where it does not fit: the heap is not ours, and one write keeps lines of threads apart.
pub fn line(text: fmt::Arguments<'_>) {
    let mut buffer = [0; 1024];
    let size = buffer.len();
    let mut rest = &mut buffer[..size - 1];
    let _ = write!(rest, "ebb[{}]: {text}", rustix::process::getpid().as_raw_nonzero());
    let length = size - 1 - rest.len();
    buffer[length] = b'\n';
    // SAFETY: standard error is never closed by us; if the host has closed it, the write fails.
    let stderr = unsafe { rustix::fd::BorrowedFd::borrow_raw(libc::STDERR_FILENO) };
    let _ = rustix::io::write(stderr, &buffer[..=length]);
}

macro_rules! say {
    ($($part:tt)*) => {
        if $crate::log::wanted() {
            $crate::log::line(format_args!($($part)*));
        }
    };
}
pub(crate) use say;
