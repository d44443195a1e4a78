//! The two rules as a model, in which every order of events can be tried.
//!
//! A prologue exists three times: as donor source for machine code, as text for PTX, and here as a machine that does one
//! memory access at a time ([`Block`]). The tests below let the blocks of a launch, and somebody who raises and lowers
//! the stop word, take their steps in every possible order. What must hold in all of them:
//!
//! * every block runs exactly once, however often the launch is cut and relaunched;
//! * the `away` word is set if and only if a block was turned away;
//! * a relaunch of a launch that ran whole changes nothing;
//! * under the ordered rule, what has run is a prefix of the linear order whenever no block is inside, and the blocks of
//!   a cluster run or leave together.
//!
//! # Why a block looks at `away` too
//!
//! It leaves if the stop word is set *or* an earlier launch of its stream was cut. The second makes stream order a
//! matter of the stream alone: behind a cut launch everything turns away by itself, whenever the stop word is lowered.
//! With the stop word alone it could only be lowered at a moment when every stream of the process is at rest, and there
//! need not be one when streams wait for each other (`lanes` finds both).
//!
//! # Launches that overlap
//!
//! A launch may begin, and read its words, before the one before it is complete, if all blocks of that one have ended, if those
//! that were turned away made sure before that this is seen, and if it waits for the rest before it does more. `lanes` tries
//! that too, and what happens without each of these.
//!
//! # The ordered rule
//!
//! All blocks of an attempt meet at one cell. The first to come moves the limit behind itself, to the next multiple of
//! [`BATCH`], so that most blocks only read it; the first to see a reason to stop puts an end to that. From then on the
//! limit is where the launch is cut, so all agree, without talking, on who runs. The next attempt has the other cell, and
//! begins where the previous limit was.

#[cfg(test)]
mod blocks;
#[cfg(test)]
mod lanes;
#[cfg(test)]
mod search;

use crate::{Mode, Rule};

/// How far the limit is moved at once: as many blocks may begin after a stop that would otherwise not have.
pub const BATCH: u32 = 32;

/// How far an attempt under the ordered rule has come: one word of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    pub serial: u32,
    /// Whether the limit is final.
    pub stopped: bool,
    /// Blocks (or clusters) below this number may run. 31 bits.
    pub limit: u32,
}

impl Cell {
    const STOPPED: u64 = 1 << 31;

    pub const fn from_word(word: u64) -> Cell {
        let (low, high) = (word as u32, (word >> 32) as u32);
        Cell { serial: high, stopped: word & Self::STOPPED != 0, limit: low & !(Self::STOPPED as u32) }
    }

    pub const fn word(self) -> u64 {
        (self.serial as u64) << 32 | if self.stopped { Self::STOPPED } else { 0 } | self.limit as u64
    }

    /// What a cell says to the blocks of a launch: whatever another launch left in it means that none has come yet.
    const fn seen_by(word: u64, serial: u32, base: u32) -> Cell {
        let cell = Cell::from_word(word);
        if cell.serial == serial { cell } else { Cell { serial, stopped: false, limit: base } }
    }
}

/// The memory that a launch's blocks share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Memory {
    pub stop: u32,
    pub away: u32,
    /// Plain rule: a word for each block.
    pub marks: Vec<u32>,
    /// Ordered rule.
    pub cells: [u64; 2],
}

/// What all blocks of one attempt know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    pub serial: u32,
    pub rule: Rule,
    pub again: bool,
    pub second_cell: bool,
    pub batch: u32,
}

impl Attempt {
    pub fn mode(self) -> Mode {
        let bits = [
            (self.rule == Rule::Ordered, Mode::ORDERED),
            (self.again, Mode::AGAIN),
            (self.second_cell, Mode::SECOND_CELL),
        ];
        bits.into_iter().filter(|&(set, _)| set).fold(Mode::FIRST, |mode, (_, bit)| mode | bit)
    }

    /// The next attempt at the same launch. Under the ordered rule the host clears its cell first.
    pub fn next(self) -> Attempt {
        Attempt { again: true, second_cell: !self.second_cell, ..self }
    }
}

/// How a block's prologue ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Run,
    RanBefore,
    TurnedAway,
}

/// A block in its prologue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Linear index of the block, or of its cluster where there are clusters.
    index: u32,
    /// Where its mark is.
    mark: usize,
    stop: Option<u32>,
    away: Option<u32>,
    mark_seen: Option<u32>,
    base: Option<u32>,
    at: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Loading,
    Deciding,
    /// Ordered rule, between reading the cell and exchanging it for what follows from it.
    Exchanging(u64),
    TellingAway,
    Done(Outcome),
}

