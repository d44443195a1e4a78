//! The token: one best-effort seat at a time puts work on the GPU.
//!
//! Everybody has a *virtual time*: the time for which it had the token, stretched by how little it is entitled to. Who
//! is least advanced goes next. After a quantum with weight 1 a seat has moved three times as far as one with weight 3,
//! so the latter gets three quanta until they are level again; over any stretch of time, shares are as the weights,
//! within one quantum. (This is start-time fair queueing, as operating systems share a processor.)
//!
//! The weight belongs to the tenant, so that a tenant gains nothing by starting more processes: the seats of one tenant
//! that want the token at the same time divide its weight, which is to say that each of them moves faster.
//!
//! Who does not want the token does not move, and must not save up for later: a seat that comes back starts no earlier
//! than the least advanced of those present. That rule needs memory, so it lives where the times are kept, on the board.

use model::Nanos;

/// Somebody who wants the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub virtual_time: Nanos,
    /// Since when it has been waiting: among equals, who waited longest is first.
    pub wanted_since: Nanos,
}

/// Which claim is next: the place in the list; `None` when it is empty.
pub fn choose(claims: impl IntoIterator<Item = Claim>) -> Option<usize> {
    let next =
        claims.into_iter().enumerate().min_by_key(|(_, claim)| (claim.virtual_time, claim.wanted_since));
    next.map(|(place, _)| place)
}

/// By how much the virtual time moves when a seat had the token for `used`; `siblings` counts the seats of its tenant
/// that want the token, itself included. Zeros, which only a mistake can bring here, count as one.
pub fn charge(used: Nanos, weight: u32, siblings: u32) -> Nanos {
    used.scaled(siblings.max(1), weight.max(1))
}
