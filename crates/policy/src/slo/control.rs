//! The controller: how much of the slack may be spent, found out by trying.
//!
//! There are many dials and one question: how bold may best-effort work be? So there is one number, the *level*, and a table that
//! says how the dials stand at each: from nearly `strict` at the bottom, by shorter quiet windows and shorter gaps, to blocks
//! that run beside a request at the top. Each step up gives best-effort work a little more of the tenant's time.
//!
//! **Other SMs where there is room.** On the levels at which something may run beside a request, what takes longer may run on some of
//! the SMs ([`confine`](crate::confine)), if every objective leaves room for that. What it costs is seen like everything else.
//!
//! **Nobody beside a line.** An objective is one for whoever asked, who may have waited in line before his request began; and what makes
//! each request in a line a little longer makes those behind it much later. Of that nothing is seen here, so where requests wait in line, or
//! are steps of something longer, nothing runs beside them, at whatever level.
//!
//! **Fast down, slowly up.** The tenant that has spent most of its slack counts. At nine tenths, half of the levels go at once,
//! and half of the rest soon after if that was not enough. Below seven tenths the level goes up by one, but only after enough
//! requests were seen at the level before to know what it costs. Between the two it stays.
//!
//! **No evidence, no change.** While best-effort work is hardly there, a fast answer does not show that it is harmless,
//! nor a slow one that it is guilty: the level stays, and does not run up to a height that nobody has tried (which would be
//! paid for when best-effort work comes back). But where it is kept away, by this very level, its absence is no accident: a tenant whose
//! requests follow each other without a pause would otherwise keep everybody out for ever, whatever it bears. Then the level rises
//! until it lets somebody in, which is the first that can do any harm; and since none before it can, nothing is learned by waiting at
//! each. In the isolated domain none lets anybody in; at the top, best-effort work is left to the hardware there.
//!
//! **It comes to rest.** A controller that only goes up and down would never stop doing so: each time it climbs to the level that
//! is too much, finds out, falls, and climbs again. So it remembers which level was too much, and stays below. Things may
//! have become better since, so it tries again, but waits twice as long each time that it was wrong, up to an hour and a
//! half: a plant that does not change is tried a few times, and then left in peace. When the circumstances have changed
//! (requests come half or twice as often, best-effort work can be stopped in half or twice the time, a tenant came or left),
//! what was learned under others is forgotten.

use model::{Dials, Domain, Kind, Nanos};

use super::aim::{Aim, Report, aim, spent};
use crate::confine::{LONG, ROOM};

/// How many levels there are.
pub const LEVELS: u32 = TABLE.len() as u32;
/// The level at which the dials stand as by default.
pub const START: u32 = 8;

/// When so much of the slack is spent, in thousandths, the level falls.
const NEAR: u32 = 900;
/// Below so much it may rise.
const FAR: u32 = 700;
/// So many requests are seen at a level before it rises.
const EVIDENCE: u32 = 200;
/// And for so many looks it is left alone, also if requests are many.
const REST: u32 = 5;
/// So many looks after a fall it is seen whether another is needed: percentiles still tell of the level before.
const SETTLE: u32 = 3;
/// The GPU is busy with best-effort work for at least this part of the time, in thousandths, if it is to be blamed or trusted.
const PRESENT: u32 = 10;
/// For so many looks a level that was too much is not tried again, the first time and at the most.
const PENANCE: (u32, u32) = (100, 51_200);
/// A rate is an average over so many looks.
const RATE_OVER: u32 = 64;

/// At each level: quiet, threshold, in flight, beside, in microseconds; and on how many of a hundred SMs longer work may run beside a
/// request, where there is room for that. The bounds of each dial are its first and last row.
///
/// No quiet window is shorter than the pause between two requests of which the second was waiting while the first was answered: on an
/// H200 a server in Python needs 20 µs for it, and one time in a hundred 90. Whoever starts in there is stopped at once, and the
/// request pays for that; what it costs best-effort work to wait is a hundredth of the time, where requests come in hundreds of bursts a
/// second.
const TABLE: [([u64; 4], u32); 18] = [
    ([2_000, 10_000, 500, 0], 0),
    ([1_000, 5_000, 700, 0], 0),
    ([500, 2_000, 1_000, 0], 0),
    ([250, 1_000, 1_400, 0], 0),
    ([140, 500, 2_000, 0], 0),
    ([100, 250, 2_800, 0], 0),
    ([80, 120, 4_000, 0], 0),
    ([80, 80, 5_600, 0], 0),
    ([80, 50, 8_000, 0], 0),
    ([80, 40, 8_000, 0], 0),
    ([80, 30, 8_000, 5], 25),
    ([80, 25, 8_000, 10], 25),
    ([80, 20, 8_000, 20], 25),
    ([80, 15, 8_000, 30], 50),
    ([80, 12, 8_000, 50], 50),
    ([80, 10, 8_000, 100], 50),
    ([80, 10, 8_000, 200], 75),
    ([80, 10, 8_000, 400], 75),
];

