//! A warp: its registers, its splits and which of them runs.

use model::Nanos;

use super::address::LocalMemory;
use super::barrier::Barriers;
use super::lanes::RegisterRow;
use super::machine::{Flow, Machine};
use crate::isa::{LANES, PoolRow};

/// Why a split does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// It does, or could.
    No,
    /// At an instruction that needs other lanes of the warp; asked again when `epoch` has passed.
    Lanes { epoch: u32 },
    /// At `bar.warp.sync` for these lanes, wherever they execute it.
    Warp { members: u32, epoch: u32 },
    /// At a barrier of the block, until its generation changes.
    Barrier { id: u8, generation: u32 },
    /// Until this moment of context time; with `watches`, because that is when a loop on a clock would end.
    Sleep { until: Nanos, watches: bool },
}

/// Lanes that run together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    pub(crate) pc: u32,
    pub(crate) active: u32,
    pub(crate) frame: u32,
    pub(crate) waiting: Waiting,
    /// When it last ran, for taking turns.
    pub(crate) stamp: u32,
}

/// An activation of a function. Splits that made the same call from the same place share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) parent: u32,
    pub(crate) return_pc: u32,
    pub(crate) function: u32,
    pub(crate) depth: u32,
    pub(crate) base: u32,
    pub(crate) predicate_base: u32,
    /// Where its local variables begin, and where those of a callee may.
    pub(crate) local_base: u32,
    pub(crate) local_top: u32,
}

/// Loop rounds a split may make while others of its warp wait, and rounds that poll memory.
const PATIENCE: u32 = 4096;
const POLLS: u32 = 64;
/// Basic blocks for which a split that was given a turn keeps it.
const FAVOUR: u32 = 256;
/// Frames a warp may hold before unused ones are looked for.
const FRAMES: usize = 256;

pub(crate) struct Warp {
    pub(crate) index: u32,
    pub(crate) rows: Vec<RegisterRow>,
    pub(crate) predicates: Vec<u32>,
    /// Condition code register: the carry of each lane.
    pub(crate) carry: u32,
    /// The lanes that exist, and those that do not or have exited.
    lanes: u32,
    pub(crate) dead: u32,
    /// The current split. `active` is zero when there is none.
    pub(crate) pc: u32,
    pub(crate) active: u32,
    pub(crate) frame: u32,
    pub(crate) waiting: Waiting,
    stamp: u32,
    pub(crate) base: usize,
    pub(crate) predicate_base: usize,
    pub(crate) others: Vec<Split>,
    pub(crate) frames: Vec<Frame>,
    frames_limit: usize,
    /// Counts events that may let a waiting split go on: lanes that exit.
    pub(crate) epoch: u32,
    turns: u32,
    /// How often the split that got a turn of its own is still preferred.
    favour: u32,
    /// Set by instructions that look at memory others write, cleared by a backward branch.
    pub(crate) polled: bool,
    polls: u32,
    rounds: u32,
    pub(crate) local: LocalMemory,
    /// Heads of loops that looked as if they waited for a clock, and do not.
    pub(crate) hopeless: Vec<u32>,
    /// `%tid` of each lane.
    pub(crate) thread: [PoolRow; 3],
}

impl Warp {
    pub(crate) fn new(index: u32, lanes: u32, thread: [PoolRow; 3], rows: usize, predicates: usize) -> Warp {
        Warp {
            index,
            rows: std::iter::repeat_with(RegisterRow::zero).take(rows).collect(),
            predicates: vec![0; predicates],
            carry: 0,
            lanes,
            dead: !lanes,
            pc: 0,
            active: 0,
            frame: 0,
            waiting: Waiting::No,
            stamp: 0,
            base: 0,
            predicate_base: 0,
            others: Vec::new(),
            frames: Vec::with_capacity(1),
            frames_limit: FRAMES,
            epoch: 0,
            turns: 0,
            favour: 0,
            polled: false,
            polls: 0,
            rounds: 0,
            local: LocalMemory::default(),
            hopeless: Vec::new(),
            thread,
        }
    }

    /// Makes sure of this many registers; another kernel is going to use them.
    pub(crate) fn make_room(&mut self, rows: usize, predicates: usize) {
        if self.rows.len() < rows {
            self.rows.resize_with(rows, RegisterRow::zero);
        }
        if self.predicates.len() < predicates {
            self.predicates.resize(predicates, 0);
        }
        self.hopeless.clear();
    }

