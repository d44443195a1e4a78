//! Where what lies in the segment, by name.
//!
//! For tests of what somebody does to the others who writes there whatever it likes. Nobody else looks at a board this way.

use std::mem::offset_of;
use std::ops::Range;

use crate::layout::{BYTES, Header, Heart, Layout, Round, SEATS, Seat};

/// Words of a board that mean something together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Landmark {
    /// What the board says of itself: magic, version, seats, GPU.
    Header,
    /// How long turns are, and for how long one who shows no life is waited for.
    Settings,
    Domain,
    Dials,
    Token,
    /// The floor, how many seats are used, the sum of busy times.
    Round,
    /// Who is stopped, and who listens.
    Sets,
    /// Who sits there, and whether it wants the token.
    Standing,
    /// Virtual time, since when it wants the token, since when it has it.
    Claim,
    Terms,
    Tenant,
    Heartbeat,
    /// Since when a latency tenant has had work, and for how long it had some.
    Activity,
    Memory,
    Bell,
    Pid,
    Condition,
    Names,
    StopWord,
    Raises,
    Outlook,
    Experience,
    Need,
    Tally,
}

impl Landmark {
    pub const ALL: [Landmark; 24] = [
        Landmark::Header,
        Landmark::Settings,
        Landmark::Domain,
        Landmark::Dials,
        Landmark::Token,
        Landmark::Round,
        Landmark::Sets,
        Landmark::Standing,
        Landmark::Claim,
        Landmark::Terms,
        Landmark::Tenant,
        Landmark::Heartbeat,
        Landmark::Activity,
        Landmark::Memory,
        Landmark::Bell,
        Landmark::Pid,
        Landmark::Condition,
        Landmark::Names,
        Landmark::StopWord,
        Landmark::Raises,
        Landmark::Outlook,
        Landmark::Experience,
        Landmark::Need,
        Landmark::Tally,
    ];

    /// Its bytes on the board, of this seat where every seat has such words.
    pub fn place(self, seat: u16) -> Range<usize> {
        let header = offset_of!(Layout, header);
        let round = offset_of!(Layout, round);
        let seat = offset_of!(Layout, seats) + usize::from(seat).min(SEATS - 1) * size_of::<Seat>();
        let heart = seat + offset_of!(Seat, heart);
        let between = |base: usize, from: usize, to: usize| base + from..base + to;
        match self {
            Landmark::Header => between(header, 0, offset_of!(Header, quantum)),
            Landmark::Settings => between(header, offset_of!(Header, quantum), offset_of!(Header, domain)),
            Landmark::Domain => between(header, offset_of!(Header, domain), offset_of!(Header, dials)),
            Landmark::Dials => between(header, offset_of!(Header, dials), size_of::<Header>()),
            Landmark::Token => between(round, offset_of!(Round, token), offset_of!(Round, floor)),
            Landmark::Round => between(round, offset_of!(Round, floor), offset_of!(Round, stopped)),
            Landmark::Sets => between(round, offset_of!(Round, stopped), size_of::<Round>()),
            Landmark::Standing => between(seat, offset_of!(Seat, standing), offset_of!(Seat, virtual_time)),
            Landmark::Claim => between(seat, offset_of!(Seat, virtual_time), offset_of!(Seat, terms)),
            Landmark::Terms => between(seat, offset_of!(Seat, terms), offset_of!(Seat, tenant)),
            Landmark::Tenant => between(seat, offset_of!(Seat, tenant), offset_of!(Seat, heart)),
            Landmark::Heartbeat => between(heart, offset_of!(Heart, beat), offset_of!(Heart, active_since)),
            Landmark::Activity => between(heart, offset_of!(Heart, active_since), offset_of!(Heart, memory)),
            Landmark::Memory => between(heart, offset_of!(Heart, memory), size_of::<Heart>()),
            Landmark::Bell => between(seat, offset_of!(Seat, bell), offset_of!(Seat, pid)),
            Landmark::Pid => between(seat, offset_of!(Seat, pid), offset_of!(Seat, said)),
            Landmark::Condition => between(seat, offset_of!(Seat, said), offset_of!(Seat, name)),
            Landmark::Names => between(seat, offset_of!(Seat, name), offset_of!(Seat, stop_word)),
            Landmark::StopWord => between(seat, offset_of!(Seat, stop_word), offset_of!(Seat, raises)),
            Landmark::Raises => between(seat, offset_of!(Seat, raises), offset_of!(Seat, outlook)),
            Landmark::Outlook => between(seat, offset_of!(Seat, outlook), offset_of!(Seat, experience)),
            Landmark::Experience => between(seat, offset_of!(Seat, experience), offset_of!(Seat, need)),
            Landmark::Need => between(seat, offset_of!(Seat, need), offset_of!(Seat, tally)),
            Landmark::Tally => between(seat, offset_of!(Seat, tally), size_of::<Seat>()),
        }
    }

    /// What lies at a byte of the board.
    pub fn at(byte: usize) -> Option<Landmark> {
        let seats = offset_of!(Layout, seats);
        let seat = byte.checked_sub(seats).map_or(0, |rest| rest / size_of::<Seat>());
        let seat = u16::try_from(seat).ok().filter(|seat| usize::from(*seat) < SEATS)?;
        Landmark::ALL.into_iter().find(|landmark| landmark.place(seat).contains(&byte))
    }
}

/// How large a board is.
pub const BOARD_BYTES: usize = BYTES;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_part_of_one_landmark() {
        for seat in [0, 1, SEATS as u16 - 1] {
            let mut places: Vec<Range<usize>> =
                Landmark::ALL.iter().map(|landmark| landmark.place(seat)).collect();
            places.sort_by_key(|place| place.start);
            assert!(places.iter().all(|place| !place.is_empty()), "{places:?}");
            assert!(places.windows(2).all(|pair| pair[0].end <= pair[1].start), "{places:?}");
        }
        assert!((0..BOARD_BYTES).step_by(8).all(|byte| Landmark::at(byte).is_some()));
        assert_eq!(Landmark::at(BOARD_BYTES), None);
    }
}
