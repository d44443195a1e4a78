//! What a best-effort tenant may do now, by the policy of its GPU.
//!
//! The policy is a pure function (`policy`), and everything it depends on lies on the board. So each best-effort tenant decides
//! for itself, with the same view and the same result, and nobody has to be asked.

use board::{BestEffortSeat, Board, LatencySeat, Seat, Terms};
use model::{Forecast, Nanos};
use policy::{Activity, BestEffort, Decision, Latency, View, Why};

/// Of each class, no more tenants than this are considered; a GPU with more has other worries.
const MOST: usize = 32;

/// What this process is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    pub runs: bool,
    /// Otherwise, whether it goes on where there are SMs for it.
    pub confined: bool,
    pub why: Why,
    /// What may be started, by how long it takes to stop.
    pub longest: Nanos,
    /// When to look again, if nothing happens before.
    pub again: Nanos,
}

/// What the policy says to the tenant on this seat, in the shared domain, whose work takes so long to stop.
pub fn course(seat: &Seat, terms: &Terms, certificate: Nanos, now: Nanos) -> Course {
    let own = u32::from(seat.place().seat);
    decide(seat, terms, false, certificate, now, |_, decision| Course {
        runs: runs(decision, own, certificate, now),
        confined: decision.confined > 0,
        why: decision.why,
        longest: decision.longest_at(now),
        again: decision.again.min(decision.leaves_at(certificate)),
    })
}

/// Gives what is known and what the policy makes of it. `exclusive`: one at a time has work on the GPU, and who asks has its turn.
pub fn decide<T>(
    seat: &Seat,
    terms: &Terms,
    exclusive: bool,
    certificate: Nanos,
    now: Nanos,
    then: impl FnOnce(&View, &Decision) -> T,
) -> T {
    let board = seat.board();
    let own = u32::from(seat.place().seat);
    let mut latency = [NOBODY; MOST];
    // Of ourselves we know more than the board, where anybody can write who we are.
    let not_us = |number: u16| number != seat.place().seat;
    let theirs = board.latency_tenants(now).filter(|tenant| not_us(tenant.seat));
    let latency = gather(&mut latency, theirs.map(in_view));
    let ourselves = BestEffort {
        weight: terms.weight,
        priority: terms.priority,
        wants: true,
        certificate,
        ..needy(&seat.as_best_effort(now))
    };
    let theirs = board.best_effort_tenants(now).filter(|tenant| not_us(tenant.seat));
    let mut others = [NEEDY; MOST];
    let others = gather(&mut others, std::iter::once(ourselves).chain(theirs.map(|tenant| needy(&tenant))));
    if exclusive {
        // What others say of themselves may be from their last turn.
        others.iter_mut().for_each(|tenant| tenant.runs = tenant.seat == own);
    }
    let view = View { now, exclusive, latency, best_effort: others, dials: board.dials() };
    then(&view, &policy::decide(&view))
}

fn runs(decision: &Decision, own: u32, certificate: Nanos, now: Nanos) -> bool {
    // Who is not on the board cannot be meant, and must not wait for ever.
    decision.why == Why::NothingToDo || decision.admits(own, certificate, now)
}

/// Whether the policy lets blocks run beside a latency tenant's, and up to which length.
pub fn beside(board: Board) -> Nanos {
    let dials = board.dials();
    if dials.kind == policy::Kind::Slo { dials.beside } else { Nanos::ZERO }
}

/// On how many SMs, in hundredths, the policy lets longer work go on beside a latency tenant's.
pub fn confine(board: Board) -> u32 {
    let dials = board.dials();
    if dials.kind == policy::Kind::Slo { dials.confine } else { 0 }
}

fn gather<T>(places: &mut [T; MOST], tenants: impl Iterator<Item = T>) -> &mut [T] {
    let mut count = 0;
    for (place, tenant) in places.iter_mut().zip(tenants) {
        *place = tenant;
        count += 1;
    }
    &mut places[..count]
}

const NOBODY: Latency = Latency {
    seat: 0,
    priority: 0,
    activity: Activity::Idle { since: None },
    busy_until: Nanos::ZERO,
    next: Forecast::ANY_MOMENT,
    slack: Nanos::ZERO,
    usual: Nanos::ZERO,
    lull: Nanos::ZERO,
    spell: Nanos::ZERO,
    whole: false,
    deadline: None,
    solo_wait: Nanos::ZERO,
};

const NEEDY: BestEffort = BestEffort {
    seat: 0,
    priority: 0,
    weight: 1,
    siblings: 1,
    wants: false,
    runs: false,
    virtual_time: Nanos::ZERO,
    wanted_since: Nanos::ZERO,
    certificate: Nanos::ZERO,
    piece: None,
};

fn in_view(tenant: LatencySeat) -> Latency {
    let activity = match tenant.active_since {
        Some(since) => Activity::Active { since },
        None => Activity::Idle { since: tenant.last_active },
    };
    Latency {
        seat: tenant.seat.into(),
        priority: tenant.priority,
        activity,
        busy_until: tenant.outlook.busy_until,
        next: tenant.outlook.next,
        slack: tenant.outlook.slack,
        usual: tenant.usual,
        lull: tenant.outlook.lull,
        spell: tenant.outlook.spell,
        whole: tenant.outlook.whole,
        deadline: tenant.outlook.deadline,
        solo_wait: tenant.outlook.solo_wait,
    }
}

fn needy(tenant: &BestEffortSeat) -> BestEffort {
    BestEffort {
        seat: tenant.seat.into(),
        priority: tenant.priority,
        weight: tenant.weight,
        siblings: tenant.siblings,
        wants: tenant.wants,
        runs: tenant.runs,
        virtual_time: tenant.virtual_time,
        wanted_since: tenant.wanted_since,
        certificate: tenant.certificate,
        piece: tenant.piece,
    }
}
