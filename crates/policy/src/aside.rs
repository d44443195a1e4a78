//! Keeping away from requests where one context at a time is on the GPU.
//!
//! In the isolated domain the hardware leaves best-effort work as soon as somebody else has any, and comes back to it as soon as
//! nobody has: also in every gap between two kernels of a request, and each time there and back costs two switches, of which
//! the request waits for one. Whoever is taken out of the round for as long as a policy wants it away saves them. What takes it
//! out and lets it in again is the *lever*, a call to the driver that costs more than a switch. So what a policy says is not
//! done at once, but where it pays.
//!
//! * **Off** only for a wait that lasts longer than the lever takes to act: what is over before gains nothing by it. How long a
//!   request will last is not known. If most of this tenant's last longer than the lever takes, it is pulled at once. If not, it is
//!   waited for as long as the lever takes: for a request that has lasted so long it is pulled then, and whatever becomes
//!   of it, no more than twice the price was paid that foresight would have paid.
//! * A request that is handed over **as a whole**, as a graph is, has no gaps for anybody to come back in. It was given the GPU by a switch, and
//!   all that the lever does for it is to make it wait again: on an H200 170 to 190 µs, while the driver takes others out of the round.
//!   For such the lever is pulled if they last twice as long as it takes, for what comes behind them.
//! * **Between requests**, a policy that wants nobody there (a quiet window, a request to come that bears less than a switch) is a reason only if
//!   the requests to come are one as well. Otherwise the next one finds the driver at work for a wait that it would not have had: a graph of 0.6 ms every 2 ms
//!   paid 200 µs each time.
//! * A request that is **to be seen alone** (`solo`) is left for whatever that costs: somebody found on the GPU would be what is seen.
//! * Requests that **follow each other** are waited for as one, a spell: one of 0.6 ms that finds the GPU with somebody else pays half as
//!   much again, and where requests wait in line a spell has a dozen of them. But only if there are two or more on average: the request for
//!   which the lever is pulled pays for that about as much as the next one is spared.
//! * **On** again when the policy says so, but not for a gap inside a request: there is at most one stop and one resumption for
//!   each. Nor is a gap a reason to stay when a request has begun: the next would be one to leave.
//! * **On**, under `slo`, beside what lasts for a second: that is no request but a tenant that is never idle, of which nobody will ever
//!   learn how much it bears. The hardware shares the GPU with it, mostly in its favour, and nobody starves.
//!
//! Nothing is waited for besides the policy's own quiet window, and a tenth of a millisecond. To wait longer, until it would be proved that the next
//! request does not follow at once, costs best-effort work more than it saves: requests that come by chance are no likelier after a
//! short pause than after a long one.

use model::{Kind, Nanos};

use crate::{Activity, Decision, Latency, View, Why, strict};

/// What a tenant is to do about the lever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aside {
    /// Whether to be off the GPU.
    pub off: bool,
    /// When to look again, if nothing happens before.
    pub again: Nanos,
}

/// Who is off stays off for so long after a request, whatever the policy's own quiet window: requests that waited for each other follow each
/// other sooner than that, and to come and go between them costs more than the GPU has time for.
pub const SHORTEST: Nanos = Nanos::from_micros(100);
/// What is handed over in no more calls than this is handed over as a whole: what it works on, a graph, and what came of it.
pub const WHOLE: u64 = 4;
/// What lasts so long is no request.
pub const ENDLESS: Nanos = Nanos::from_millis(1_000);

/// What the tenant of this seat does about a decision. `off`: whether it is off the GPU now; `lever`: how long it takes to stop it.
pub fn settle(view: &View, decision: &Decision, seat: u32, off: bool, lever: Nanos) -> Aside {
    let own = view.best_effort.iter().find(|tenant| tenant.seat == seat);
    let certificate = own.map_or(Nanos::ZERO, |own| own.certificate);
    let requests = Requests::of(view);
    let may = match decision.why {
        // Who has nothing to do has no reason to leave either.
        Why::NothingToDo => true,
        Why::Gap => requests.are_endless,
        _ => requests.are_endless || decision.admits(seat, certificate, view.now),
    };
    let again = if may { decision.leaves_at(certificate) } else { requests.endless_at };
    let again = again.min(decision.again);
    if off {
        // A request that has just ended may have another behind it in a queue.
        let rest = strict::ended(view.latency, SHORTEST, view.now).filter(|_| may);
        return Aside { off: !may || rest.is_some(), again: again.min(rest.unwrap_or(Nanos::MAX)) };
    }
    if may {
        return Aside { off, again };
    }
    let worth = worth(requests.are_whole, lever);
    let off = match requests.last {
        Some(lasts) => lasts >= worth,
        None if decision.why == Why::Solo => true,
        None => {
            let lasts = decision.again.since(view.now);
            lasts >= lever && view.latency.iter().any(|tenant| is_worth_leaving_for(tenant, lever))
        }
    };
    let worth_at = if off { Nanos::MAX } else { requests.youngest.map_or(Nanos::MAX, |since| since + worth) };
    Aside { off, again: again.min(worth_at) }
}

/// How long a tenant has work at a stretch.
fn stretch(tenant: &Latency) -> Nanos {
    let several = tenant.spell >= tenant.usual.scaled(2, 1);
    if several { tenant.spell } else { tenant.usual }
}

/// How long requests must last for the lever to be pulled.
fn worth(are_whole: bool, lever: Nanos) -> Nanos {
    if are_whole { lever.scaled(2, 1) } else { lever }
}

/// Whether it pays to be off the GPU when a request of this tenant comes. Of one of whom nothing is known, it may.
fn is_worth_leaving_for(tenant: &Latency, lever: Nanos) -> bool {
    tenant.usual == Nanos::ZERO || stretch(tenant) >= worth(tenant.whole, lever)
}

/// The requests under way.
struct Requests {
    /// How long one of them lasts, as far as can be told: as long as it has already, or as such requests, or spells of them, usually take.
    last: Option<Nanos>,
    /// When the last of them began.
    youngest: Option<Nanos>,
    /// Whether there are some, and none has gaps in it.
    are_whole: bool,
    /// Whether there are some, and each has lasted so long that it is none; and when that will be.
    are_endless: bool,
    endless_at: Nanos,
}

impl Requests {
    fn of(view: &View) -> Requests {
        let active = view.latency.iter().filter_map(|tenant| match tenant.activity {
            Activity::Active { since } => Some((since, tenant)),
            Activity::Idle { .. } => None,
        });
        let last = active.clone().map(|(since, tenant)| view.now.since(since).max(stretch(tenant))).max();
        let youngest = active.clone().map(|(since, _)| since).max();
        let are_whole = last.is_some() && active.clone().all(|(_, tenant)| tenant.whole);
        let forgiven = youngest.filter(|_| view.dials.kind == Kind::Slo);
        let are_endless = forgiven.is_some_and(|since| view.now.since(since) >= ENDLESS);
        let endless_at = forgiven.map_or(Nanos::MAX, |since| since + ENDLESS);
        Requests { last, youngest, are_whole, are_endless, endless_at }
    }
}
