//! How much of boards and seats one user may have, so that others find theirs.
//!
//! The board of a GPU that somebody has shown to be one is bounded by the machine. A board of one user's own is made for a name
//! that user says, so of those it has few. And on a board of all users the last seats are for those who have hardly any.

use board::SEATS;
use board::link::Reason;

use super::{BoardKey, Registry};

/// Boards of GPUs that are shared by all users: more than any machine has GPUs.
const SHARED_BOARDS: usize = 64;
/// Boards of single users, in all and of each. A process uses 16 GPUs at most.
const OWN_BOARDS: usize = 128;
const OWN_BOARDS_PER_USER: usize = 16;

/// Seats of one user at a board that is everybody's.
const SEATS_PER_USER: usize = SEATS / 2;
/// The last seats, for users who have fewer than a few.
const LAST_SEATS: usize = SEATS / 4;
const A_FEW: usize = 4;

impl Registry {
    /// Whether there may be one more board.
    pub(super) fn may_have_board(&self, key: BoardKey) -> Result<(), Reason> {
        let same = self.tables.keys().filter(|other| other.user == key.user).count();
        let shared = self.tables.keys().filter(|other| other.user.is_none()).count();
        let room = match key.user {
            None => shared < SHARED_BOARDS,
            Some(_) => same < OWN_BOARDS_PER_USER && self.tables.len() - shared < OWN_BOARDS,
        };
        room.then_some(()).ok_or(Reason::TooMany)
    }

    /// Whether a user may have one more seat at a board.
    pub(super) fn may_sit(&self, key: BoardKey, user: u32) -> Result<(), Reason> {
        // Root and the daemon's own user, and a user that is there alone, take from nobody.
        if user == 0 || user == self.configuration.ceilings.daemon || key.user.is_some() {
            return Ok(());
        }
        let there = self.sittings.values().filter(|sitting| sitting.board == key);
        let (mut all, mut own) = (0, 0);
        for sitting in there {
            all += 1;
            own += usize::from(sitting.user == user);
        }
        let room = own < A_FEW || own < SEATS_PER_USER && all < SEATS - LAST_SEATS;
        room.then_some(()).ok_or(Reason::TooMany)
    }
}
