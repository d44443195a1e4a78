//! A seat: the tenant's half of a board.
//!
//! Everything here runs inside other people's programs: no heap, no lock, and no wait without a bound.

use model::Nanos;

use crate::board::{Board, Place};
use crate::claim::{self, Claim};
use crate::condition::Condition;
use crate::layout;
use crate::standing::{self, Standing};
use crate::sync::Ordering;
use crate::tally::Tally;
use crate::terms::Terms;
use crate::token::{self, Token};

/// Nobody sleeps longer without looking round.
const LONGEST_WAIT: Nanos = Nanos::from_millis(1_000);

/// Whoever waits for a holder to show life looks again no sooner.
const SHORTEST_LOOK: Nanos = Nanos::from_micros(500);

/// Nobody's virtual time is further ahead of the others' than so many quanta, for each of its siblings, or than this span.
/// After a turn it is ahead by one; where work cannot be stopped, a turn takes longer than a quantum.
const LONGEST_LEAD: u32 = 4;
const LEAST_LEAD: Nanos = Nanos::from_millis(200);

/// The place of this process. A copy is as good as the original; any thread may use one.
#[derive(Clone, Copy)]
pub struct Seat {
    board: Board,
    place: Place,
}

/// For how long somebody has had the token, and with which weight that is charged: the one that the daemon has granted, which
/// the tenant knows from its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedTime {
    pub span: Nanos,
    pub weight: u32,
}

impl UsedTime {
    pub fn new(span: Nanos, weight: u32) -> UsedTime {
        UsedTime { span, weight }
    }
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Ours, since then.
    Mine { since: Nanos },
    /// Somebody else's. The bell rings when that changes; after this span it is worth looking without having heard it.
    Others { look_again: Nanos },
}

impl Seat {
    pub(crate) fn new(board: Board, place: Place) -> Seat {
        Seat { board, place }
    }

    pub fn place(&self) -> Place {
        self.place
    }

    pub fn board(&self) -> Board {
        self.board
    }

    /// Whether the seat is still ours.
    pub fn is_mine(&self) -> bool {
        self.standing().is(self.place.generation)
    }

    /// The board's copy of our terms. Everybody at the board can write it, so it tells others about us, and us only that there
    /// may be something to hear from the daemon.
    pub fn terms(&self) -> Terms {
        self.own().terms.read()
    }

    /// The bell's count. Read it before looking for work, and give it to [`wait`](Seat::wait).
    pub fn bell(&self) -> u32 {
        self.own().bell.count()
    }

    /// Sleeps until the bell has rung since it was `seen`, for so long at most and never longer than a second. It may
    /// return for no reason. While several want the token, a seat that wants or has it shows life: it returns often
    /// enough, and beats before it sleeps. Who is alone may sleep: whoever comes to want what it has rings.
    pub fn wait(&self, seen: u32, at_most: Nanos) {
        let grace = self.board.settings().grace;
        self.beat(crate::now());
        let contested = self.standing().wants() && self.others_want();
        let breath = if contested { Nanos(grace.0 / 2) } else { LONGEST_WAIT };
        self.own().bell.wait(seen, at_most.min(breath).min(LONGEST_WAIT));
        self.beat(crate::now());
    }

    /// Rings our own bell: from other threads of this process.
    pub fn ring(&self) {
        self.own().bell.ring();
    }

    /// Shows life. A holder, and whoever wants to be one, does so well within the grace of the settings.
    pub fn beat(&self, now: Nanos) {
        self.own().heart.beat.store(now.0, Ordering::Relaxed);
    }

    /// Says that there is work to do. A seat that comes back to the round starts no earlier than those who stayed.
    pub fn want(&self, now: Nanos) {
        let own = self.own();
        self.beat(now);
        let standing = self.standing();
        if !standing.is(self.place.generation) {
            return;
        }
        if !standing.wants() {
            let floor = self.board.layout.round.floor.load(Ordering::Relaxed);
            let saved = own.virtual_time.load(Ordering::Relaxed);
            own.virtual_time.store(saved.max(floor), Ordering::Relaxed);
            own.wanted_since.store(now.0, Ordering::Relaxed);
            standing::set_wants(&own.standing, self.place.generation, true);
        }
        token::wanted();
        if !standing.wants() {
            // The holder may be asleep, for as long as nobody wanted what it has.
            token::wake_holder(self.board.layout, self.place.seat);
        }
    }