    /// Puts all lanes at the start of a kernel.
    pub(crate) fn start(&mut self, entry: u32, kernel: Frame) {
        self.dead = !self.lanes;
        (self.pc, self.active, self.waiting) = (entry, self.lanes, Waiting::No);
        (self.frame, self.base, self.predicate_base) = (0, 0, 0);
        self.others.clear();
        self.frames.clear();
        self.frames.push(kernel);
        (self.polls, self.rounds) = (0, 0);
        // A turn that a split of the last block was given ends with it.
        (self.turns, self.stamp, self.favour, self.polled) = (0, 0, 0, false);
    }

    pub(crate) fn is_done(&self) -> bool {
        self.dead == u32::MAX
    }

    pub(crate) fn depth(&self) -> u32 {
        self.frames[self.frame as usize].depth
    }

    pub(crate) fn set_frame(&mut self, frame: u32) {
        let found = &self.frames[frame as usize];
        (self.base, self.predicate_base) = (found.base as usize, found.predicate_base as usize);
        self.frame = frame;
    }

    /// The frame of a call, shared with splits that are in the same call already.
    ///
    /// Splits in different functions must not have the same rows, though they have different lanes: one function may
    /// have a wide register where the other has narrow ones, and lane 1 of the former lies in lanes 2 and 3 of the
    /// latter. So a call is placed behind everything that other splits are in.
    pub(crate) fn place_call(&self, call: Frame, rows_of: impl Fn(u32) -> u32) -> (Frame, Option<usize>) {
        let mut base = call.base;
        for split in &self.others {
            let mut index = split.frame as usize;
            // The caller and its callers lie before the call; what is not among them has come later.
            while index > call.parent as usize {
                let frame = self.frames[index];
                if (Frame { base: call.base, ..frame }) == call {
                    return (frame, Some(index));
                }
                base = base.max(frame.base + rows_of(frame.function));
                index = frame.parent as usize;
            }
        }
        (Frame { base, ..call }, None)
    }

    /// Goes into a frame that [`Self::place_call`] has found a place for.
    pub(crate) fn enter(&mut self, frame: Frame, known: Option<usize>) {
        let index = known.unwrap_or_else(|| self.add_frame(frame));
        self.set_frame(index as u32);
    }

    fn add_frame(&mut self, mut frame: Frame) -> usize {
        if self.frames.len() >= self.frames_limit {
            self.drop_unused_frames();
            // The caller is the current frame, which may have moved.
            frame.parent = self.frame;
        }
        self.frames.push(frame);
        self.frames.len() - 1
    }

    /// Leaves the current frame for its parent.
    pub(crate) fn leave_frame(&mut self) {
        let parent = self.frames[self.frame as usize].parent;
        if self.others.is_empty() && self.frame as usize + 1 == self.frames.len() {
            self.frames.pop();
        }
        self.set_frame(parent);
    }

    /// Keeps the frames that some split can return to.
    fn drop_unused_frames(&mut self) {
        let mut used = vec![false; self.frames.len()];
        let frames_of_splits = self.others.iter().map(|split| split.frame).chain([self.frame]);
        for mut frame in frames_of_splits {
            while !std::mem::replace(&mut used[frame as usize], true) {
                frame = self.frames[frame as usize].parent;
            }
        }
        let mut place = vec![0u32; used.len()];
        let mut kept = Vec::new();
        for (index, frame) in self.frames.iter().enumerate().filter(|(index, _)| used[*index]) {
            place[index] = kept.len() as u32;
            // A parent is older than its child, so it has its new place already.
            kept.push(Frame { parent: place[frame.parent as usize], ..*frame });
        }
        self.frames = kept;
        self.frame = place[self.frame as usize];
        self.others.iter_mut().for_each(|split| split.frame = place[split.frame as usize]);
        self.frames_limit = (2 * self.frames.len()).max(FRAMES);
    }

    /// Sends the lanes of `mask` off on their own, to `pc`; the others stay current.
    pub(crate) fn fork(&mut self, mask: u32, pc: u32, waiting: Waiting) {
        self.active &= !mask;
        self.others.push(Split { pc, active: mask, frame: self.frame, waiting, stamp: self.turns });
    }

    /// A backward branch was taken: has the split had its share?
    pub(crate) fn round(&mut self) -> Flow {
        self.rounds += 1;
        self.polls += u32::from(std::mem::take(&mut self.polled));
        if self.polls >= POLLS {
            return Flow::Yield;
        }
        if self.rounds >= PATIENCE && !self.others.is_empty() { Flow::Yield } else { Flow::Next }
    }

    /// Starts counting rounds anew; says whether the split had been polling.
    pub(crate) fn forget_rounds(&mut self) -> bool {
        self.rounds = 0;
        std::mem::take(&mut self.polls) >= POLLS
    }

    fn current(&self) -> Split {
        Split {
            pc: self.pc,
            active: self.active,
            frame: self.frame,
            waiting: self.waiting,
            stamp: self.stamp,
        }
    }