/// A memory access that a block can make next. Loads of different words are not ordered, so there may be several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    LoadStop,
    LoadAway,
    LoadMark,
    LoadBase,
    StoreMark,
    StoreAway,
    LoadCell,
    ExchangeCell,
}

impl Block {
    pub fn new(index: u32, mark: usize) -> Block {
        Block { index, mark, stop: None, away: None, mark_seen: None, base: None, at: Place::Loading }
    }

    pub fn outcome(&self) -> Option<Outcome> {
        match self.at {
            Place::Done(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// What the block may do next; nothing when its prologue has ended.
    pub fn choices(&self, attempt: Attempt) -> Vec<Access> {
        match self.at {
            Place::Loading => {
                let again = attempt.again;
                let ordered = attempt.rule == Rule::Ordered;
                let loads = [
                    (self.stop.is_none(), Access::LoadStop),
                    (self.away.is_none(), Access::LoadAway),
                    (!ordered && again && self.mark_seen.is_none(), Access::LoadMark),
                    (ordered && again && self.base.is_none(), Access::LoadBase),
                ];
                loads.into_iter().filter(|&(wanted, _)| wanted).map(|(_, access)| access).collect()
            }
            Place::Deciding if attempt.rule == Rule::Ordered => vec![Access::LoadCell],
            Place::Deciding => vec![Access::StoreMark],
            Place::Exchanging(_) => vec![Access::ExchangeCell],
            Place::TellingAway => vec![Access::StoreAway],
            Place::Done(_) => Vec::new(),
        }
    }

    /// Makes one access.
    pub fn step(&mut self, access: Access, attempt: Attempt, memory: &mut Memory) {
        let cell = usize::from(attempt.second_cell);
        match access {
            Access::LoadStop => self.stop = Some(memory.stop),
            Access::LoadAway => self.away = Some(memory.away),
            Access::LoadMark => self.mark_seen = Some(memory.marks[self.mark]),
            Access::LoadBase => {
                self.base = Some(Cell::seen_by(memory.cells[1 - cell], attempt.serial, 0).limit)
            }
            Access::StoreMark => {
                memory.marks[self.mark] = attempt.serial;
                self.at = Place::Done(Outcome::Run);
            }
            Access::StoreAway => {
                memory.away = attempt.serial;
                self.at = Place::Done(Outcome::TurnedAway);
            }
            Access::LoadCell => self.judge(memory.cells[cell], attempt),
            Access::ExchangeCell => self.exchange(&mut memory.cells[cell], attempt),
        }
        if self.at == Place::Loading && self.choices(attempt).is_empty() {
            self.loaded(attempt);
        }
    }

    /// All that is read once has been read.
    fn loaded(&mut self, attempt: Attempt) {
        self.at = match attempt.rule {
            Rule::Ordered => Place::Deciding,
            Rule::Plain if self.mark_seen == Some(attempt.serial) => Place::Done(Outcome::RanBefore),
            Rule::Plain if self.must_leave() => self.leave(),
            Rule::Plain => Place::Deciding,
        };
    }

    fn must_leave(&self) -> bool {
        self.stop != Some(0) || self.away != Some(0)
    }

    /// The first of a stream's cut launches stands in `away`; whoever finds one there has nothing to add.
    fn leave(&self) -> Place {
        if self.away == Some(0) { Place::TellingAway } else { Place::Done(Outcome::TurnedAway) }
    }

    fn base(&self) -> u32 {
        self.base.unwrap_or(0)
    }

    /// Ordered rule: what a value of the cell means for this block.
    fn judge(&mut self, word: u64, attempt: Attempt) {
        let cell = Cell::seen_by(word, attempt.serial, self.base());
        let fresh = cell.word() != word;
        self.at = match () {
            // A cell that nobody has used says nothing to the attempt after this one: it is to know the base.
            () if self.index < self.base() && fresh => Place::Exchanging(word),
            () if self.index < self.base() => Place::Done(Outcome::RanBefore),
            () if self.index < cell.limit => Place::Done(Outcome::Run),
            () if cell.stopped => self.leave(),
            () => Place::Exchanging(word),
        };
    }

    fn exchange(&mut self, place: &mut u64, attempt: Attempt) {
        if self.at == Place::Exchanging(*place) {
            let cell = Cell::seen_by(*place, attempt.serial, self.base());
            let next = match () {
                () if self.index < self.base() => cell,
                () if self.must_leave() => Cell { stopped: true, ..cell },
                () => Cell { limit: (self.index | (attempt.batch - 1)) + 1, ..cell },
            };
            *place = next.word();
        }
        self.judge(*place, attempt);
    }
}
