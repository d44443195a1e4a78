//! The bytes of a board.
//!
//! A header, and seats. Everything is an atomic, because the mapping is shared with processes that may write anything at
//! any time; everything has a place that the version stands for, and a board of another version is not touched. What one
//! side writes often lies on other cache lines than what others read often.

use std::sync::atomic::{AtomicU32 as PlainU32, AtomicU64 as PlainU64};

use crate::bell::Bell;
use crate::condition::Said;
use crate::dials::Dialled;
use crate::experience::Experienced;
use crate::memory::Taken;
use crate::need::Needed;
use crate::outlook::Foreseen;
use crate::seat_set::SeatSet;
use crate::stop_word::Published;
use crate::strangers::StrangersWord;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::tally::Tally;
use crate::terms::Written;
use crate::text::Text;

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"ebbboard");

/// The layout's version. Any change to a place or to a meaning changes it.
pub const VERSION: u32 = 10;

/// How many processes one GPU has room for.
#[cfg(not(all(test, loom)))]
pub const SEATS: usize = 128;
/// The checker tries all orders of everything that everybody looks at.
#[cfg(all(test, loom))]
pub const SEATS: usize = 3;

pub const NAME_BYTES: usize = 64;
pub const PROGRAM_BYTES: usize = 128;

#[repr(C)]
pub(crate) struct Layout {
    pub header: Header,
    pub round: Round,
    pub seats: [Seat; SEATS],
}

/// What is said once, and read on arrival.
#[repr(C, align(64))]
pub(crate) struct Header {
    /// Written last, by `SYNC(board-open)`.
    pub magic: PlainU64,
    pub version: PlainU32,
    pub seats: PlainU32,
    pub gpu: [PlainU64; 2],
    pub quantum: PlainU64,
    pub idle: PlainU64,
    pub grace: PlainU64,
    /// See `settings`.
    pub domain: PlainU32,
    pub tolerance: PlainU32,
    pub dials: Dialled,
    /// Until when it is believed that somebody has work on the GPU who does not sit here.
    pub stranger_until: PlainU64,
    /// In milliseconds; zero: never.
    pub starve_after: PlainU32,
    pub strangers: StrangersWord,
}

/// What the seats agree about.
#[repr(C, align(64))]
pub(crate) struct Round {
    /// See `token`.
    pub token: AtomicU64,
    /// The least virtual time of those who wanted the token when it was last passed: where newcomers start.
    pub floor: PlainU64,
    /// All seats that were ever taken are below this one, so that nobody looks at 128 seats where there are two.
    pub below: PlainU32,
    /// The highest sum of busy times anybody has seen, so that the sum never goes back.
    pub busy: PlainU64,
    /// Best-effort seats that are stopped for as long as a latency tenant has work.
    pub stopped: SeatSet,
    /// Best-effort seats that want to hear when a latency tenant begins to have work.
    pub listening: SeatSet,
}

#[repr(C, align(64))]
pub(crate) struct Seat {
    /// See `standing`.
    pub standing: AtomicU64,
    pub virtual_time: AtomicU64,
    pub wanted_since: PlainU64,
    /// Since when it has the token, if it has it.
    pub held_since: AtomicU64,
    pub terms: Written,
    pub tenant: AtomicU64,

    pub heart: Heart,
    pub bell: Bell,

    pub pid: AtomicU32,
    /// Which part of the time in which it has work it is really on the GPU, in permille and one more; zero: not known.
    pub presence: PlainU32,
    pub said: Said,
    pub name: Text<NAME_BYTES>,
    pub program: Text<PROGRAM_BYTES>,

    /// Of a best-effort tenant: the word by which others stop it.
    pub stop_word: Published,
    /// Of a latency tenant: whose stop words it raises.
    pub raises: SeatSet,

    /// Of a latency tenant: what it expects.
    pub outlook: Foreseen,
    /// Of a latency tenant: how long its requests take.
    pub experience: Experienced,
    /// Of a best-effort tenant: what it wants to run.
    pub need: Needed,

    pub tally: Tally,
}

/// What the occupant writes all the time.
#[repr(C, align(64))]
pub(crate) struct Heart {
    /// When it last showed life.
    pub beat: PlainU64,
    /// Of a latency tenant: since when it has had work; nought when it has none.
    pub active_since: AtomicU64,
    /// Time for which the seat was active, over all its occupants.
    pub busy: PlainU64,
    /// When it last ceased to be active, whoever the occupant was.
    pub last_active: PlainU64,
    /// See `memory`.
    pub memory: Taken,
}

pub(crate) const BYTES: usize = size_of::<Layout>();

#[cfg(not(all(test, loom)))]
mod places {
    use std::mem::offset_of;

    use super::*;

    // These are the version: a change here needs another number there.
    const _: () = {
        assert!(size_of::<Header>() == 128);
        assert!(size_of::<Round>() == 64);
        assert!(offset_of!(Round, stopped) == 32);
        assert!(offset_of!(Round, listening) == 48);
        assert!(offset_of!(Header, gpu) == 16);
        assert!(offset_of!(Header, quantum) == 32);
        assert!(offset_of!(Header, domain) == 56);
        assert!(offset_of!(Header, dials) == 64);
        assert!(size_of::<Dialled>() == 48);
        assert!(offset_of!(Header, stranger_until) == 112);
        assert!(offset_of!(Header, starve_after) == 120);
        assert!(offset_of!(Header, strangers) == 124);
        assert!(offset_of!(Layout, round) == 128);
        assert!(offset_of!(Layout, seats) == 192);
        assert!(offset_of!(Seat, virtual_time) == 8);
        assert!(offset_of!(Seat, terms) == 32);
        assert!(offset_of!(Seat, tenant) == 56);
        assert!(offset_of!(Seat, heart) == 64);
        assert!(offset_of!(Heart, memory) == 32);
        assert!(offset_of!(Seat, bell) == 128);
        assert!(offset_of!(Seat, pid) == 192);
        assert!(offset_of!(Seat, presence) == 196);
        assert!(offset_of!(Seat, said) == 200);
        assert!(offset_of!(Seat, name) == 216);
        assert!(offset_of!(Seat, program) == 284);
        assert!(offset_of!(Seat, stop_word) == 416);
        assert!(offset_of!(Seat, raises) == 496);
        assert!(offset_of!(Seat, outlook) == 512);
        assert!(offset_of!(Seat, experience) == 576);
        assert!(offset_of!(Seat, need) == 640);
        assert!(offset_of!(Seat, tally) == 704);
        assert!(align_of::<Layout>() == 64);
    };
}

impl Layout {
    /// The seats that may be taken.
    pub(crate) fn used(&self) -> &[Seat] {
        let below = self.round.below.load(Ordering::Relaxed);
        &self.seats[..usize::try_from(below).unwrap_or(SEATS).min(SEATS)]
    }
}
