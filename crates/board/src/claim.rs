//! Claims: who wants the token, as a policy sees it.

use model::Nanos;

use crate::board::{Board, Place};
use crate::layout::SEATS;
use crate::standing::Standing;
use crate::sync::Ordering;
use crate::token;

/// One who wants the token, and shows life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub place: Place,
    pub tenant: u64,
    pub weight: u32,
    pub virtual_time: Nanos,
    pub wanted_since: Nanos,
}

/// All claims at one moment, on the stack.
pub(crate) struct Claims {
    claims: [Claim; SEATS],
    count: usize,
}

const NOBODY: Claim = Claim {
    place: Place { seat: 0, generation: 0 },
    tenant: 0,
    weight: 1,
    virtual_time: Nanos::ZERO,
    wanted_since: Nanos::ZERO,
};

impl Claims {
    pub(crate) fn as_slice(&self) -> &[Claim] {
        &self.claims[..self.count]
    }

    pub(crate) fn update(&mut self, place: Place, virtual_time: Nanos, wanted_since: Nanos) {
        let mine = self.claims[..self.count].iter_mut().filter(|claim| claim.place == place);
        mine.for_each(|claim| (claim.virtual_time, claim.wanted_since) = (virtual_time, wanted_since));
    }
}

/// Everybody who wants the token and has shown life within the grace. Who was told to pause wants none; that the board calls
/// somebody paused is no reason to pass it over, for anybody can write that. Who has not would only keep the
/// token from the others for that long; when it comes back to life, it will be seen.
pub(crate) fn collect(board: &Board, now: Nanos) -> Claims {
    let grace = board.settings().grace;
    let mut found = Claims { claims: [NOBODY; SEATS], count: 0 };
    for (seat, number) in board.layout.used().iter().zip(0u16..) {
        let standing = Standing::of(&seat.standing);
        let terms = seat.terms.read();
        if !standing.wants() || token::is_lifeless(seat, now, grace) {
            continue;
        }
        found.claims[found.count] = Claim {
            place: Place { seat: number, generation: standing.generation() },
            tenant: seat.tenant.load(Ordering::Relaxed),
            weight: terms.weight,
            virtual_time: Nanos(seat.virtual_time.load(Ordering::Relaxed)),
            wanted_since: Nanos(seat.wanted_since.load(Ordering::Relaxed)),
        };
        found.count += 1;
    }
    found
}
