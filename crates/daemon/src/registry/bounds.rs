//! How much of boards and seats one user may have, so that others find theirs.
//!
//! The board of a GPU that somebody has shown to be one is bounded by the machine, and by its users where each has boards of its
//! own. A board of one user who has shown nothing is made for a name that it says, so of those it has few. And on a board of all
//! users the last seats are for those who have hardly any.

use board::SEATS;
use board::link::Reason;

use super::{BoardKey, Registry};
use crate::access::SeatedWith;

/// Boards of GPUs that were shown, of all users together or of each: more than any machine has GPUs.
const SHOWN_BOARDS_FOR_USER: usize = 64;
/// And in all, where each user has its own.
const SHOWN_BOARDS: usize = 1_024;
/// Boards of GPUs that nobody has shown, in all and of each user. A process uses 16 GPUs at most.
const UNSHOWN_BOARDS: usize = 128;
pub(super) const UNSHOWN_BOARDS_PER_USER: usize = 16;

/// Seats of one user at a board that is everybody's.
const SEATS_PER_USER: usize = SEATS / 2;
/// The last seats, for users who have fewer than a few.
const LAST_SEATS: usize = SEATS / 4;
const A_FEW: usize = 4;

impl Registry {
    /// Whether there may be one more board.
    pub(super) fn may_have_board(&self, key: BoardKey, with: SeatedWith) -> Result<(), Reason> {
        let alike = || self.tables.iter().filter(|(_, table)| table.with == with);
        let users = alike().filter(|(other, _)| other.user == key.user).count();
        let (of_user, of_all) = match with {
            SeatedWith::Everybody => (SHOWN_BOARDS_FOR_USER, SHOWN_BOARDS),
            SeatedWith::OwnUser => (UNSHOWN_BOARDS_PER_USER, UNSHOWN_BOARDS),
        };
        let room = users < of_user && alike().count() < of_all;
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

#[cfg(test)]
mod tests {
    use board::Gpu;

    use super::super::tests::{GPU, peer, process, registration, registry};
    use super::super::{EMPTY_FOR, End};
    use super::*;
    use board::link::Registration;

    #[test]
    fn seats_are_bounded_and_come_back() {
        let mut registry = registry(&[]);
        let mut tickets = Vec::new();
        for pid in 1.. {
            match registry.register(&peer(1000, pid), &registration(1, "many"), SeatedWith::Everybody) {
                Ok((ticket, _)) => tickets.push(ticket),
                Err(reason) => {
                    assert_eq!(reason, Reason::Full);
                    break;
                }
            }
        }
        assert_eq!(tickets.len(), board::SEATS);
        registry.leave(tickets[3], End::Gone, board::now());
        registry.register(&peer(1000, 4000), &registration(1, "many"), SeatedWith::Everybody).unwrap();
        assert_eq!(process(&registry, 4000).seat, 3);
    }

    #[test]
    fn boards_are_bounded_and_go_when_nobody_sits_there() {
        let mut registry = registry(&[]);
        let begin = board::now();
        let at = |gpu: u8| Registration { gpu: Gpu([gpu; 16]), ..registration(1, "greedy") };
        let tickets: Vec<_> = (0..64)
            .map(|gpu| registry.register(&peer(5, 50), &at(gpu), SeatedWith::Everybody).unwrap().0)
            .collect();
        assert_eq!(
            registry.register(&peer(5, 50), &at(64), SeatedWith::Everybody).unwrap_err(),
            Reason::TooMany
        );
        tickets[1..].iter().for_each(|ticket| registry.leave(*ticket, End::Gone, begin));
        registry.clear_tables(begin);
        assert_eq!(registry.tables.len(), 64, "who comes back soon finds its board");
        assert_eq!(registry.next_clearance(), Some(begin + EMPTY_FOR));
        registry.clear_tables(begin + EMPTY_FOR);
        assert_eq!(registry.tables.len(), 1);
        assert_eq!(registry.next_clearance(), None);
    }

    #[test]
    fn one_user_leaves_seats_and_boards_to_others() {
        let mut registry = registry(&[]);
        let mut take = |user: u32, with: SeatedWith, gpu: Gpu| {
            let claim = Registration { gpu, ..registration(u64::from(user), "greedy") };
            (1..).map_while(|pid| registry.register(&peer(user, pid), &claim, with).ok()).count()
        };
        assert_eq!(take(5, SeatedWith::Everybody, GPU), board::SEATS / 2);
        assert_eq!(
            take(6, SeatedWith::Everybody, GPU),
            board::SEATS / 4,
            "the rest is for those who have hardly any"
        );
        let others: usize = (7..20).map(|user| take(user, SeatedWith::Everybody, GPU)).sum();
        assert_eq!(others, board::SEATS / 4);
        // A name that somebody has made up is a board for itself, and of those it has few.
        let invented = |number: u8| Gpu([number; 16]);
        let mut boards =
            |user: u32| (100..200).filter(|gpu| take(user, SeatedWith::OwnUser, invented(*gpu)) > 0).count();
        assert_eq!(boards(5), 16);
        assert_eq!(boards(6), 16, "however many others have");
        assert_eq!(take(0, SeatedWith::Everybody, invented(99)), board::SEATS, "root's are not counted");
    }

    /// Where each user has boards of its own, those of a machine's GPUs are as many as its users have, and no invention.
    #[test]
    fn boards_that_are_apart_because_that_is_configured_are_not_counted_as_invented() {
        let mut registry = registry(&[]);
        registry.configuration.board_per_user = true;
        let mut seat = |user: u32, gpu: u8, with| {
            let claim = Registration { gpu: Gpu([gpu; 16]), ..registration(u64::from(user), "train") };
            registry.register(&peer(user, 50), &claim, with).map(drop)
        };
        for user in 5..25 {
            for gpu in 0..8 {
                assert_eq!(seat(user, gpu, SeatedWith::Everybody), Ok(()), "user {user} at GPU {gpu}");
            }
        }
        // Beside them each may still make up as many names as elsewhere, and no more.
        let invented = (100..200).filter(|gpu| seat(5, *gpu, SeatedWith::OwnUser).is_ok()).count();
        assert_eq!(invented, UNSHOWN_BOARDS_PER_USER);
        assert_eq!(seat(5, 8, SeatedWith::Everybody), Ok(()), "and those take nothing from real ones");
    }

    #[test]
    fn a_gpu_that_is_shown_later_is_no_invention_any_more() {
        let mut registry = registry(&[]);
        registry.configuration.board_per_user = true;
        let mut seat = |gpu: u8, with| {
            let claim = Registration { gpu: Gpu([gpu; 16]), ..registration(1, "train") };
            registry.register(&peer(5, 50), &claim, with).map(drop)
        };
        let all = u8::try_from(UNSHOWN_BOARDS_PER_USER).unwrap();
        (0..all).for_each(|gpu| seat(gpu, SeatedWith::OwnUser).unwrap());
        assert_eq!(seat(100, SeatedWith::OwnUser), Err(Reason::TooMany));
        seat(0, SeatedWith::Everybody).unwrap();
        assert_eq!(seat(100, SeatedWith::OwnUser), Ok(()));
    }

    #[test]
    fn who_is_refused_for_having_too_much_is_told_of_seats_and_boards() {
        let mut registry = registry(&[]);
        let at = |gpu: u8| Registration { gpu: Gpu([gpu; 16]), ..registration(1, "greedy") };
        let mut refused =
            (0..100).filter_map(|gpu| registry.register(&peer(5, 50), &at(gpu), SeatedWith::OwnUser).err());
        let told = refused.next().unwrap().to_string();
        assert_eq!(told, "this user has too many connections, seats or boards");
    }
}