    /// Says that there is nothing more to do. A token that we have becomes free; [`leave`](Seat::leave) gives it to the
    /// right one instead, and charges us.
    pub fn unwant(&self) {
        let news = standing::set_wants(&self.own().standing, self.place.generation, false);
        if news == Some(true) {
            token::forgo(self.board.layout, self.place.seat);
        }
    }

    /// Whether we have the token, and since when.
    pub fn holds(&self) -> Option<Nanos> {
        let mine = Token::of(&self.board.layout.round.token).holder() == Some(self.place.seat);
        (mine && self.is_mine()).then(|| Nanos(self.own().held_since.load(Ordering::Relaxed)))
    }

    /// Whether somebody else wants the token.
    pub fn others_want(&self) -> bool {
        let others =
            self.board.layout.used().iter().zip(0u16..).filter(|(_, number)| *number != self.place.seat);
        others.into_iter().any(|(seat, _)| Standing::of(&seat.standing).wants())
    }

    /// Whether there is another best-effort seat, whatever it wants.
    pub fn has_company(&self) -> bool {
        let others =
            self.board.layout.used().iter().zip(0u16..).filter(|(_, number)| *number != self.place.seat);
        let taken = others.into_iter().filter(|(seat, _)| Standing::of(&seat.standing).is_taken());
        taken.into_iter().any(|(seat, _)| seat.terms.read().class == model::Class::BestEffort)
    }

    /// Who would have the token if we passed it now, having had it for `used`. Nothing is charged, and nothing passed.
    pub fn heir(
        &self,
        now: Nanos,
        used: UsedTime,
        choose: &mut dyn FnMut(&[Claim]) -> Option<usize>,
    ) -> Option<Place> {
        let mut claims = claim::collect(&self.board, now);
        claims.update(self.place, self.charged(&claims, now, used), now);
        choose(claims.as_slice()).and_then(|place| claims.as_slice().get(place)).map(|claim| claim.place)
    }

    /// Asks for the token, which we want from now on: takes it when it is free, or when its holder has shown no life for
    /// longer than the grace. Who was told to pause does not ask.
    pub fn try_hold(&self, now: Nanos) -> Turn {
        self.want(now);
        let settings = self.board.settings();
        let token = Token::of(&self.board.layout.round.token);
        let others = Turn::Others { look_again: settings.grace };
        if !self.is_mine() {
            return others;
        }
        let lifeless = match token.holder() {
            Some(seat) if seat == self.place.seat => {
                return Turn::Mine { since: Nanos(self.own().held_since.load(Ordering::Relaxed)) };
            }
            Some(seat) => {
                let holder = self.board.layout.seats.get(usize::from(seat));
                if let Some(holder) =
                    holder.filter(|holder| !token::is_lifeless_holder(holder, now, settings.grace))
                {
                    self.keep_up(settings.quantum, now);
                    return Turn::Others { look_again: patience(holder, now, settings.grace) };
                }
                holder
            }
            None => None,
        };
        let place = self.place;
        if !token::give(self.board.layout, token, place.seat, place.generation, now) {
            return Turn::Others { look_again: SHORTEST_LOOK };
        }
        if let Some(holder) = lifeless {
            holder.tally.lost.add(1);
            self.tally().taken_over.add(1);
        }
        Turn::Mine { since: now }
    }

    /// Passes the token to whom `choose` picks among those who want it and show life, ourselves included if we still want
    /// it, and rings the bell of that seat. Who has it now: perhaps still we, with a new quantum. `None`: it is free, or it
    /// was not ours.
    ///
    /// `used` is the time for which we had it; it is charged here, by our weight and the number of our siblings. Time that
    /// nobody else wanted is not charged.
    pub fn pass(
        &self,
        now: Nanos,
        used: UsedTime,
        choose: &mut dyn FnMut(&[Claim]) -> Option<usize>,
    ) -> Option<Place> {
        self.beat(now);
        let layout = self.board.layout;
        let token = Token::of(&layout.round.token);
        let claims = claim::collect(&self.board, now);
        let claims = self.charge(claims, now, used);
        if token.holder() != Some(self.place.seat) || !self.is_mine() {
            return None;
        }
        self.tally().passes.add(1);
        let chosen = choose(claims.as_slice()).and_then(|place| claims.as_slice().get(place));
        let Some(next) = chosen.map(|claim| claim.place) else {
            token::free(layout, token);
            return None;
        };
        if !token::give(layout, token, next.seat, next.generation, now) {
            return None;
        }
        if next != self.place {
            self.board.seat(next)?.bell.ring();
        }
        Some(next)
    }