/// The longest quiet window in the isolated domain, where best-effort work that is kept away has to be taken off the GPU and let in again, for
/// a fraction of a millisecond each. A longer one costs more than it spares: the first request after a pause pays for a switch
/// however long the window was, and with requests that come by chance every few milliseconds, one of 2 ms would take half of the
/// pauses for a hundredth of the latency.
const ISOLATED_QUIET: Nanos = Nanos::from_micros(300);

/// In the isolated domain, what may run beside requests when nothing else has let anybody in: whatever the hardware switches away from in
/// that time.
const LEFT_TO_THE_HARDWARE: Nanos = Nanos::from_micros(400);

/// What the controller remembers from one look to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    level: u32,
    /// Requests and looks since the level changed, and whether it fell then.
    requests: u32,
    looks: u32,
    fell: bool,
    /// For how many looks somebody has been kept away and nobody was there.
    absent: u32,
    /// How much of the slack was spent at the last look.
    spent: u32,
    /// The lowest level that was too much ([`LEVELS`]: none), and for how many looks it is not tried again.
    too_much: u32,
    penance: u32,
    next_penance: u32,
    /// Whether best-effort work is left to the hardware, in the isolated domain.
    left: bool,
    company: Company,
    now: Circumstances,
    /// Under which circumstances it was too much.
    then: Circumstances,
}

/// Who may be there beside a request, at the levels that let anybody in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Company {
    /// Nobody: requests wait in line.
    None,
    #[default]
    ShortBlocks,
    /// Every objective leaves room for work on other SMs too.
    OnOtherSms,
}

/// What a level that was too much was too much for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Circumstances {
    tenants: u32,
    /// Requests at a look, times [`RATE_OVER`].
    rate: u32,
    certificate: Nanos,
}

impl Default for State {
    fn default() -> State {
        State {
            level: START,
            requests: 0,
            looks: 0,
            fell: false,
            absent: 0,
            spent: 0,
            too_much: LEVELS,
            penance: 0,
            next_penance: PENANCE.0,
            left: false,
            company: Company::default(),
            now: Circumstances::default(),
            then: Circumstances::default(),
        }
    }
}

/// One look: what the dials become, given what was seen since the last. Only those that the level governs are turned, and
/// only under this policy.
pub fn tune(dials: Dials, domain: Domain, state: State, reports: &[Report]) -> (Dials, State) {
    if dials.kind != Kind::Slo {
        return (dials, state);
    }
    let state = state.look(domain, reports);
    (state.dials(domain, dials), state)
}

/// The dials at a level.
pub fn dials_at(level: u32, company: Company, domain: Domain, dials: Dials) -> Dials {
    let (spans, confine) = TABLE[level.min(LEVELS - 1) as usize];
    let [quiet, threshold, in_flight, beside] = spans.map(Nanos::from_micros);
    let (beside, confine) = match company {
        Company::None => (Nanos::ZERO, 0),
        Company::ShortBlocks => (beside, 0),
        Company::OnOtherSms => (beside, confine),
    };
    if domain == Domain::Isolated {
        // Nobody runs beside a request there, unless a person says so: what would, runs in its gaps, and each costs two switches.
        // Both sides pay for that, and where requests are many it is more than the GPU has time for.
        let quiet = quiet.min(ISOLATED_QUIET);
        return Dials { quiet, threshold, in_flight, beside: Nanos::ZERO, confine: 0, ..dials };
    }
    Dials { quiet, threshold, in_flight, beside, confine, ..dials }
}

impl State {
    /// From 0 to below [`LEVELS`].
    pub fn level(&self) -> u32 {
        self.level
    }

    /// The dials, with those that are turned here.
    pub fn dials(&self, domain: Domain, dials: Dials) -> Dials {
        let dials = dials_at(self.level, self.company, domain, dials);
        let left = self.left && domain == Domain::Isolated;
        Dials { beside: if left { LEFT_TO_THE_HARDWARE } else { dials.beside }, ..dials }
    }

