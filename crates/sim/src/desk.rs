//! The desk at which the scheduler sits: what it is asked, and what it answered so far.

use model::Nanos;
use policy::{Decision, Who, Why};

use crate::lane::Lane;
use crate::log::{Decided, Log};
use crate::{Ended, Facts, Scene, Scheduler, Sharing, World};

pub struct Desk<'s> {
    scheduler: &'s mut dyn Scheduler,
    exclusive: bool,
    lever: Nanos,
    asked: bool,
    /// How long a gap must be for the scheduler to be asked in it.
    pub in_gaps: Option<Nanos>,
    pub decision: Decision,
    /// Of every tenant, by seat.
    pub facts: Vec<Facts>,
    pub kept: Vec<Decided>,
    keep: usize,
    pub reasons: [u64; Why::ALL.len()],
    next_tick: Nanos,
}

/// How often a scheduler may look at the longer run.
const TICK: Nanos = Nanos::from_millis(100);

/// Who does not say when it wants to be asked again is asked after this much anyway.
const SOONEST: Nanos = Nanos(1_000);

impl<'s> Desk<'s> {
    pub fn new(scheduler: &'s mut dyn Scheduler, world: &World, lanes: &[Lane]) -> Desk<'s> {
        let (sharing, costs) = (world.sharing, &world.card.costs);
        let asked = sharing.is_scheduled();
        Desk {
            in_gaps: scheduler.asks_in_gaps().filter(|_| asked),
            scheduler,
            exclusive: sharing == Sharing::Isolated,
            lever: costs.lever_off,
            asked,
            decision: Decision::anything(Who::All, Nanos::MAX),
            facts: lanes.iter().zip(0..).map(|(lane, seat)| lane.introduce(seat)).collect(),
            kept: Vec::new(),
            keep: world.decisions,
            reasons: [0; Why::ALL.len()],
            next_tick: TICK,
        }
    }

    /// Whether anybody is asked at all.
    pub fn asked(&self) -> bool {
        self.asked
    }

    /// What is decided, from [`Desk::facts`] as they stand.
    pub fn ask(&mut self, now: Nanos) {
        if !self.asked {
            return;
        }
        let scene = Scene { now, exclusive: self.exclusive, lever: self.lever, tenants: &self.facts };
        let mut decision = self.scheduler.decide(&scene);
        // A moment that is past, or now, would have us ask for ever.
        decision.again = decision.again.max(now + SOONEST);
        self.decision = decision;
        let reason =
            Why::ALL.iter().position(|&why| why == decision.why).expect("every reason is in the list");
        self.reasons[reason] += 1;
        if self.kept.len() < self.keep {
            let Decision { who, why, .. } = decision;
            self.kept.push(Decided { at: now, who, longest: decision.longest_at(now), why });
        }
    }

    /// When the scheduler wants to be asked without being told that anything happened.
    pub fn again(&self) -> Nanos {
        if self.asked { self.decision.again } else { Nanos::MAX }
    }

    pub fn next_tick(&self) -> Nanos {
        if self.asked { self.next_tick } else { Nanos::MAX }
    }

    /// The longer run is looked at, if it is time.
    pub fn tick(&mut self, now: Nanos) {
        if self.asked && now >= self.next_tick {
            self.next_tick = now + TICK;
            self.scheduler.tick(&Scene {
                now,
                exclusive: self.exclusive,
                lever: self.lever,
                tenants: &self.facts,
            });
            self.in_gaps = self.scheduler.asks_in_gaps();
        }
    }

    /// What was decided, with what was played.
    pub fn into_log(self, lanes: Vec<Lane>, until: Nanos, events: u64, switches: u64) -> Log {
        Log {
            tenants: lanes.into_iter().map(|lane| lane.into_log(until)).collect(),
            decisions: self.kept,
            reasons: self.reasons,
            switches,
            events,
            until,
        }
    }

    pub fn ended(&mut self, end: &Ended) {
        if self.asked {
            self.scheduler.ended(end);
        }
    }
}
