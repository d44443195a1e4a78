//! What ebb prints, and what becomes of it when nobody reads it.
//!
//! `ebb status | head -1` leaves ebb with a pipe that has no reader. The macros of the standard library panic then. Those here
//! have the same names and are meant wherever this crate says `print!`: what nobody reads is dropped, and the command ends as it
//! would have, with the status that it would have had. Output that is lost for another reason, such as a full disk, is a
//! failure, and [`finish`] says so once.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::Mutex;

/// Why nothing more is printed.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

macro_rules! print {
    ($($format:tt)*) => { $crate::stdio::put(format_args!($($format)*)) };
}

macro_rules! println {
    () => { $crate::stdio::put(format_args!("\n")) };
    ($($format:tt)*) => { $crate::stdio::put(format_args!("{}\n", format_args!($($format)*))) };
}

macro_rules! eprint {
    ($($format:tt)*) => { $crate::stdio::complain(format_args!($($format)*)) };
}

macro_rules! eprintln {
    ($($format:tt)*) => { $crate::stdio::complain(format_args!("{}\n", format_args!($($format)*))) };
}

/// Prints on standard output, until that fails.
pub fn put(text: Arguments<'_>) {
    if cfg!(test) {
        // What tests print is captured only there.
        std::print!("{text}");
    } else {
        attempt(|out| out.write_fmt(text));
    }
}

/// The same for what is not text.
pub fn put_bytes(bytes: &[u8]) {
    attempt(|out| out.write_all(bytes));
}

/// Prints on standard error. There is nobody to tell if that fails.
pub fn complain(text: Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}

fn attempt(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    let Ok(mut lost) = LOST.lock() else { return };
    if lost.is_none() {
        *lost = write(&mut io::stdout()).err();
    }
}

/// At the end of a command: its own status, unless what it printed was lost to somebody who wanted it.
pub fn finish(status: ExitCode) -> ExitCode {
    attempt(|out| out.flush());
    let lost = LOST.lock().ok().and_then(|mut lost| lost.take());
    match lost {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("ebb: cannot write to standard output: {error}");
            ExitCode::FAILURE
        }
        _ => status,
    }
}
