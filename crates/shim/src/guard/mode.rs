//! Whether launches of this process are guarded just now.
//!
//! The keeper of a best-effort tenant in the shared domain says so. For tests, and for whoever wants to see what the guard
//! does to a program, `EBB_GUARD` says it without a daemon: `always` guards every launch that has a twin, `now` waits for
//! each twin to be made first, `storm:7` also stops and resumes at random moments, drawn from the seed; `off` never guards.
//! `storm:7:300:100` is wilder than a storm is by default: calm for at most 300 µs, stopped for at most 100. With a fourth number,
//! `storm:7:300:100:50`, every other stop lets things go on, on so many hundredths of the SMs.

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
    Storm(Storm),
}

/// At which moments to stop and to resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storm {
    pub seed: u64,
    /// For how long things may go on, and be stopped, at the most; in microseconds.
    pub calm: u64,
    pub gust: u64,
    /// On how many hundredths of the SMs things go on while they are stopped, every other time; nought: never.
    pub confine: u32,
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
    let guarded = matches!(asked(), Asked::Guarded | Asked::Storm(_));
    let mode = if guarded { Mode::Guarded } else { Mode::Off };
    MODE.store(mode as u8, Ordering::Relaxed);
    guarded
}

/// The keeper has decided. What the environment asks for stands above it.
pub fn set(mode: Mode) {
    let mode = match asked() {
        Asked::Nothing => mode,
        Asked::Off => Mode::Off,
        Asked::Guarded | Asked::Storm(_) => Mode::Guarded,
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
        other => storm(other).map_or(Asked::Nothing, Asked::Storm),
    }
}

fn storm(text: &[u8]) -> Option<Storm> {
    let mut numbers = std::str::from_utf8(text.strip_prefix(b"storm:")?).ok()?.split(':');
    let seed = numbers.next()?.parse().ok()?;
    let mut at_most = |by_default| {
        numbers.next().map_or(Some(by_default), |text| text.parse().ok().filter(|time| *time > 0))
    };
    let (calm, gust) = (at_most(1_500)?, at_most(700)?);
    let confine = numbers.next().map_or(Some(0), |text| text.parse().ok().filter(|share| *share <= 100))?;
    numbers.next().is_none().then_some(Storm { seed, calm, gust, confine })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_environment() {
        let storm = |seed, calm, gust| Asked::Storm(Storm { seed, calm, gust, confine: 0 });
        assert_eq!(meaning(c"storm:7"), storm(7, 1_500, 700));
        assert_eq!(
            [c"storm:7:300", c"storm:8:300:100"].map(meaning),
            [storm(7, 300, 700), storm(8, 300, 100)]
        );
        let confined = Storm { seed: 8, calm: 300, gust: 100, confine: 50 };
        assert_eq!(meaning(c"storm:8:300:100:50"), Asked::Storm(confined));
        assert_eq!([c"now", c"always"].map(meaning), [Asked::Guarded; 2]);
        assert_eq!(meaning(c"off"), Asked::Off);
        assert_eq!([c"storm", c"storm:", c"storm:x", c"yes"].map(meaning), [Asked::Nothing; 4]);
        assert_eq!([c"storm:7:0", c"storm:7:1:2:101", c"storm:7:1:2:3:4"].map(meaning), [Asked::Nothing; 3]);
    }
}
