//! Whether launches of this process are guarded just now.
//!
//! The keeper of a best-effort tenant in the shared domain says so. For tests, and for whoever wants to see what the guard
//! does to a program, `EBB_GUARD` says it without a daemon: `always` guards every launch that has a twin, `now` waits for
//! each twin to be made first, `storm:7` also stops and resumes at random moments, drawn from the seed; `off` never guards.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::surroundings::variable;

/// What is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Originals: nobody could want this process to stop between blocks.
    Off = 1,
    /// Originals, because no latency tenant has been at work for a while.
    Original = 2,
    /// Twins.
    Guarded = 3,
}

/// What the environment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Nothing,
    Off,
    Guarded,
    Storm { seed: u64 },
}

const UNASKED: u8 = 0;

static MODE: AtomicU8 = AtomicU8::new(UNASKED);

/// One load, for every launch.
#[inline(always)]
pub fn is_guarded() -> bool {
    match MODE.load(Ordering::Relaxed) {
        UNASKED => begin(),
        mode => mode == Mode::Guarded as u8,
    }
}

/// Whether launches may come to be guarded.
#[inline(always)]
pub fn is_on() -> bool {
    MODE.load(Ordering::Relaxed) > Mode::Off as u8
}

#[cold]
fn begin() -> bool {
    let guarded = matches!(asked(), Asked::Guarded | Asked::Storm { .. });
    let mode = if guarded { Mode::Guarded } else { Mode::Off };
    MODE.store(mode as u8, Ordering::Relaxed);
    guarded
}

/// The keeper has decided. What the environment asks for stands above it.
pub fn set(mode: Mode) {
    let mode = match asked() {
        Asked::Nothing => mode,
        Asked::Off => Mode::Off,
        Asked::Guarded | Asked::Storm { .. } => Mode::Guarded,
    };
    MODE.store(mode as u8, Ordering::Relaxed);
}

/// Nothing is guarded any more, whoever asks for it.
pub fn end() {
    MODE.store(Mode::Off as u8, Ordering::Relaxed);
}

/// In the child of a fork, which decides anew.
pub fn in_child() {
    MODE.store(UNASKED, Ordering::Relaxed);
}

pub fn asked() -> Asked {
    variable(c"EBB_GUARD").map_or(Asked::Nothing, meaning)
}

fn meaning(text: &CStr) -> Asked {
    match text.to_bytes() {
        b"off" => Asked::Off,
        b"always" | b"now" => Asked::Guarded,
        other => {
            match other.strip_prefix(b"storm:").and_then(|seed| std::str::from_utf8(seed).ok()?.parse().ok())
            {
                Some(seed) => Asked::Storm { seed },
                None => Asked::Nothing,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_environment() {
        assert_eq!(meaning(c"storm:7"), Asked::Storm { seed: 7 });
        assert_eq!([c"now", c"always"].map(meaning), [Asked::Guarded; 2]);
        assert_eq!(meaning(c"off"), Asked::Off);
        assert_eq!([c"storm", c"storm:", c"storm:x", c"yes"].map(meaning), [Asked::Nothing; 4]);
    }
}
