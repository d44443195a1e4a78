//! A storm: stops and resumes at random moments, for tests (`EBB_GUARD=storm:7`).
//!
//! What a program computes must not depend on when, how often and for how long it was stopped. The thread of a storm does
//! to this process what latency tenants would, without any of them; the moments are drawn from the seed, though what they
//! hit depends on the machine.

use std::ffi::c_void;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::mode::{self, Asked};
use super::resume::{self, Steward, Wish};
use crate::log::say;
use crate::tenancy::{self, Awake};
use crate::thread;

static BEGUN: AtomicBool = AtomicBool::new(false);

/// The first guarded launch of a process begins it.
#[inline]
pub fn begin_if_asked() {
    if !BEGUN.load(Ordering::Relaxed) {
        begin();
    }
}

#[cold]
fn begin() {
    if BEGUN.swap(true, Ordering::Relaxed) {
        return;
    }
    if matches!(mode::asked(), Asked::Storm { .. }) && tenancy::is_nobody() {
        tenancy::follow_the_end();
        thread::start(rage, ptr::null_mut());
    }
}

pub fn in_child() {
    BEGUN.store(false, Ordering::Relaxed);
}

extern "C" fn rage(_: *mut c_void) -> *mut c_void {
    thread::begin(c"ebb-storm");
    let Asked::Storm { seed } = mode::asked() else { return ptr::null_mut() };
    let _awake = panic::catch_unwind(AssertUnwindSafe(|| go_on(seed))).unwrap_or_else(|_| {
        say!("the storm failed");
        Awake::now()
    });
    resume::let_go(None);
    ptr::null_mut()
}

fn go_on(seed: u64) -> Awake {
    let (mut steward, mut draw) = (Steward::new(), Draw(seed | 1));
    loop {
        for (wish, at_most) in [(Wish::Go, 1_500), (Wish::Stop, 700)] {
            let until = board::now() + model::Nanos::from_micros(draw.below(at_most));
            if let Err(awake) = tend_until(&mut steward, wish, until) {
                say!("the storm is over: {:?}", steward.counts);
                return awake;
            }
        }
    }
}

/// Tends until that moment. An error: the program is ending.
fn tend_until(steward: &mut Steward, wish: Wish, until: model::Nanos) -> Result<(), Awake> {
    loop {
        let now = board::now();
        let awake = Awake::now();
        if awake.is_over() {
            return Err(awake);
        }
        let rest = steward.tend(None, wish, &mut || false, now);
        drop(awake);
        if now >= until {
            return Ok(());
        }
        std::thread::sleep(Duration::from(rest.min(until.since(now))).max(Duration::from_micros(10)));
    }
}

/// Numbers that look random (xorshift).
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_again() {
        let numbers = |seed| {
            let mut draw = Draw(seed);
            [(); 8].map(|()| draw.below(1_000))
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(9));
        assert!(numbers(7).iter().any(|number| *number != numbers(7)[0]));
    }
}
