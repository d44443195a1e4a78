//! Time: clocks, sleep, and loops that only wait for a clock.
//!
//! `while (clock64() - start < n);` is how kernels pretend to work. Lowering marks the backward branch of a
//! loop that could be one: nothing but arithmetic, clock reads, sleeps, calls and local memory, and no
//! register carried from one round to the next. Such a round depends on nothing but the time at which it is
//! made. So when the branch is taken, the round is *tried* at later and later times, with everything it
//! changes put back afterwards, until some lane would leave the loop; then the moment is narrowed down by
//! bisection, and the warp sleeps until it. Where a trial meets something it cannot take back, or local
//! memory carries a value from round to round, the loop simply runs.

use model::Nanos;

use super::address::{GENERIC, LOCAL};
use super::lanes::{RegisterRow, each_lane};
use super::machine::{Flow, Machine};
use super::warp::{Frame, Waiting};
use crate::error::Access;
use crate::isa::{Instruction, LANES};
use crate::memory::GENERIC_WINDOW;

/// A loop being tried out at a time that has not come yet.
pub(crate) struct Trial {
    /// How far ahead of the clocks.
    ahead: u64,
    now: Option<Nanos>,
    wall: Option<Nanos>,
    /// Local addresses read before they were written, and those written.
    read: Vec<u64>,
    written: Vec<u64>,
}

/// Which clock an instruction reads, in its `aux`.
pub(crate) const CLOCK: u32 = 0;
pub(crate) const CLOCK_HI: u32 = 1;
pub(crate) const CLOCK64: u32 = 2;
pub(crate) const GLOBALTIMER: u32 = 3;
pub(crate) const GLOBALTIMER_LO: u32 = 4;
pub(crate) const GLOBALTIMER_HI: u32 = 5;

/// Instructions a round may take, and different local addresses it may touch, to be tried at all.
const MOST_STEPS: u32 = 2000;
const MOST_ADDRESSES: usize = 64;
/// No one waits longer than this: 292 years.
const FOREVER: u64 = 1 << 62;

impl Machine<'_> {
    fn ticks(&mut self) -> Nanos {
        match &mut self.trial {
            None => self.clock.ticks(),
            Some(trial) => *trial.now.get_or_insert_with(|| self.clock.ticks()) + Nanos(trial.ahead),
        }
    }

    fn wall(&mut self) -> Nanos {
        match &mut self.trial {
            None => self.clock.wall(),
            Some(trial) => *trial.wall.get_or_insert_with(|| self.clock.wall()) + Nanos(trial.ahead),
        }
    }
}

/// Reads the clock in `aux` to `d`. All lanes see the same time.
pub(crate) fn read(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    let time = match i.aux {
        CLOCK | CLOCK_HI | CLOCK64 => m.ticks().0,
        _ => m.wall().0,
    };
    match i.aux {
        CLOCK64 | GLOBALTIMER => m.fill(i.d, mask, |_| time),
        CLOCK | GLOBALTIMER_LO => m.fill(i.d, mask, |_| time as u32),
        _ => m.fill(i.d, mask, |_| (time >> 32) as u32),
    }
    Flow::Next
}

/// `nanosleep` for the time in `a`: the longest that a lane asks for.
pub(crate) fn sleep(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    if m.trial.is_some() {
        return Flow::Next;
    }
    let wanted = m.source::<u32>(i.a);
    let time = match mask {
        u32::MAX => (0..LANES).map(|lane| wanted.get(lane)).max(),
        _ => each_lane(mask).map(|lane| wanted.get(lane)).max(),
    };
    let time = time.unwrap_or(0);
    if time == 0 {
        m.warp.polled = true;
        return Flow::Next;
    }
    m.tell_clock();
    let wait = Waiting::Sleep { until: m.clock.now() + Nanos(u64::from(time)), watches: false };
    if mask == m.warp.active {
        m.warp.waiting = wait;
    } else {
        let next = m.warp.pc;
        m.warp.fork(mask, next, wait);
    }
    Flow::Reschedule
}

/// What a trial may change: put back when it is over.
struct Saved {
    rows: Vec<RegisterRow>,
    predicates: Vec<u32>,
    carry: u32,
    pc: u32,
    frame: u32,
    frames: Vec<Frame>,
    local: super::address::LocalMemory,
}

/// How a trial round ended.
#[derive(PartialEq, Eq)]
enum Round {
    /// All lanes would go round again.
    Again,
    /// Some lane leaves.
    Ends,
    /// It cannot be told.
    Unknown,
}

