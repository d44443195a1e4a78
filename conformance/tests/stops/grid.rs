//! One launch on the executor, its blocks moved by hand.

use std::sync::Arc;

use model::Nanos;
use softgpu::memory::{AddressSpace, Word};
use softgpu::simt::{Block, Clock, Launch, Outcome};

use super::schedule::{Move, Order};

/// How an attempt at a launch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Whole,
    Cut,
    /// Everybody waits for somebody who does not come.
    Hangs,
    Faults,
}

/// Time passes only when everyone sleeps, and by a nanosecond whenever someone looks.
#[derive(Default)]
struct JumpingClock(u64);

impl Clock for JumpingClock {
    fn now(&mut self) -> Nanos {
        self.0 += 1;
        Nanos(self.0)
    }

    fn wall(&mut self) -> Nanos {
        Nanos(1_700_000_000_000_000_000 + self.0)
    }
}

/// More turns than any kernel here needs.
const MOST_TURNS: u32 = 400;
/// Instructions of a warp in one of them.
const TURN: u32 = 20_000;

pub struct Grid<'a> {
    pub space: &'a Arc<AddressSpace>,
    pub launch: Arc<Launch>,
    /// Address of the stop word.
    pub stop: u64,
    pub room: usize,
    pub order: Order,
}

impl Grid<'_> {
    /// Runs the grid to its end: as the moves say while there are any, then with all blocks taking turns.
    pub fn run(&self, moves: &mut std::vec::IntoIter<Move>) -> Result<(), End> {
        let mut numbers = self.order.of(self.launch.grid.volume().unwrap_or(0));
        numbers.reverse();
        let mut state =
            Running { grid: self, blocks: Vec::new(), to_come: numbers, clock: JumpingClock::default() };
        while !state.is_over() {
            match moves.next() {
                Some(one) => state.make(one)?,
                None => return state.finish(),
            }
        }
        Ok(())
    }

    fn set_stop(&self, value: u64) {
        self.space.store_word(self.stop, Word::Four, value).expect("the stop word is in memory");
    }
}

struct Running<'a> {
    grid: &'a Grid<'a>,
    blocks: Vec<Block>,
    /// Numbers of those that have not begun, the next one last.
    to_come: Vec<u64>,
    clock: JumpingClock,
}

/// What became of a block in its turn.
enum Turn {
    Moved,
    Sleeps(u64),
    Waits,
}

impl Running<'_> {
    fn is_over(&self) -> bool {
        self.to_come.is_empty() && self.blocks.is_empty()
    }

    fn make(&mut self, one: Move) -> Result<(), End> {
        match one {
            Move::Raise => self.grid.set_stop(1),
            Move::Lower => self.grid.set_stop(0),
            Move::Start => self.start(),
            Move::Run { .. } if self.blocks.is_empty() => {}
            Move::Run { which, budget } => {
                self.turn(usize::from(which) % self.blocks.len(), u32::from(budget))?;
            }
        }
        Ok(())
    }

    fn start(&mut self) {
        if self.blocks.len() < self.grid.room
            && let Some(number) = self.to_come.pop()
        {
            let mut block = Block::new(&self.grid.launch, self.grid.space);
            block.start(number, (number % 4) as u32);
            self.blocks.push(block);
        }
    }

    /// One block goes on; it leaves the list when it is done.
    fn turn(&mut self, which: usize, budget: u32) -> Result<Turn, End> {
        match self.blocks[which].run(&mut self.clock, budget) {
            Outcome::Done => {
                self.blocks.remove(which);
                Ok(Turn::Moved)
            }
            Outcome::Runnable => Ok(Turn::Moved),
            Outcome::Sleeping { until } => Ok(Turn::Sleeps(until.0)),
            Outcome::Blocked => Ok(Turn::Waits),
            Outcome::Faulted(_) => Err(End::Faults),
        }
    }

    /// Nobody stops anything any more, and all take turns.
    fn finish(&mut self) -> Result<(), End> {
        self.grid.set_stop(0);
        for _ in 0..MOST_TURNS {
            while self.blocks.len() < self.grid.room && !self.to_come.is_empty() {
                self.start();
            }
            if self.is_over() {
                return Ok(());
            }
            let (mut moved, mut wakes) = (false, u64::MAX);
            for which in (0..self.blocks.len()).rev() {
                match self.turn(which, TURN)? {
                    Turn::Moved => moved = true,
                    Turn::Sleeps(until) => wakes = wakes.min(until),
                    Turn::Waits => {}
                }
            }
            if !moved && wakes == u64::MAX {
                return Err(End::Hangs);
            }
            if !moved {
                self.clock.0 = self.clock.0.max(wakes);
            }
        }
        Err(End::Hangs)
    }
}
