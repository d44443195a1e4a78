//! The clock a block sees during one turn on a thread: it starts at the block's nominal time and runs at the
//! pace of the machine.

use model::Nanos;

use crate::card;
use crate::simt::Clock;

/// A turn of fewer instructions takes no time: reading the machine's clock would take longer than they did.
const INSTANT: u32 = 64;

pub struct TurnClock {
    /// Nominal context time at the beginning of the turn.
    base: Nanos,
    /// Machine time at the beginning of the turn, or at the latest reading before it.
    began: Nanos,
    /// The latest reading.
    seen: Nanos,
    read: bool,
    executed: u32,
    /// Machine time minus context time.
    offset: Nanos,
}

impl TurnClock {
    /// `machine` is a recent reading of the machine's clock, `offset` how far context time is behind it.
    pub fn new(machine: Nanos, offset: Nanos) -> TurnClock {
        TurnClock { base: Nanos::ZERO, began: machine, seen: machine, read: false, executed: 0, offset }
    }

    /// The next turn begins, nominally at `base`.
    pub fn begin(&mut self, base: Nanos) {
        self.base = base;
        self.began = self.seen;
        self.read = false;
        self.executed = 0;
    }

    /// Nominal time at the end of the turn. A turn that looked at the clock has just said what time it is.
    pub fn end(&mut self) -> Nanos {
        if self.read { self.base + self.seen.since(self.began) } else { self.now() }
    }

    fn look(&mut self) -> Nanos {
        self.seen = card::now();
        self.read = true;
        self.base + self.seen.since(self.began)
    }

    /// The latest reading of the machine's clock.
    pub fn machine(&self) -> Nanos {
        self.seen
    }
}

impl Clock for TurnClock {
    fn now(&mut self) -> Nanos {
        if self.executed < INSTANT && !self.read { self.base } else { self.look() }
    }

    fn ticks(&mut self) -> Nanos {
        self.look() + self.offset
    }

    fn executed(&mut self, instructions: u32) {
        self.executed += instructions;
    }

    fn wall(&mut self) -> Nanos {
        card::wall()
    }
}