    fn set_current(&mut self, split: Split) {
        (self.pc, self.active, self.waiting, self.stamp) =
            (split.pc, split.active, split.waiting, self.turns);
        self.set_frame(split.frame);
    }

    /// Wakes the splits that wait for a clock; true if there are any.
    pub(crate) fn wake_watchers(&mut self) -> bool {
        let waits = self.others.iter_mut().map(|split| &mut split.waiting).chain([&mut self.waiting]);
        let watching = waits.filter(|wait| matches!(wait, Waiting::Sleep { watches: true, .. }));
        watching.map(|wait| *wait = Waiting::No).count() > 0
    }

    /// When the first sleeping split wakes.
    pub(crate) fn wakes(&self) -> Option<Nanos> {
        let waits = self.others.iter().map(|split| split.waiting).chain([self.waiting]);
        waits
            .filter_map(|wait| if let Waiting::Sleep { until, .. } = wait { Some(until) } else { None })
            .min()
    }
}

/// Whether what a split waits for has come.
pub(crate) fn arrived(waiting: Waiting, epoch_now: u32, barriers: &Barriers, now: Nanos) -> bool {
    match waiting {
        Waiting::No => true,
        Waiting::Lanes { epoch } | Waiting::Warp { epoch, .. } => epoch != epoch_now,
        Waiting::Barrier { id, generation } => barriers.generation(id) != generation,
        Waiting::Sleep { until, .. } => now >= until,
    }
}

impl Machine<'_> {
    /// Makes the split current that should run next; false if all wait. `turn` asks for another split than
    /// the usual one, so that everyone moves on.
    pub(crate) fn pick(&mut self, now: Nanos, turn: bool) -> bool {
        let epoch = self.warp.epoch;
        if self.warp.others.is_empty() {
            if self.warp.active == 0 || !arrived(self.warp.waiting, epoch, &self.state.barriers, now) {
                return false;
            }
            self.release_current();
            return true;
        }
        self.gather(now);
        let warp = &mut *self.warp;
        let ready = warp.others.iter().enumerate().filter(|(_, split)| split.waiting == Waiting::No);
        let key = |split: &Split| {
            let age = warp.turns.wrapping_sub(split.stamp);
            let depth = warp.frames[split.frame as usize].depth;
            match (turn, warp.favour) {
                (true, _) => (u32::MAX - age, split.pc),
                (false, 1..) => (age, split.pc),
                (false, 0) => (u32::MAX - depth, split.pc),
            }
        };
        let Some((best, _)) = ready.min_by_key(|(_, split)| key(split)) else { return false };
        let split = warp.others.swap_remove(best);
        warp.turns = warp.turns.wrapping_add(1);
        warp.favour = if turn { FAVOUR } else { warp.favour.saturating_sub(1) };
        warp.set_current(split);
        true
    }

    /// Moves all splits into `others`, wakes those whose time has come and merges those that met.
    fn gather(&mut self, now: Nanos) {
        if self.warp.active != 0 {
            let current = self.warp.current();
            self.warp.others.push(current);
            (self.warp.active, self.warp.waiting) = (0, Waiting::No);
        }
        for index in 0..self.warp.others.len() {
            let split = self.warp.others[index];
            if split.waiting != Waiting::No
                && arrived(split.waiting, self.warp.epoch, &self.state.barriers, now)
            {
                self.warp.set_current(split);
                self.release_current();
                self.warp.others[index] = Split { stamp: split.stamp, ..self.warp.current() };
                (self.warp.active, self.warp.waiting) = (0, Waiting::No);
            }
        }
        merge(&mut self.warp.others);
    }

    /// What waiting was for is done: a barrier hands over its result.
    fn release_current(&mut self) {
        if let Waiting::Barrier { id, .. } = self.warp.waiting {
            self.finish_barrier(id);
        }
        self.warp.waiting = Waiting::No;
    }
}

/// Joins splits at the same place. Those that wait for lanes are joined by whoever comes, and look again.
fn merge(splits: &mut Vec<Split>) {
    let joins =
        |split: &Split| matches!(split.waiting, Waiting::No | Waiting::Lanes { .. } | Waiting::Warp { .. });
    let mut index = 0;
    while index < splits.len() {
        let split = splits[index];
        let twin = |other: &Split| other.pc == split.pc && other.frame == split.frame && joins(other);
        let found = joins(&split).then(|| splits[..index].iter().position(twin)).flatten();
        match found {
            Some(first) => {
                splits.swap_remove(index);
                splits[first].active |= split.active;
                splits[first].waiting = Waiting::No;
            }
            None => index += 1,
        }
    }
}

const _: () = assert!(LANES == u32::BITS as usize, "a mask has one bit per lane");
