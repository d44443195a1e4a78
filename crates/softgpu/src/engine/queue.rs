//! What one context has under way: grids in order, blocks that can run, blocks that sleep.

use std::collections::VecDeque;
use std::sync::Arc;

use model::{Domain, Nanos};

use super::MAX_LAG;
use super::context::Core;
use super::grid::{Grid, Resident};
use super::spare::Spare;
use super::timers::Timers;
use crate::card::{CLAIMS_NOTHING, Card, SmSet, Turn};
use crate::memory::AddressSpace;
use crate::simt::Block;

/// A block that has its place on an SM but has not begun.
pub struct Fresh {
    pub grid: Arc<Grid>,
    pub number: u64,
    pub sm: u32,
    /// Nominal context time of its beginning.
    pub at: Nanos,
}

impl Fresh {
    /// Begins the block, in the memory of one that has ended if there is any.
    pub fn begin(self, spare: Option<Spare>, space: &Arc<AddressSpace>) -> Resident {
        let launch = &self.grid.launch;
        let mut block = spare.unwrap_or_else(|| Box::new(Block::new(launch, space)));
        block.adopt(launch);
        block.start(self.number, self.sm);
        Resident { block, grid: self.grid, sm: self.sm, at: self.at }
    }
}

/// A block that a thread can go on with.
pub enum Item {
    Fresh(Fresh),
    Resident(Resident),
}

pub struct Queue {
    pub core: Arc<Core>,
    /// Most urgent first; among equals, in order of readiness.
    pub grids: Vec<Arc<Grid>>,
    pub runnable: VecDeque<Item>,
    pub sleeping: Timers<Resident>,
    /// Blocks whose warps wait for each other for ever. They keep their SM, as on a card.
    pub hung: Vec<Resident>,
    /// Nominal time at which room was last left on each SM.
    free_at: Vec<Nanos>,
    /// No room was left at the last try, and none has been given back since.
    full: bool,
    said_runnable: bool,
    /// Beginning of the latest turn on the GPU, on the machine's clock.
    turn: Nanos,
    places: Vec<u32>,
}

impl Queue {
    pub fn new(core: Arc<Core>, sms: u32) -> Queue {
        Queue {
            core,
            grids: Vec::new(),
            runnable: VecDeque::new(),
            sleeping: Timers::new(),
            hung: Vec::new(),
            free_at: vec![Nanos::ZERO; sms as usize],
            full: false,
            said_runnable: false,
            turn: Nanos::ZERO,
            places: Vec::new(),
        }
    }

    pub fn add(&mut self, grid: Grid) {
        let before = |other: &Arc<Grid>| (other.priority, other.number) < (grid.priority, grid.number);
        let position = self.grids.partition_point(before);
        self.grids.insert(position, Arc::new(grid));
        self.full = false;
    }

    /// Tells the card whether there is anything to run, if that has changed.
    pub fn sync_runnable(&mut self, card: &Card) {
        let runnable = !self.grids.is_empty();
        if runnable != self.said_runnable {
            self.said_runnable = runnable;
            card.set_runnable(&self.core.handle, runnable);
        }
    }

    /// Where the context stands on the card: `Ok(context time)` when it can run at `machine` time, else when to
    /// look again, if anything is known of that.
    pub fn standing(&self, card: &Card, machine: Nanos) -> Result<Standing, Option<Nanos>> {
        if self.grids.is_empty() {
            return Err(None);
        }
        match card.turn(&self.core.handle) {
            Turn::On { begins, offset } if begins <= machine => {
                let (now, since) = (machine - offset, begins - offset);
                Ok(Standing { now, begins: since, turn: begins, offset, taken_at: machine })
            }
            Turn::On { begins, .. } => Err(Some(begins)),
            Turn::Off { .. } => Err(card.next_arbitration()),
        }
    }

    /// At the beginning of a turn, blocks that wait for a clock look at it again.
    pub fn notice_turn(&mut self, standing: &Standing) {
        if standing.turn == self.turn {
            return;
        }
        self.turn = standing.turn;
        let sleeping: Vec<Resident> = self.sleeping.drain().collect();
        for mut resident in sleeping {
            if resident.block.wake_watchers() {
                resident.at = standing.begins;
                self.runnable.push_back(Item::Resident(resident));
            } else {
                self.sleeping.push(resident.at, resident);
            }
        }
    }

