//! What a best-effort tenant needs, how fast it can be stopped, and what was last decided about it.
//!
//! The counterpart of `outlook`, and advice like it: each field by itself is a value. In the isolated domain *whose turn it is*
//! is the token's business and not told here.

use std::sync::atomic::{AtomicU64, Ordering};

use model::{Class, Nanos};

use crate::activity;
use crate::board::Board;
use crate::layout;
use crate::seat::Seat;
use crate::standing::Standing;

/// What a best-effort tenant says about its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// It has something to run.
    pub wants: bool,
    /// It has work on the GPU.
    pub runs: bool,
    /// How long it takes to get it off the GPU, whatever it is doing.
    pub certificate: Nanos,
    /// How long its next piece takes, if it can only be held: it runs to its end once it was started. `None`: it can be stopped.
    pub piece: Option<Nanos>,
}

/// What was decided about a best-effort tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The place of the reason among all reasons. What they are, the policy knows.
    pub why: u8,
    /// What leaves the GPU as fast as this may be started.
    pub longest: Nanos,
}

/// A best-effort tenant that is here and alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestEffortSeat {
    pub seat: u16,
    pub priority: u32,
    pub weight: u32,
    /// Seats of the same tenant that want to run, this one included; at least one.
    pub siblings: u32,
    /// It has something to run, and was not told to pause.
    pub wants: bool,
    pub runs: bool,
    pub virtual_time: Nanos,
    /// Since when it has wanted to run and did not.
    pub wanted_since: Nanos,
    pub certificate: Nanos,
    pub piece: Option<Nanos>,
}

/// A need and a decision in the segment. The occupant writes both.
#[repr(C, align(64))]
pub(crate) struct Needed {
    flags: AtomicU64,
    /// Since when it wants and does not run; nought: it does not.
    waits_since: AtomicU64,
    certificate: AtomicU64,
    /// Nought: none.
    piece: AtomicU64,
    /// One more than the reason; nought: nothing was decided yet.
    why: AtomicU64,
    longest: AtomicU64,
    /// When a seat here was last known to have work on the GPU and has none now, over all its occupants.
    ran: AtomicU64,
}

const WANTS: u64 = 1;
const RUNS: u64 = 2;