impl Machine<'_> {
    /// The current split has just branched back to the head of a clock loop. Puts it to sleep until some lane
    /// leaves the loop, if that can be computed.
    pub(crate) fn await_clock(&mut self) {
        let head = self.warp.pc;
        let (ticks, wall) = (self.clock.ticks(), self.clock.wall());
        let mut saved = self.save();
        let mut ends = |m: &mut Self, ahead: u64| {
            let trial =
                Trial { ahead, now: Some(ticks), wall: Some(wall), read: Vec::new(), written: Vec::new() };
            m.trial = Some(Box::new(trial));
            let round = m.round(head);
            m.trial = None;
            m.restore(&mut saved);
            round
        };
        let mut early = 0u64;
        let mut late = 1u64;
        loop {
            match ends(self, late) {
                Round::Ends => break,
                Round::Again if late < FOREVER => (early, late) = (late, late * 2),
                _ => {
                    self.warp.hopeless.push(head);
                    return;
                }
            }
        }
        while late - early > 1 {
            let middle = early + (late - early) / 2;
            match ends(self, middle) {
                Round::Ends => late = middle,
                Round::Again => early = middle,
                Round::Unknown => return,
            }
        }
        self.warp.waiting = Waiting::Sleep { until: self.clock.now() + Nanos(late), watches: true };
    }

    /// One round of the loop at `head`, until it is back there or its lanes part.
    fn round(&mut self, head: u32) -> Round {
        let (active, frame, depth) = (self.warp.active, self.warp.frame, self.warp.depth());
        let end = self.image.clock_loops.get(&head).copied().unwrap_or(head);
        for _ in 0..MOST_STEPS {
            let i = &self.image.code[self.warp.pc as usize];
            match self.step(i) {
                Flow::Next | Flow::ClockLoop | Flow::Yield => {}
                Flow::Reschedule if self.warp.depth() == depth => {
                    // Lanes part in the loop itself: some of them may leave, so this is worth running.
                    return Round::Ends;
                }
                _ => return Round::Unknown,
            }
            if self.warp.active != active {
                return Round::Ends;
            }
            let at_home = self.warp.frame == frame;
            if at_home && self.warp.pc == head {
                return if self.carries() { Round::Unknown } else { Round::Again };
            }
            if at_home && (self.warp.pc < head || self.warp.pc > end) || self.warp.depth() < depth {
                return Round::Ends;
            }
        }
        Round::Unknown
    }

    /// Whether local memory takes a value from one round to the next.
    fn carries(&self) -> bool {
        let trial = self.trial.as_ref().expect("asked only during a trial");
        trial.read.iter().any(|address| trial.written.contains(address))
    }

    fn save(&mut self) -> Saved {
        let frame = self.warp.frames[self.warp.frame as usize];
        let function = &self.image.functions[frame.function as usize];
        let (rows, predicates) = (function.rows as usize, function.predicates as usize);
        let (base, predicate_base) = (self.warp.base, self.warp.predicate_base);
        Saved {
            rows: self.warp.rows[base..base + rows].iter_mut().map(RegisterRow::copy).collect(),
            predicates: self.warp.predicates[predicate_base..predicate_base + predicates].to_vec(),
            carry: self.warp.carry,
            pc: self.warp.pc,
            frame: self.warp.frame,
            frames: self.warp.frames.clone(),
            local: self.warp.local.copy(),
        }
    }

    fn restore(&mut self, saved: &mut Saved) {
        let warp = &mut *self.warp;
        let active = warp.others.drain(..).fold(warp.active, |all, split| all | split.active);
        (warp.active, warp.pc, warp.carry, warp.waiting) = (active, saved.pc, saved.carry, Waiting::No);
        warp.frames.clone_from(&saved.frames);
        warp.set_frame(saved.frame);
        let base = warp.base;
        for (to, from) in warp.rows[base..].iter_mut().zip(&mut saved.rows) {
            *to = from.copy();
        }
        let base = warp.predicate_base;
        warp.predicates[base..base + saved.predicates.len()].copy_from_slice(&saved.predicates);
        warp.local = saved.local.copy();
        self.fault = None;
    }

    /// Whether a trial may make this access: only to local memory, which it notes.
    #[cold]
    pub(crate) fn try_access<const SPACE: u8>(
        &mut self,
        i: &Instruction,
        mask: u32,
        size: u32,
        access: Access,
    ) -> bool {
        if SPACE == super::address::PARAM && access == Access::Read {
            return true;
        }
        if SPACE != LOCAL && SPACE != GENERIC {
            return false;
        }
        for lane in each_lane(mask) {
            let address = self.address(i, lane);
            let offset = if SPACE == LOCAL { address } else { address.wrapping_sub(self.state.local_window) };
            let trial = self.trial.as_mut().expect("asked only during a trial");
            if offset >= GENERIC_WINDOW || trial.read.len() + trial.written.len() > MOST_ADDRESSES {
                return false;
            }
            // By words of four bytes, so that overlapping accesses of different sizes meet.
            for word in offset / 4..(offset + u64::from(size)).div_ceil(4) {
                let written = trial.written.contains(&word);
                match access {
                    Access::Read if !written && !trial.read.contains(&word) => trial.read.push(word),
                    Access::Write if !written => trial.written.push(word),
                    _ => {}
                }
            }
        }
        true
    }
}
