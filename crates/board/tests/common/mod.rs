//! What the tests of the round share.
#![allow(dead_code)]

use board::{Board, Claim, Gpu, Occupant, Place, Seat, Settings};
use model::{Class, Nanos};

pub const GPU: Gpu = Gpu(*b"a GPU of a test!");

pub fn occupant(tenant: u64, weight: u32) -> Occupant<'static> {
    Occupant {
        pid: std::process::id(),
        tenant,
        class: Class::BestEffort,
        weight,
        priority: 0,
        slo: None,
        memory: None,
        name: b"name",
        program: b"program",
    }
}

/// A board whose holders may be silent for 50 ms.
pub fn board() -> Board {
    Board::private(GPU, &Settings { grace: ms(50), ..Settings::default() }).unwrap()
}

pub fn sit(board: &Board, tenant: u64, weight: u32) -> Seat {
    board.sit(take(board, tenant, weight)).unwrap()
}

pub fn take(board: &Board, tenant: u64, weight: u32) -> Place {
    board.take(&occupant(tenant, weight)).unwrap()
}

/// Least virtual time first, as the policy has it; this crate cannot use that one, which is beside it.
pub fn fairly(claims: &[Claim]) -> Option<usize> {
    let order = |place: &usize| (claims[*place].virtual_time, claims[*place].wanted_since);
    (0..claims.len()).min_by_key(order)
}

pub fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}
