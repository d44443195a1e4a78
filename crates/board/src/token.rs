//! The token: who may put best-effort work on the GPU.
//!
//! One word says who has it and how often it has changed hands, so every change is one compare-and-exchange and two who
//! want to change it at once cannot both succeed: the holder who passes it, the waiter who takes it from a holder without
//! life, the daemon who frees it for the dead.
//!
//! Two rules follow each change, and each is a write, a full fence, and a look, against a write, a full fence and a look on
//! the other side, so that at least one of the two sees the other.
//!
//! * *Given*: whoever gives the token to a seat looks whether the seat still wants it, and takes it back if not.
//!   Whoever ceases to want, or ends an occupation, looks whether the seat has the token, and frees it if so. So the token
//!   never stays with one who does not want it. (`SYNC(token-given)`)
//! * *Free*: whoever frees the token looks who wants it, and rings their bells. Whoever comes to want it looks whether
//!   it is free. So it is never free while somebody who wants it sleeps. (`SYNC(token-free)`)

use model::Nanos;

use crate::layout::{Layout, Seat};
use crate::standing::Standing;
use crate::sync::{AtomicU64, Ordering, fence};

/// The token, read once: how often it has changed hands, and one more than the number of the seat that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token(u64);

const SEAT_BITS: u32 = 16;

impl Token {
    pub(crate) fn of(word: &AtomicU64) -> Token {
        // SYNC(token-pass): pairs with `exchange`; the holder sees what was written before it was given the token.
        Token(word.load(Ordering::Acquire))
    }

    /// Who has it; a number that no seat has is nobody's.
    pub(crate) fn holder(self) -> Option<u16> {
        let seat = (self.0 & ((1 << SEAT_BITS) - 1)).checked_sub(1)?;
        u16::try_from(seat).ok()
    }

    fn next(self, holder: Option<u16>) -> Token {
        let epoch = (self.0 >> SEAT_BITS).wrapping_add(1);
        Token(epoch << SEAT_BITS | holder.map_or(0, |seat| u64::from(seat) + 1))
    }
}

/// The only change there is; `None` when somebody else was first.
fn exchange(layout: &Layout, from: Token, to: Option<u16>) -> Option<Token> {
    let next = from.next(to);
    let word = &layout.round.token;
    // SYNC(token-pass): what the old holder wrote (virtual time, the floor) is seen by the new one.
    word.compare_exchange(from.0, next.0, Ordering::AcqRel, Ordering::Relaxed).ok().map(|_| next)
}

/// Gives the token to a seat that wanted it a moment ago. Whether the seat has it now.
pub(crate) fn give(layout: &Layout, from: Token, to: u16, generation: u32, now: Nanos) -> bool {
    let Some(seat) = layout.seats.get(usize::from(to)) else { return false };
    // Before the exchange, so that the new holder finds it.
    seat.held_since.store(now.0, Ordering::Relaxed);
    let Some(given) = exchange(layout, from, Some(to)) else { return false };
    // SYNC(token-given): this fence and the one in `forgo`.
    fence(Ordering::SeqCst);
    let standing = Standing::of(&seat.standing);
    if standing.is(generation) && standing.wants() {
        return true;
    }
    free(layout, given);
    false
}

/// After a seat has ceased to want, or has been vacated: it does not keep the token.
pub(crate) fn forgo(layout: &Layout, seat: u16) {
    // SYNC(token-given): see `give`.
    fence(Ordering::SeqCst);
    let token = Token::of(&layout.round.token);
    if token.holder() == Some(seat) {
        free(layout, token);
    }
}

/// Frees the token and wakes all who want it.
pub(crate) fn free(layout: &Layout, from: Token) {
    if exchange(layout, from, None).is_none() {
        return;
    }
    // SYNC(token-free): this fence and the one in `wanted`.
    fence(Ordering::SeqCst);
    let wanting = layout.used().iter().filter(|seat| Standing::of(&seat.standing).wants());
    wanting.for_each(|seat| seat.bell.ring());
}

/// After a seat has come to want: what it sees of the token from now on is not older than its wish.
pub(crate) fn wanted() {
    // SYNC(token-free): see `free`.
    fence(Ordering::SeqCst);
}

/// Rings the bell of the holder, if there is one besides us.
pub(crate) fn wake_holder(layout: &Layout, own: u16) {
    let holder = Token::of(&layout.round.token).holder().filter(|&seat| seat != own);
    if let Some(seat) = holder.and_then(|seat| layout.seats.get(usize::from(seat))) {
        seat.bell.ring();
    }
}

/// Whether a seat has shown no life for longer than allowed.
pub(crate) fn is_lifeless(seat: &Seat, now: Nanos, grace: Nanos) -> bool {
    !is_recent(Nanos(seat.heart.beat.load(Ordering::Relaxed)), now, grace)
}

/// Whether a holder has shown no life for longer than allowed since it was given the token: it has to wake up first.
pub(crate) fn is_lifeless_holder(seat: &Seat, now: Nanos, grace: Nanos) -> bool {
    let given = Nanos(seat.held_since.load(Ordering::Relaxed));
    is_lifeless(seat, now, grace) && !is_recent(given, now, grace)
}

/// A moment that lies far in the future is no sign of life.
fn is_recent(moment: Nanos, now: Nanos, grace: Nanos) -> bool {
    now.since(moment) <= grace && moment.since(now) <= grace
}
