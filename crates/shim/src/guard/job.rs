//! A job: what was cut is made again, on a stream of ours.
//!
//! The launches before the gates at which lanes stand are made again in their order, lane by lane. The stream has an away word of
//! its own, which says whether all of it ran so far, and if not, which launch was the first to be cut again.
//! Behind the launches of each lane the stream copies it into the lane's own away word: where all ran, that opens the gate,
//! and the program's stream goes on without a word from the processor; where not, the lane stays cut.
//!
//! Jobs of the helper stream can be stopped, and those of the siding be called back. Those of the rescue stream cannot: they are what
//! blocks on the GPU wait for (`watchdog`). A launch is in two of them only if that of the other was cut, and so begins no more blocks:
//! or one might run in both.

use std::ptr;

use cuda_abi::CUDA_SUCCESS;
use guard::{Reason, Rule};
use model::Nanos;

use super::control::{LANES, Runner};
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
    /// The serial of the first launch that was cut.
    from: u32,
}

pub struct Job {
    runner: Runner,
    /// By which the stream says that it is done.
    number: u32,
    pub began: Nanos,
    plan: Plan,
}

/// What a job is to make again.
pub struct Plan {
    entries: [Entry; LANES],
    count: usize,
}

impl Plan {
    pub fn new() -> Plan {
        let entry = Entry { number: 0, gate: 0, part: Part::All, from: 0 };
        Plan { entries: [entry; LANES], count: 0 }
    }

    /// From this launch on, of those before the gate that the lane has to pass next.
    pub fn add(&mut self, lane: Lane, part: Part, from: u32) {
        let gate = lane.passed().wrapping_add(1);
        self.entries[self.count] = Entry { number: lane.number(), gate, part, from };
        self.count += 1;
    }

    fn entries(&self) -> &[Entry] {
        &self.entries[..self.count]
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn has(&self, lane: usize) -> bool {
        self.entries().iter().any(|entry| entry.number == lane)
    }

    /// Begins to make everything again, in the calling thread's context. `None`: the driver refused.
    pub fn begin(self, site: &'static Site, runner: Runner, counts: &mut Counts, now: Nanos) -> Option<Job> {
        let control = &site.control;
        let stream = control.stream(runner.own());
        let mut operations = Operations::new().write(control.away_of(runner), 0);
        if runner == Runner::Siding {
            operations = operations.write(control.side(), 0);
        }
        ok(operations.give_to(stream))?;
        // What was given to the stream before the driver refused something is a job as well, and the lanes that are missing in it
        // stay cut.
        let _ = self.entries().iter().try_for_each(|entry| {
            again(Lane::at(site, entry.number), entry, runner, counts)?;
            if entry.part == Part::All { control.hand_on(runner, entry.number) } else { Some(()) }
        });
        if runner == Runner::Helper {
            control.tell_helper()?;
        }
        let number = control.begin(runner.own(), Operations::new())?;
        counts.rounds += 1;
        Some(Job { runner, number, began: now, plan: self })
    }
}

/// Makes the launches of one lane again.
fn again(lane: Lane, entry: &Entry, runner: Runner, counts: &mut Counts) -> Option<()> {
    let (ring, control) = (&lane.state().ring, &lane.site.control);
    let stream = control.stream(runner.own());
    let stop = control.stop_of(runner);
    // Who put the records there has let go of the lock since.
    drop(lane.lock());
    let mut launch = Launch::blank(ptr::null_mut(), ring.frame(ring.before(entry.gate).next()?));
    // Those before it ran whole; to make them again would change nothing. The word may also name a launch of another lane, which
    // was cut before this one had its turn.
    let before = ring.before(entry.gate).position(|at| ring.serial(at) == entry.from).unwrap_or(0);
    let most = if entry.part == Part::First { 1 } else { usize::MAX };
    for at in ring.before(entry.gate).skip(before).take(most) {
        ring.read(at, &mut launch);
        if launch.attempts == 0 {
            counts.count_cut(control, &launch, launch.serial == entry.from);
        }
        launch.attempts += 1;
        if launch.rule == Rule::Ordered {
            // SAFETY: a cell of ours, which no attempt under way uses.
            ok(unsafe { next::call::cuMemsetD8Async(launch.cell(), 0, 8, stream) })?;
        }
        let result = launch.make(stream, stop, control.away_of(runner));
        if result != CUDA_SUCCESS {
            say!("a launch that was cut could not be made again: {result:?}");
            if runner == Runner::Siding {
                lane.site.siding.refuse();
            }
            return None;
        }
        ring.attempted_again(at);
        counts.relaunched += 1;
        counts.confined += u64::from(runner == Runner::Siding);
    }
    Some(())
}

impl Job {
    pub fn is_done(&self, site: &Site) -> bool {
        site.control.is_done(self.runner.own(), self.number)
    }

    /// Whether all of a job of the helper ran. Where not, the lanes know: they were handed the serial of the launch that was cut again.
    pub fn is_whole(&self, site: &Site) -> bool {
        site.control.is_helper_whole()
    }

    pub fn has(&self, lane: usize) -> bool {
        self.plan.has(lane)
    }

    /// The lane of a launch that is made again here.
    pub fn lane_of(&self, site: &'static Site, serial: u32) -> Option<Lane> {
        let holds = |entry: &&Entry| {
            let ring = &Lane::at(site, entry.number).state().ring;
            ring.before(entry.gate).any(|at| ring.serial(at) == serial)
        };
        self.plan.entries().iter().find(holds).map(|entry| Lane::at(site, entry.number))
    }

    /// Blocks waited for others, and left when those were given to them: such a kernel is not cut again.
    pub fn demote(&self, site: &'static Site) {
        for entry in self.plan.entries().iter().filter(|entry| entry.part == Part::First) {
            let ring = &Lane::at(site, entry.number).state().ring;
            if let Some(at) = ring.before(entry.gate).find(|at| ring.serial(*at) == entry.from) {
                twins::demote(ring.frame(at), Reason::WaitsForOthers);
            }
        }
    }
}
