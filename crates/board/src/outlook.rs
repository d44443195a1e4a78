//! What a latency tenant expects, and what it can bear: from this best-effort tenants see what they may start.
//!
//! It is said after each launch and read before each decision, so it is a few plain stores and loads, and a reader may find
//! one field from before and another from after. That does no harm, because each field by itself is advice about the future,
//! which may turn out wrong in any case, and nothing that must hold depends on any of them: *whether* the tenant has work is
//! said elsewhere, in one word (`activity`), and from that moment on best-effort work leaves, whatever was expected.

use std::sync::atomic::{AtomicU64, Ordering};

use model::{Class, Forecast, Nanos};

use crate::activity;
use crate::board::Board;
use crate::seat::Seat;
use crate::standing::Standing;
use crate::sync::fence;

/// What a latency tenant says about what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// When it launches something next.
    pub next: Forecast,
    /// When what it has launched will have run, at the latest in nine of ten cases.
    pub busy_until: Nanos,
    /// By how much its request, or its next one when there is none, may be delayed.
    pub slack: Nanos,
    /// For how long after a request its next one is worth waiting for; nought: not known.
    pub lull: Nanos,
    /// How long it has work at a stretch, with no more than such pauses, on average; nought: not known.
    pub spell: Nanos,
    /// When the request in progress must be answered.
    pub deadline: Option<Nanos>,
    /// Its request, or the next one, is to be seen as it is alone, and is worth waiting for so long; zero: it is not. Told in
    /// microseconds, up to an hour.
    pub solo_wait: Nanos,
    /// Whether its requests are handed over as a whole, so that there are no gaps in them.
    pub whole: bool,
    /// Whether its requests wait in line, so that what delays one delays those behind it as well.
    pub in_line: bool,
}

/// A latency tenant that is here and alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencySeat {
    pub seat: u16,
    pub priority: u32,
    /// Since when it has had work, if it has.
    pub active_since: Option<Nanos>,
    /// When it last had work, if it has none now; `None`: it never had.
    pub last_active: Option<Nanos>,
    pub outlook: Outlook,
    /// What half of its requests take at most, alone if that is known; nought: not known.
    pub usual: Nanos,
}

impl Default for Outlook {
    /// Of one who has said nothing: its next launch may come at any moment, and it can bear no delay.
    fn default() -> Outlook {
        let (next, nought) = (Forecast::ANY_MOMENT, Nanos::ZERO);
        Outlook {
            next,
            busy_until: nought,
            slack: nought,
            lull: nought,
            spell: nought,
            deadline: None,
            solo_wait: Nanos::ZERO,
            whole: false,
            in_line: false,
        }
    }
}

/// An outlook in the segment, on a cache line of its own: it is written all the time, and read by all.
#[repr(C, align(64))]
pub(crate) struct Foreseen {
    early: AtomicU64,
    likely: AtomicU64,
    busy_until: AtomicU64,
    slack: AtomicU64,
    lull: AtomicU64,
    spell: AtomicU64,
    /// Nought: none.
    deadline: AtomicU64,
    flags: AtomicU64,
}

const WHOLE: u64 = 2;
const IN_LINE: u64 = 4;
/// The upper half of the flags: for how many microseconds a request that is to be seen alone is waited for.
const SOLO_WAIT: u32 = 32;

impl Foreseen {
    #[inline]
    pub(crate) fn write(&self, outlook: &Outlook) {
        let flags = [(outlook.whole, WHOLE), (outlook.in_line, IN_LINE)];
        let flags: u64 = flags.into_iter().map(|(is_so, flag)| u64::from(is_so) * flag).sum();
        let flags = flags | (outlook.solo_wait.0.div_ceil(1_000).min(u32::MAX.into()) << SOLO_WAIT);
        let words = [
            (&self.early, outlook.next.early.0),
            (&self.likely, outlook.next.likely.0),
            (&self.busy_until, outlook.busy_until.0),
            (&self.slack, outlook.slack.0),
            (&self.lull, outlook.lull.0),
            (&self.spell, outlook.spell.0),
            (&self.deadline, outlook.deadline.map_or(0, |deadline| deadline.0.max(1))),
            (&self.flags, flags),
        ];
        words.into_iter().for_each(|(place, word)| place.store(word, Ordering::Relaxed));
    }

    #[inline]
    pub(crate) fn read(&self) -> Outlook {
        let of = |word: &AtomicU64| Nanos(word.load(Ordering::Relaxed));
        let (deadline, flags) = (of(&self.deadline), self.flags.load(Ordering::Relaxed));
        Outlook {
            next: Forecast { early: of(&self.early), likely: of(&self.likely) },
            busy_until: of(&self.busy_until),
            slack: of(&self.slack),
            lull: of(&self.lull),
            spell: of(&self.spell),
            deadline: (deadline != Nanos::ZERO).then_some(deadline),
            solo_wait: Nanos::from_micros(flags >> SOLO_WAIT),
            whole: flags & WHOLE != 0,
            in_line: flags & IN_LINE != 0,
        }
    }
}

impl Seat {
    /// Of a latency tenant: what it expects from now on.
    #[inline]
    pub fn say_outlook(&self, outlook: Outlook) {
        self.own().outlook.write(&outlook);
    }
}

impl Board {
    /// The latency tenants that are here and alive.
    pub fn latency_tenants(&self, now: Nanos) -> impl Iterator<Item = LatencySeat> + use<> {
        // SYNC(latency-active), SYNC(stopped-idle): what we did before is done before we look.
        fence(Ordering::SeqCst);
        let layout = self.layout;
        layout.used().iter().zip(0u16..).filter_map(move |(seat, number)| {
            let terms = seat.terms.read();
            let here = terms.class == Class::Latency && Standing::of(&seat.standing).is_taken();
            if !here || activity::is_gone(seat, now) {
                return None;
            }
            let active_since = activity::active_since(seat);
            // What lies in the future has not happened.
            let last_active = Nanos(seat.heart.last_active.load(Ordering::Relaxed)).min(now);
            let idle = active_since.is_none() && last_active != Nanos::ZERO;
            Some(LatencySeat {
                seat: number,
                priority: terms.priority,
                active_since,
                last_active: idle.then_some(last_active),
                outlook: seat.outlook.read(),
                usual: seat.experience.read().usual(),
            })
        })
    }
}