    /// Gives blocks to the SMs that have room, in linear order, the most urgent grid first.
    pub fn dispatch(&mut self, card: &Card, standing: &Standing) {
        if self.full && card.domain() == Domain::Isolated {
            return;
        }
        let mut waiting = Waiting::default();
        for grid in &self.grids {
            let wanted = grid.undispatched();
            if wanted == 0 {
                continue;
            }
            let among = waiting.leaves_to(grid);
            self.places.clear();
            card.place(
                &self.core.handle,
                grid.priority,
                &grid.footprint,
                wanted,
                among.as_ref(),
                &mut self.places,
            );
            let start = standing.nominal(grid.ready_at);
            let mut unused = Vec::new();
            for &sm in &self.places {
                let free_at = self.free_at[sm as usize].max(card.left_at(sm) - standing.offset);
                let at = start.max(free_at).min(standing.now);
                match grid.claim() {
                    Some(number) => {
                        self.runnable.push_back(Item::Fresh(Fresh {
                            grid: Arc::clone(grid),
                            number,
                            sm,
                            at,
                        }));
                    }
                    // Another thread's block took the number for its successor meanwhile.
                    None => unused.push(sm),
                }
            }
            if !unused.is_empty() {
                card.release(&self.core.handle, &grid.footprint, &unused);
            }
            if grid.undispatched() > 0 {
                self.full = true;
                waiting.add(grid);
                if waiting.anywhere.is_some() {
                    break;
                }
            }
        }
        self.core.set_confined_waiting(waiting.confined);
        card.set_pending(&self.core.handle, waiting.pending());
    }

    /// Whether blocks wait for their places.
    pub fn has_undispatched(&self) -> bool {
        self.grids.iter().any(|grid| grid.undispatched() > 0)
    }

    /// Whether blocks that have their place wait for a thread.
    pub fn has_backlog(&self) -> bool {
        !self.runnable.is_empty()
    }

    /// A block has left its SM without a successor.
    pub fn vacate(&mut self, sm: u32, at: Nanos) {
        let free_at = &mut self.free_at[sm as usize];
        *free_at = at.max(*free_at);
        self.full = false;
    }

    pub fn remove(&mut self, grid: &Arc<Grid>) {
        self.grids.retain(|other| !Arc::ptr_eq(other, grid));
    }
}

/// What found no room in one dispatch. A grid that is confined keeps those behind it from its own SMs only.
#[derive(Default)]
struct Waiting {
    /// The priority of a grid that would have taken any SM.
    anywhere: Option<i32>,
    /// The most urgent priority of those that are confined.
    confined: Option<i32>,
    /// The SMs that those wait for.
    spoken_for: Option<SmSet>,
}

impl Waiting {
    /// The SMs on which blocks of the grid may be put; none is said if that is any.
    fn leaves_to(&self, grid: &Grid) -> Option<SmSet> {
        let Some(taken) = &self.spoken_for else { return grid.launch.sms };
        Some(grid.launch.sms.unwrap_or_else(|| SmSet::of(0..u32::MAX)).without(taken))
    }

    fn add(&mut self, grid: &Grid) {
        match &grid.launch.sms {
            None => self.anywhere = Some(grid.priority),
            Some(sms) => {
                // Grids come most urgent first.
                self.confined = self.confined.or(Some(grid.priority));
                self.spoken_for = Some(self.spoken_for.map_or(*sms, |others| others.union(sms)));
            }
        }
    }

    /// What the card is told.
    fn pending(&self) -> Option<i32> {
        self.anywhere.or(self.confined.map(|_| CLAIMS_NOTHING))
    }
}

/// A context that is on, at one moment. Context time, where nothing else is said.
#[derive(Clone, Copy)]
pub struct Standing {
    pub now: Nanos,
    pub begins: Nanos,
    /// Machine time of the beginning of this turn.
    pub turn: Nanos,
    /// Machine time minus context time.
    pub offset: Nanos,
    /// Machine time of this moment.
    pub taken_at: Nanos,
}

impl Standing {
    /// Context time of something that happened at `machine` time, as far back as may be caught up.
    fn nominal(&self, machine: Nanos) -> Nanos {
        (machine - self.offset).max(self.begins).max(self.now - MAX_LAG).min(self.now)
    }
}
