//! A job: what was cut is made again, on the helper stream.
//!
//! The launches before the gates at which lanes stand are made again in their order, lane by lane. The helper stream has
//! an away word of its own, which says whether all of it ran so far, and if not, which launch was the first to be cut again.
//! Behind the launches of each lane the stream copies it into the lane's own away word: where all ran, that opens the gate,
//! and the program's stream goes on without a word from the processor; where not, the lane stays cut.

use std::ptr;

use cuda_abi::CUDA_SUCCESS;
use guard::{Reason, Rule};
use model::Nanos;

use super::control::{Aways, LANES, Own};
use super::driver::{Operations, ok};
use super::lane::Lane;
use super::record::Launch;
use super::resume::Counts;
use super::site::Site;
use crate::log::say;
use crate::{next, twins};

/// How much of a lane a job makes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything that was cut before the gate at which the lane stands.
    All,
    /// Only the first launch that was cut. Its blocks are still on the GPU, waiting for some that were turned away.
    First,
}

#[derive(Clone, Copy)]
struct Entry {
    number: usize,
    gate: u32,
    part: Part,
}

pub struct Job {
    /// By which the helper stream says that it is done.
    number: u32,
    pub began: Nanos,
    entries: [Entry; LANES],
    count: usize,
}

/// What a job is to make again.
pub struct Plan {
    entries: [Entry; LANES],
    count: usize,
}

impl Plan {
    pub fn new() -> Plan {
        Plan { entries: [Entry { number: 0, gate: 0, part: Part::All }; LANES], count: 0 }
    }

    pub fn add(&mut self, lane: Lane, part: Part) {
        let gate = lane.passed().wrapping_add(1);
        self.entries[self.count] = Entry { number: lane.number(), gate, part };
        self.count += 1;
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Begins to make everything again, in the calling thread's context, with launches that look at this stop word. `None`:
    /// the driver refused.
    pub fn begin(
        self,
        site: &'static Site,
        aways: &Aways<'_>,
        stop: u64,
        counts: &mut Counts,
        now: Nanos,
    ) -> Option<Job> {
        let control = &site.control;
        let helper = control.stream(Own::Helper);
        ok(Operations::new().write(control.helper_away(), 0).give_to(helper))?;
        for entry in &self.entries[..self.count] {
            let lane = Lane::at(site, entry.number);
            again(lane, entry, aways.lane(entry.number), stop, counts)?;
            if entry.part == Part::All {
                control.hand_on(entry.number)?;
            }
        }
        control.tell_helper()?;
        let number = control.begin(Own::Helper, Operations::new())?;
        counts.rounds += 1;
        Some(Job { number, began: now, entries: self.entries, count: self.count })
    }
}

/// Makes the launches of one lane again.
fn again(lane: Lane, entry: &Entry, away: u32, stop: u64, counts: &mut Counts) -> Option<()> {
    let (ring, control) = (&lane.state().ring, &lane.site.control);
    // Who put the records there has let go of the lock since.
    drop(lane.lock());
    let mut launch = Launch::blank(ptr::null_mut(), ring.frame(ring.before(entry.gate).next()?));
    // Those before it ran whole; to make them again would change nothing. The word may also name a launch of another lane, which
    // was cut before this one had its turn.
    let before = ring.before(entry.gate).position(|at| ring.serial(at) == away).unwrap_or(0);
    let most = if entry.part == Part::First { 1 } else { usize::MAX };
    for at in ring.before(entry.gate).skip(before).take(most) {
        ring.read(at, &mut launch);
        if launch.attempts == 0 {
            counts.count_cut(control, &launch, launch.serial == away);
        }
        launch.attempts += 1;
        if launch.rule == Rule::Ordered {
            // SAFETY: a cell of ours, which no attempt under way uses.
            ok(unsafe { next::call::cuMemsetD8Async(launch.cell(), 0, 8, control.stream(Own::Helper)) })?;
        }
        let result = launch.make(control.stream(Own::Helper), stop, control.helper_away());
        if result != CUDA_SUCCESS {
            say!("a launch that was cut could not be made again: {result:?}");
            return None;
        }
        ring.attempted_again(at);
        counts.relaunched += 1;
    }
    Some(())
}

impl Job {
    pub fn is_done(&self, site: &Site) -> bool {
        site.control.is_done(Own::Helper, self.number)
    }

    /// Whether all of it ran. Where not, the lanes know: they were handed the serial of the launch that was cut again.
    pub fn is_whole(&self, site: &Site) -> bool {
        site.control.is_helper_whole()
    }

    /// Blocks waited for others, and left when those were given to them: such a kernel is not cut again.
    pub fn demote(&self, site: &'static Site) {
        let aways = site.control.last_aways();
        for entry in self.entries[..self.count].iter().filter(|entry| entry.part == Part::First) {
            let ring = &Lane::at(site, entry.number).state().ring;
            let away = aways.lane(entry.number);
            if let Some(at) = ring.before(entry.gate).find(|at| ring.serial(*at) == away) {
                twins::demote(ring.frame(at), Reason::WaitsForOthers);
            }
        }
    }

    pub fn frees(&self) -> bool {
        self.entries[..self.count].iter().any(|entry| entry.part == Part::First)
    }
}