    /// Says that there is nothing more to do, and passes the token, if we have it, to whom `choose` picks among the others.
    pub fn leave(
        &self,
        now: Nanos,
        used: UsedTime,
        choose: &mut dyn FnMut(&[Claim]) -> Option<usize>,
    ) -> Option<Place> {
        standing::set_wants(&self.own().standing, self.place.generation, false)?;
        let next = self.pass(now, used, choose);
        // Somebody may have given it to us while we were saying so.
        token::forgo(self.board.layout, self.place.seat);
        next
    }

    /// Says how things are with this tenant.
    pub fn say(&self, condition: Condition) {
        self.own().said.write(&condition);
    }

    /// Counts time for which this seat had work on the GPU, or would have had but for strangers.
    pub fn count_gpu_time(&self, span: Nanos) {
        let presence = self.own().presence.load(Ordering::Relaxed);
        let permille = u64::from(presence.checked_sub(1).unwrap_or(1_000).min(1_000));
        self.tally().pending_ns.add(span.0);
        self.tally().gpu_ns.add(span.0 / 1_000 * permille + span.0 % 1_000 * permille / 1_000);
    }

    pub fn tally(&self) -> &'static Tally {
        &self.own().tally
    }

    /// Moves our virtual time, and the floor for newcomers; the claims as they are then.
    fn charge(&self, mut claims: claim::Claims, now: Nanos, used: UsedTime) -> claim::Claims {
        let (own, after) = (self.own(), self.charged(&claims, now, used));
        own.virtual_time.store(after.0, Ordering::Relaxed);
        // We wait anew from now on: among equals, everybody else is first.
        own.wanted_since.store(now.0, Ordering::Relaxed);
        claims.update(self.place, after, now);
        if let Some(least) = claims.as_slice().iter().map(|claim| claim.virtual_time).min() {
            self.board.layout.round.floor.fetch_max(least.0, Ordering::Relaxed);
        }
        claims
    }

    /// Brings our virtual time back to where turns could have brought it. Anybody may have written there, or where
    /// newcomers start, and we would get no turn until all others have come as far.
    fn keep_up(&self, quantum: Nanos, now: Nanos) {
        // It is advice, on which no order of events depends; in the model checker it would only be more to try.
        if cfg!(all(test, loom)) {
            return;
        }
        let (own, claims) = (self.own(), claim::collect(&self.board, now));
        let tenant = own.tenant.load(Ordering::Relaxed);
        let others = || claims.as_slice().iter().filter(|claim| claim.place.seat != self.place.seat);
        let Some(least) = others().map(|claim| claim.virtual_time).min() else { return };
        let siblings = others().filter(|claim| claim.tenant == tenant).fold(1, |sum, _| sum + 1);
        let lead = quantum.scaled(LONGEST_LEAD, 1).max(LEAST_LEAD).scaled(siblings, 1);
        let most = least + lead;
        if own.virtual_time.load(Ordering::Relaxed) > most.0 {
            own.virtual_time.store(most.0, Ordering::Relaxed);
        }
    }

    /// Our virtual time once `used` is charged.
    fn charged(&self, claims: &claim::Claims, now: Nanos, used: UsedTime) -> Nanos {
        let own = self.own();
        let tenant = own.tenant.load(Ordering::Relaxed);
        let others = claims.as_slice().iter().filter(|claim| claim.place.seat != self.place.seat);
        let (mut siblings, mut contested) = (1u32, Nanos::ZERO);
        for other in others {
            siblings += u32::from(other.tenant == tenant);
            contested = contested.max(now.since(other.wanted_since));
        }
        let charged = used.span.min(contested).scaled(siblings, used.weight.max(1));
        Nanos(own.virtual_time.load(Ordering::Relaxed)) + charged
    }

    pub(crate) fn own(&self) -> &'static layout::Seat {
        self.board.seat(self.place).expect("a seat is made only for a place that exists")
    }

    fn standing(&self) -> Standing {
        Standing::of(&self.own().standing)
    }
}

/// When a holder that shows no more life from now on would lose the token.
fn patience(holder: &layout::Seat, now: Nanos, grace: Nanos) -> Nanos {
    let beat = Nanos(holder.heart.beat.load(Ordering::Relaxed));
    let given = Nanos(holder.held_since.load(Ordering::Relaxed));
    (beat.max(given) + grace).since(now).clamp(SHORTEST_LOOK, grace + SHORTEST_LOOK)
}
