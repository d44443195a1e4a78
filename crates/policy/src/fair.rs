//! Shares by weight, exactly: one best-effort tenant at a time, in both domains.
//!
//! Towards latency tenants this is `strict`. What differs is what best-effort tenants are to each other: elsewhere, in the
//! shared domain, all of them run at once and the hardware deals out its blocks as it likes, so that a weight says little.
//! Here they take turns, and over any stretch of time their shares are as their weights, within one quantum (`token` says
//! how). A level of priority counts as twice the weight: with ten levels the highest gets 512 times what the lowest gets, and
//! still nobody starves, which is the reason why levels are weights and not ranks.
//!
//! Who runs goes on until it is a quantum ahead of the least advanced of the others: a turn has to be long enough to be worth
//! the change. In the isolated domain the board's token is what moves; a holder's virtual time is charged when it
//! gives the token on, so the rule below names the holder for as long as it holds, and the quantum there is the board's. A
//! policy never takes the token from anybody: it says whether its holder may run now.

use model::Nanos;

use crate::{BestEffort, Decision, View, Who, Why, grant, strict, token};

/// How far ahead of the others who runs may get.
pub const QUANTUM: Nanos = Nanos::from_millis(50);

/// Not more often than this is looked whether a turn is over.
const SHORTEST_TURN: Nanos = Nanos::from_micros(100);

/// The highest level of priority.
pub const HIGHEST: u32 = 9;

pub fn decide(view: &View) -> Decision {
    if let Some(away) = strict::keep_away(view) {
        return away;
    }
    let Some(tenant) = turn(grant::interested(view)) else {
        return Decision::nobody(Why::NothingToDo, Nanos::MAX);
    };
    let grant = Decision::anything(Who::One(tenant.seat), view.dials.in_flight);
    let others = grant::interested(view).filter(|other| other.seat != tenant.seat);
    match others.map(|other| other.virtual_time).min() {
        // Nobody else wants the turn: it lasts until somebody does.
        None => grant,
        Some(least) => Decision { again: view.now + left(tenant, least), ..grant },
    }
}

/// For how long a tenant may still run until it is a quantum ahead.
fn left(tenant: &BestEffort, least: Nanos) -> Nanos {
    let virtually = (least + charge(tenant, QUANTUM)).since(tenant.virtual_time);
    let really = virtually.scaled(weight(tenant.weight, tenant.priority), tenant.siblings.max(1));
    really.clamp(SHORTEST_TURN, QUANTUM + QUANTUM)
}

/// What a tenant's weight comes to with its priority.
pub fn weight(weight: u32, priority: u32) -> u32 {
    weight.max(1).saturating_mul(1 << priority.min(HIGHEST))
}

/// By how much a tenant's virtual time moves when it ran for `used`.
pub fn charge(tenant: &BestEffort, used: Nanos) -> Nanos {
    token::charge(used, weight(tenant.weight, tenant.priority), tenant.siblings)
}

/// The least advanced is first, among equals who waited longest, and then the lower seat, so that the order in which they are
/// told makes no difference.
pub(crate) fn order(tenant: &BestEffort) -> (Nanos, Nanos, u32) {
    (tenant.virtual_time, tenant.wanted_since, tenant.seat)
}

/// Whose turn it is: who runs, until it is a quantum ahead, or else who is first.
pub fn turn<'a>(tenants: impl Iterator<Item = &'a BestEffort> + Clone) -> Option<&'a BestEffort> {
    let least = tenants.clone().min_by_key(|tenant| order(tenant))?;
    let running = tenants.filter(|tenant| tenant.runs).min_by_key(|tenant| order(tenant));
    let stays = running.filter(|tenant| {
        tenant.virtual_time <= least.virtual_time + charge(tenant, QUANTUM) || tenant.seat == least.seat
    });
    Some(stays.unwrap_or(least))
}

/// Whose turn it is where turns are taken elsewhere: who runs, however far ahead it is, or else who is least advanced.
pub(crate) fn holder<'a>(tenants: impl Iterator<Item = &'a BestEffort> + Clone) -> Option<&'a BestEffort> {
    turn(tenants.clone().filter(|tenant| tenant.runs)).or_else(|| turn(tenants))
}