impl Needed {
    pub(crate) fn write(&self, need: &Need) {
        let flags = if need.wants { WANTS } else { 0 } | if need.runs { RUNS } else { 0 };
        self.certificate.store(need.certificate.0, Ordering::Relaxed);
        self.piece.store(need.piece.map_or(0, |piece| piece.0.max(1)), Ordering::Relaxed);
        self.flags.store(flags, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Need {
        let of = |word: &AtomicU64| Nanos(word.load(Ordering::Relaxed));
        let (flags, piece) = (self.flags.load(Ordering::Relaxed), of(&self.piece));
        Need {
            wants: flags & WANTS != 0,
            runs: flags & RUNS != 0,
            certificate: of(&self.certificate),
            piece: (piece != Nanos::ZERO).then_some(piece),
        }
    }

    pub(crate) fn decided(&self) -> Option<Decided> {
        let why = self.why.load(Ordering::Relaxed).checked_sub(1)?;
        let longest = Nanos(self.longest.load(Ordering::Relaxed));
        u8::try_from(why).ok().map(|why| Decided { why, longest })
    }

    /// The occupant is gone, and with it what it had on the GPU.
    pub(crate) fn leave(&self, now: Nanos) {
        if self.flags.load(Ordering::Relaxed) & RUNS != 0 {
            self.ran.store(now.0, Ordering::Relaxed);
        }
    }

    /// For a new occupant.
    pub(crate) fn clear(&self) {
        self.write(&Need::default());
        let words = [&self.waits_since, &self.why, &self.longest];
        words.into_iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

/// Of a best-effort tenant.
impl Seat {
    /// How things are with our work from now on. Who begins to want where turns are counted by virtual time starts no earlier
    /// than those who stayed, as with the token.
    pub fn say_need(&self, need: Need, now: Nanos) {
        let (own, before) = (self.own(), self.own().need.read());
        if need.wants && !before.wants {
            let floor = self.board().layout.round.floor.load(Ordering::Relaxed);
            own.virtual_time.fetch_max(floor, Ordering::Relaxed);
        }
        let waits = need.wants && !need.runs;
        let waited = before.wants && !before.runs;
        if waits != waited {
            let since = if waits { now.0.max(1) } else { 0 };
            own.need.waits_since.store(since, Ordering::Relaxed);
        }
        if before.runs && !need.runs {
            own.need.ran.store(now.0, Ordering::Relaxed);
        }
        own.need.write(&need);
    }

    /// There was work of ours on the GPU until now, though we say already that there is none.
    pub fn say_ran(&self, now: Nanos) {
        self.own().need.ran.store(now.0, Ordering::Relaxed);
    }

    /// There is work on the GPU from now on, whatever was said before.
    pub fn say_running(&self) {
        self.own().need.flags.fetch_or(WANTS | RUNS, Ordering::Relaxed);
    }

    /// Moves our virtual time: where nobody passes a token, whoever runs says itself what that comes to.
    pub fn advance(&self, by: Nanos) {
        let (own, layout) = (self.own(), self.board().layout);
        let after = Nanos(own.virtual_time.load(Ordering::Relaxed)) + by;
        own.virtual_time.store(after.0, Ordering::Relaxed);
        let wanting = layout.used().iter().filter(|seat| wants(seat));
        let times = wanting.map(|seat| seat.virtual_time.load(Ordering::Relaxed));
        if let Some(least) = times.min() {
            layout.round.floor.fetch_max(least, Ordering::Relaxed);
        }
    }

    /// Ourselves as others would see us, whatever the board says of our class.
    pub fn as_best_effort(&self, now: Nanos) -> BestEffortSeat {
        view_of(self.board().layout, self.own(), self.place().seat, now)
    }

    /// What was decided about us, for whoever asks why we do not run.
    pub fn say_decision(&self, why: u8, longest: Nanos) {
        let need = &self.own().need;
        need.longest.store(longest.0, Ordering::Relaxed);
        need.why.store(u64::from(why) + 1, Ordering::Relaxed);
    }
}

impl Board {
    /// When best-effort work was last on the GPU, as far as its owners say: now, if it is. `None`: it never was.
    pub fn best_effort_last_ran(&self, now: Nanos) -> Option<Nanos> {
        let moment = |seat: &layout::Seat| {
            let runs = is_best_effort(seat) && seat.need.read().runs && !activity::is_gone(seat, now);
            // What lies in the future has not happened.
            if runs { now } else { Nanos(seat.need.ran.load(Ordering::Relaxed)).min(now) }
        };
        self.layout.used().iter().map(moment).max().filter(|moment| *moment != Nanos::ZERO)
    }

    /// The best-effort tenants that are here and alive.
    pub fn best_effort_tenants(&self, now: Nanos) -> impl Iterator<Item = BestEffortSeat> + use<> {
        let layout = self.layout;
        layout.used().iter().zip(0u16..).filter_map(move |(seat, number)| {
            let here = is_best_effort(seat) && !activity::is_gone(seat, now);
            here.then(|| view_of(layout, seat, number, now))
        })
    }
}

fn view_of(layout: &layout::Layout, seat: &layout::Seat, number: u16, now: Nanos) -> BestEffortSeat {
    let (terms, need) = (seat.terms.read(), seat.need.read());
    let waits_since = seat.need.waits_since.load(Ordering::Relaxed);
    let asked_since = seat.wanted_since.load(Ordering::Relaxed);
    let tenant = seat.tenant.load(Ordering::Relaxed);
    let same = |other: &&layout::Seat| other.tenant.load(Ordering::Relaxed) == tenant && wants(other);
    let siblings = layout.used().iter().filter(same).count();
    BestEffortSeat {
        seat: number,
        priority: terms.priority,
        weight: terms.weight,
        siblings: u32::try_from(siblings).unwrap_or(u32::MAX).max(1),
        wants: wants(seat),
        runs: need.runs,
        virtual_time: Nanos(seat.virtual_time.load(Ordering::Relaxed)),
        wanted_since: Nanos(if waits_since != 0 { waits_since } else { asked_since }).min(now),
        certificate: need.certificate,
        piece: need.piece,
    }
}

fn is_best_effort(seat: &layout::Seat) -> bool {
    Standing::of(&seat.standing).is_taken() && seat.terms.read().class == Class::BestEffort
}

/// Whether a best-effort seat has something to run and may: it says so, or it wants the token.
fn wants(seat: &layout::Seat) -> bool {
    let says = seat.need.read().wants || Standing::of(&seat.standing).wants();
    says && is_best_effort(seat) && !seat.terms.read().paused
}
