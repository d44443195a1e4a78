//! Nobody starves.
//!
//! A tenant whose work can never be stopped in time would never run beside one whose requests may always come. So, while no
//! request is under way, it has a *turn* now and then: one piece, after [`PATIENCE`] times as long as it takes to stop it, and for as
//! long as that. Each such tenant harms at most one in so many requests, fewer than a 99th percentile sees.
//!
//! Turns go by the clock, counted from when the tenant came to want, so that nobody gets more of them by how it waits or by how
//! well its waiting is kept account of. Only where one at a time runs that would not do: a turn that comes while another has the
//! token is lost, and by bad luck all of them could be. There, who has waited for so long goes next when the token is free, and
//! one that has the token has its turns by the clock, like anybody else.

use model::Nanos;

use crate::{BestEffort, Decision, View, Who, Why, fair, grant, strict};

/// How many times longer than it takes to stop it somebody waits for its turn.
pub const PATIENCE: u32 = 200;
/// But nobody waits longer than this.
pub(super) const LONGEST: Nanos = Nanos::from_millis(30_000);

/// When the next turn begins, or when this one ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Begins(Nanos),
    Ends(Nanos),
}

/// Lets in one who cannot be stopped within `longest`, if it is somebody's turn: the least advanced of those whose it is.
pub(super) fn let_in(view: &View, longest: Nanos) -> Option<Decision> {
    if strict::keep_away(view).is_some() {
        return None;
    }
    let refused =
        grant::interested(view).filter(|tenant| tenant.certificate > longest || longest == Nanos::ZERO);
    let holder = fair::holder(grant::interested(view).filter(|tenant| tenant.runs && view.exclusive));
    let turns = refused.filter_map(|tenant| match (holder, turn(tenant, view.now)) {
        (Some(holder), _) if holder.seat != tenant.seat => None,
        (_, Turn::Ends(end)) => Some((tenant, end)),
        (None, _) if view.exclusive && view.now.since(tenant.wanted_since) >= pause(tenant) => {
            Some((tenant, view.now + length(tenant)))
        }
        (_, Turn::Begins(_)) => None,
    });
    turns.min_by_key(|(tenant, _)| fair::order(tenant)).map(|(tenant, end)| one_piece(tenant, end))
}

/// When this tenant's turn begins or ends.
pub(super) fn changes_at(tenant: &BestEffort, now: Nanos) -> Nanos {
    let (Turn::Begins(moment) | Turn::Ends(moment)) = turn(tenant, now);
    moment
}

fn turn(tenant: &BestEffort, now: Nanos) -> Turn {
    let pause = pause(tenant);
    let round = pause + length(tenant);
    let into = Nanos(now.since(tenant.wanted_since).0 % round.0);
    if into < pause { Turn::Begins(now + pause.since(into)) } else { Turn::Ends(now + round.since(into)) }
}

fn pause(tenant: &BestEffort) -> Nanos {
    length(tenant).scaled(PATIENCE, 1).min(LONGEST)
}

fn length(tenant: &BestEffort) -> Nanos {
    tenant.certificate.max(Nanos(1))
}

fn one_piece(tenant: &BestEffort, again: Nanos) -> Decision {
    Decision {
        who: Who::One(tenant.seat),
        longest: length(tenant),
        until: Nanos::ZERO,
        in_flight: length(tenant),
        pieces: 1,
        again,
        lead: None,
        confined: 0,
        why: Why::Waited,
    }
}
