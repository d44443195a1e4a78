//! What a board says about a seat, checked.

use model::{Bytes, Nanos};

use crate::board::{Board, Place};
use crate::condition::Condition;
use crate::experience::Experience;
use crate::need::{Decided, Need};
use crate::outlook::Outlook;
use crate::standing::Standing;
use crate::sync::{Ordering, fence};
use crate::tally::Figures;
use crate::terms::Terms;
use crate::token::Token;

/// A seat at one moment, of one occupant. Numbers that the occupant writes are what it says; texts can be printed.
#[derive(Clone, Debug)]
pub struct Reading {
    pub pid: u32,
    pub tenant: u64,
    pub name: String,
    pub program: String,
    pub terms: Terms,
    pub condition: Condition,
    /// Has the token.
    pub holding: bool,
    /// Since when it has the token, if it does.
    pub holding_since: Option<Nanos>,
    /// Wants the token.
    pub wanting: bool,
    /// Since when it wants the token, if it does.
    pub wanting_since: Option<Nanos>,
    /// Of a latency tenant: since when it has had work, if it has.
    pub active_since: Option<Nanos>,
    pub virtual_time: Nanos,
    /// How much of the GPU's memory it has.
    pub memory: Bytes,
    /// When it last showed life; `None`: never yet.
    pub heartbeat: Option<Nanos>,
    /// Of a latency tenant.
    pub outlook: Outlook,
    pub experience: Experience,
    /// Of a best-effort tenant.
    pub need: Need,
    /// What was last decided about it, if anything was.
    pub decided: Option<Decided>,
    pub figures: Figures,
}

impl Reading {
    /// A seat's reading, or `None` when nobody sits there, or somebody else came while we looked.
    pub(crate) fn take(board: &Board, number: u16) -> Option<(Place, Reading)> {
        let seat = board.layout.seats.get(usize::from(number))?;
        let before = Standing::of(&seat.standing);
        if !before.is_taken() {
            return None;
        }
        let holding = Token::of(&board.layout.round.token).holder() == Some(number);
        let some = |time: u64| (time != 0).then_some(Nanos(time));
        let reading = Reading {
            pid: seat.pid.load(Ordering::Relaxed),
            tenant: seat.tenant.load(Ordering::Relaxed),
            name: seat.name.read().printable(),
            program: seat.program.read().printable(),
            terms: seat.terms.read(),
            condition: seat.said.read(),
            holding,
            holding_since: holding.then(|| Nanos(seat.held_since.load(Ordering::Relaxed))),
            wanting: before.wants(),
            wanting_since: before.wants().then(|| Nanos(seat.wanted_since.load(Ordering::Relaxed))),
            active_since: some(seat.heart.active_since.load(Ordering::Relaxed)),
            virtual_time: Nanos(seat.virtual_time.load(Ordering::Relaxed)),
            memory: seat.heart.memory.used(),
            heartbeat: some(seat.heart.beat.load(Ordering::Relaxed)),
            outlook: seat.outlook.read(),
            experience: seat.experience.read(),
            need: seat.need.read(),
            decided: seat.need.decided(),
            figures: seat.tally.figures(),
        };
        // SYNC(board-seat-again): pairs with `reserve`. All loads above stay before this look.
        fence(Ordering::Acquire);
        let after = Standing::of(&seat.standing);
        let place = Place { seat: number, generation: before.generation() };
        after.is(place.generation).then_some((place, reading))
    }

    /// How long ago it last showed life.
    pub fn silence(&self, now: Nanos) -> Option<Nanos> {
        self.heartbeat.map(|beat| now.since(beat))
    }
}
