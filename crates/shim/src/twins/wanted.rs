//! Whether twins may come to be wanted in this process at all, and how impatiently.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::surroundings::variable;

const UNASKED: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;
/// Tests want every launch to be guarded, the first of a kernel too.
const NOW: u8 = 3;

static WANTED: AtomicU8 = AtomicU8::new(UNASKED);

/// In a best-effort tenant they may be, and where a test asks for them. What is loaded elsewhere is not kept.
pub fn are_wanted() -> bool {
    answer() >= YES
}

/// Whether who asks for a twin waits until there is an answer.
pub fn at_once() -> bool {
    answer() == NOW
}

fn answer() -> u8 {
    let known = WANTED.load(Ordering::Relaxed);
    if known != UNASKED {
        return known;
    }
    let found = ask();
    WANTED.store(found, Ordering::Relaxed);
    found
}

#[cold]
fn ask() -> u8 {
    match variable(c"EBB_GUARD").map(|guard| guard.to_bytes()) {
        Some(b"off") => NO,
        Some(mode) if mode == b"now" || mode.starts_with(b"storm") => NOW,
        Some(_) => YES,
        None => {
            let latency = variable(c"EBB_CLASS").is_some_and(|class| class == c"latency");
            let tenant = variable(c"EBB_SOCKET").is_some();
            if tenant && !latency { YES } else { NO }
        }
    }
}