    fn look(self, domain: Domain, reports: &[Report]) -> State {
        let mut state = self.sane().notice(reports);
        state.looks = state.looks.saturating_add(1);
        state.penance = state.penance.saturating_sub(1);
        // Who was asked nothing has nothing new to say.
        let heard = reports.iter().filter(|report| report.requests > 0);
        let present = heard.clone().any(|report| report.best_effort >= PRESENT);
        let kept_away = heard.clone().any(|report| report.kept_away);
        let worst = heard.clone().filter_map(spent).max();
        let (Some(worst), true) = (worst, present || kept_away) else { return state };
        state.absent = if present { 0 } else { state.absent.saturating_add(1) };
        let fewest = heard.filter(|report| spent(report).is_some()).map(|report| report.requests).min();
        state.requests = state.requests.saturating_add(fewest.unwrap_or(0));
        let recovers = worst < state.spent;
        state.spent = worst;
        match worst {
            // Who is not there is not to blame.
            NEAR.. if state.looks < SETTLE || recovers || !present => state,
            NEAR.. => state.fall(),
            FAR..NEAR => state,
            ..FAR if domain == Domain::Isolated && !present && state.is_at_the_top() => {
                State { left: true, ..state }
            }
            ..FAR => state.rise(),
        }
    }

    /// Whether there is nothing bolder, and it is known what that costs.
    fn is_at_the_top(&self) -> bool {
        self.level + 1 == LEVELS && self.is_tried()
    }

    /// Whether it is known what the level costs: enough was seen of it, or it costs nothing, there being nobody.
    fn is_tried(&self) -> bool {
        let seen = self.looks >= REST && self.requests >= EVIDENCE;
        seen || self.absent >= REST
    }

    fn fall(self) -> State {
        if self.level == 0 {
            return self;
        }
        let fallen = State { fell: true, left: false, ..self.at(self.level / 2) };
        // A fall right behind another may still be for the level before, and says nothing about this one.
        if self.fell && self.looks < REST {
            return fallen;
        }
        let next_penance = self.next_penance.saturating_mul(2).min(PENANCE.1);
        let too_much = self.level.min(self.too_much);
        State { too_much, penance: self.next_penance, next_penance, then: self.now, ..fallen }
    }

    fn rise(self) -> State {
        let next = self.level + 1;
        if !self.is_tried() || next >= LEVELS || (next >= self.too_much && self.penance > 0) {
            return self;
        }
        // Whoever has got past what was once too much need not fear it any more.
        let too_much = if next > self.too_much { LEVELS } else { self.too_much };
        State { too_much, ..self.at(next) }
    }

    fn at(self, level: u32) -> State {
        State { level, requests: 0, looks: 0, fell: false, ..self }
    }

    /// Sees how things are, and forgets what was learned when they were otherwise.
    fn notice(self, reports: &[Report]) -> State {
        let requests = reports.iter().fold(0u32, |sum, report| sum.saturating_add(report.requests));
        // An average that began at nought would tell of a change where there was only a beginning.
        let old = if self.now.rate == 0 { requests.saturating_mul(RATE_OVER) } else { self.now.rate };
        let now = Circumstances {
            tenants: u32::try_from(reports.len()).unwrap_or(u32::MAX),
            rate: (old - old / RATE_OVER).saturating_add(requests),
            certificate: reports.iter().map(|report| report.certificate).max().unwrap_or_default(),
        };
        let company = company(reports);
        let known = self.too_much < LEVELS;
        if known && (now.differ(self.then) || company != self.company) {
            return State { now, company, too_much: LEVELS, penance: 0, next_penance: PENANCE.0, ..self };
        }
        State { now, company, ..self }
    }

    /// Any numbers are a state.
    fn sane(self) -> State {
        let next_penance = self.next_penance.clamp(PENANCE.0, PENANCE.1);
        State { level: self.level.min(LEVELS - 1), too_much: self.too_much.min(LEVELS), next_penance, ..self }
    }
}

fn company(reports: &[Report]) -> Company {
    if reports.iter().any(|report| report.in_line) {
        Company::None
    } else if !reports.is_empty() && reports.iter().all(has_room) {
        Company::OnOtherSms
    } else {
        Company::ShortBlocks
    }
}

/// Whether a tenant's objective is so far above what it takes alone, and that so long, that others may have SMs beside it.
fn has_room(report: &Report) -> bool {
    let Aim::Slo(objective) = aim(report) else { return false };
    report.solo.is_some_and(|solo| objective >= solo.p99.scaled(ROOM, 10) && solo.p50 >= LONG)
}

impl Circumstances {
    fn differ(self, then: Circumstances) -> bool {
        let doubled = |a: u64, b: u64| a.max(b) / 2 > a.min(b);
        self.tenants != then.tenants
            || doubled(self.rate.into(), then.rate.into())
            || doubled(self.certificate.0, then.certificate.0)
    }
}
