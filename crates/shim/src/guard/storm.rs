//! A storm: stops and resumes at random moments, for tests (`EBB_GUARD=storm:7`).
//!
//! What a program computes must not depend on when, how often and for how long it was stopped. The thread of a storm does
//! to this process what latency tenants would, without any of them; the moments are drawn from the seed, though what they
//! hit depends on the machine.

use std::ffi::c_void;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use model::Nanos;

use super::mode::{self, Asked, Storm};
use super::resume::{self, Steward, Wish};
use super::siding;
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
    if let Asked::Storm(storm) = mode::asked()
        && tenancy::is_nobody()
    {
        siding::want(storm.confine);
        tenancy::follow_the_end();
        thread::start(rage, ptr::null_mut());
    }
}

pub fn in_child() {
    BEGUN.store(false, Ordering::Relaxed);
}

extern "C" fn rage(_: *mut c_void) -> *mut c_void {
    thread::begin(c"ebb-storm");
    let Asked::Storm(storm) = mode::asked() else { return ptr::null_mut() };
    let _awake = panic::catch_unwind(AssertUnwindSafe(|| go_on(storm))).unwrap_or_else(|_| {
        say!("the storm failed");
        Awake::now()
    });
    resume::let_go(None);
    ptr::null_mut()
}

/// So often in a row a launch may be cut again before it is left alone until it is whole. A launch of millions of blocks
/// needs longer to find where it was cut than some storms are calm.
const IN_A_ROW: u32 = 6;

fn go_on(storm: Storm) -> Awake {
    let (mut steward, mut draw, mut in_a_row) = (Steward::new(), Draw::new(storm.seed), 0);
    steward.counts.looks = true;
    loop {
        in_a_row = if steward.is_at_rest() { 0 } else { in_a_row + 1 };
        let [calm, gust] = [storm.calm, storm.gust].map(|at_most| Nanos::from_micros(draw.below(at_most)));
        let stop = if storm.confine > 0 && draw.below(2) == 0 { Wish::Confine } else { Wish::Stop };
        let tended = tend(&mut steward, Wish::Go, calm, in_a_row > IN_A_ROW)
            .and_then(|()| tend(&mut steward, stop, gust, false));
        if let Err(awake) = tended {
            say!("the storm is over: {:?}", steward.counts);
            return awake;
        }
    }
}

/// Tends for so long, and perhaps until all is at rest. An error: the program is ending.
fn tend(steward: &mut Steward, wish: Wish, long: Nanos, until_rest: bool) -> Result<(), Awake> {
    const LEAST: Nanos = Nanos::from_micros(10);
    let until = board::now() + long;
    loop {
        let now = board::now();
        let awake = Awake::now();
        if awake.is_over() {
            return Err(awake);
        }
        let rest = steward.tend(None, wish, &mut || false, now);
        drop(awake);
        if now >= until && (!until_rest || steward.is_at_rest()) {
            return Ok(());
        }
        std::thread::sleep(rest.min(until.since(now)).max(LEAST).into());
    }
}

/// Numbers that look random (xorshift).
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Draw {
        // From zero nothing else would come.
        Draw(seed | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
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
