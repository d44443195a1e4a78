//! What is written down of sharing: bursts, stops, turns, decisions, each with its time.
//!
//! `ebb trace` and the daemon read it (`telemetry::EventReader`). To write an event down is a few stores into memory that is
//! there; where nobody could read it, it is not even that.

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use board::Gpu;
use cuda_abi::CUdevice;
use model::Nanos;
use policy::Why;
use telemetry::{Event, EventLog, NO_POST, Stem, What};

use super::post::Post;
use super::{MOST, POSTS, here, membership, taken};
use crate::surroundings::variable;
use crate::watch;

/// What was last decided on each post, so that only changes are told. Zero: nothing yet.
static DECIDED: [AtomicU32; MOST] = [const { AtomicU32::new(0) }; MOST];

/// The log of this process, in a folder. A process does without rather than not run.
pub fn event_log(folder: &CStr, stem: Stem) -> Result<EventLog, telemetry::Error> {
    let name = variable(c"EBB_NAME").map_or(&b""[..], CStr::to_bytes);
    EventLog::create(folder, stem, membership::tenant(), name)
}

/// Says which GPU a post is on.
pub fn introduce(number: usize, gpu: Gpu) {
    let log = watch::of_this_process().and_then(|watch| watch.events);
    if let (Some(log), Ok(number)) = (log, u8::try_from(number)) {
        log.post(number, gpu.0);
    }
}

/// The post on whose GPU the calling thread works, as a number.
#[inline]
pub fn number_here() -> u8 {
    match taken() {
        [] => NO_POST,
        [_] => 0,
        _ => here().map_or(NO_POST, Post::number),
    }
}

/// The post on a device, as a number.
pub fn number_of(device: CUdevice) -> u8 {
    taken().iter().find(|post| post.device() == device).map_or(NO_POST, Post::number)
}

/// Something happened on a device just now.
pub fn tell(device: CUdevice, what: What) {
    write(Event { time: board::now(), post: number_of(device), what });
}

/// Something happened to the process as a whole, which is only moved as a whole where it is on one GPU.
pub fn tell_only(what: What) {
    write(Event { time: board::now(), post: 0, what });
}

/// What the policy says to a process that is on one GPU.
pub fn tell_only_decided(why: Why, runs: bool, longest: Nanos) {
    POSTS[0].tell_decided(why, runs, longest);
}

fn write(event: Event) {
    if let Some(log) = watch::of_this_process().and_then(|watch| watch.events) {
        log.write(&event);
    }
}

impl Post {
    /// Which of the posts it is.
    fn number(&self) -> u8 {
        let place = POSTS.iter().position(|post| ptr::eq(post, self));
        place.and_then(|place| u8::try_from(place).ok()).unwrap_or(NO_POST)
    }

    /// Something happened here, at this moment.
    pub fn tell_at(&self, time: Nanos, what: What) {
        write(Event { time, post: self.number(), what });
    }

    /// Something happened here just now.
    pub fn tell(&self, what: What) {
        self.tell_at(board::now(), what);
    }

    /// What the policy says here, if it is another than before.
    pub fn tell_decided(&self, why: Why, runs: bool, longest: Nanos) {
        let Some(last) = DECIDED.get(usize::from(self.number())) else { return };
        let this = 1 + why as u32 * 2 + u32::from(runs);
        if last.swap(this, Ordering::Relaxed) != this {
            self.tell(What::Decided { why: why as u8, runs, longest });
        }
    }
}
