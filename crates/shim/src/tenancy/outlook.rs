//! What a latency tenant says of what is to come.
//!
//! Best-effort tenants decide by the board when they may run. That there is work now, the board says already; this adds when
//! the next request is likely to come, how much a request may still be delayed, and whether the next one is to be seen alone.
//! All of it is learned from when requests began and ended, in the thread that begins or ends one, and costs it a fraction of
//! a microsecond. It is advice: where two threads come at once, one of them says nothing.
//!
//! *Alone* is a request during which no best-effort tenant had work on the GPU, nor a moment before, and no stranger of whom the
//! daemon knows. One during which code was loaded or memory allocated (`warm_up`) is left out of what is said about those.
//!
//! A *request* is the time for which the process is busy: from when the first of its streams is given work until the last is
//! waited for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use board::{Experience, Outlook, Seat, Spans};
use forecast::{Arrivals, NEEDED, Sighting, Solo, SoloProfile};
use model::{Forecast, Nanos};
use policy::aside::WHOLE;
use policy::slo::{self, Aim, Report, Typical};
use policy::solo::{LEARNING_PATIENCE, PATIENCE};

use super::warm_up;

/// Percentiles are told once in so many requests, because to find them takes longer than a request should wait for; or after
/// such a while, where requests are few.
const TOLD_EVERY: u64 = 16;
const TOLD_AFTER: Nanos = Nanos::from_millis(250);
/// Who has left the GPU is not out of the way at once: the hardware switches, caches are cold.
const AFTERMATH: Nanos = Nanos::from_micros(200);

pub struct Prospect {
    state: Mutex<State>,
    /// What half of the requests take alone; zero: not known.
    alone: AtomicU64,
}

struct State {
    arrivals: Arrivals,
    solo: Solo,
    /// When the request began, whether somebody else was on the GPU then, and how much warming up there had been.
    began: Nanos,
    company: bool,
    warm_ups: u64,
    /// How often work had been handed over when the request began, and whether the last one was handed over as a whole.
    calls: u64,
    whole: bool,
    /// Whether the request under way, or the next one, is to be seen alone.
    chosen: bool,
    requests: u64,
    /// When percentiles were last told.
    told: Nanos,
    /// What a request may take, and what it takes alone nine times of ten.
    limit: Option<Nanos>,
    usual: Nanos,
    /// For how long after a request the next is worth waiting for.
    lull: Nanos,
    /// Whether the limit is an objective that somebody has set.
    promised: bool,
}

impl Prospect {
    pub const fn new() -> Prospect {
        let state = State {
            arrivals: Arrivals::new(),
            solo: Solo::new(),
            began: Nanos::ZERO,
            company: false,
            warm_ups: 0,
            calls: 0,
            whole: false,
            chosen: false,
            requests: 0,
            told: Nanos::ZERO,
            limit: None,
            usual: Nanos::ZERO,
            lull: Nanos::ZERO,
            promised: false,
        };
        Prospect { state: Mutex::new(state), alone: AtomicU64::new(0) }
    }

    /// How long a request took, in thousandths of what one takes alone; `None` where that is not known.
    pub fn slowdown(&self, took: Nanos) -> Option<u16> {
        let alone = self.alone.load(Ordering::Relaxed);
        let ratio = (u128::from(took.0) * 1_000).checked_div(u128::from(alone))?;
        Some(u16::try_from(ratio).unwrap_or(u16::MAX).max(1))
    }

    /// A request begins; `calls`: how often work has been handed over so far.
    pub fn began(&self, seat: &Seat, now: Nanos, calls: u64) {
        let Ok(mut state) = self.state.try_lock() else { return };
        state.arrivals.began(now);
        state.calls = calls;
        state.began = now;
        state.company = has_company(seat, now, now);
        state.warm_ups = warm_up::count();
        let deadline = state.limit.map(|limit| now + limit);
        // When it launches something next is not known: at any moment.
        seat.say_outlook(Outlook {
            next: Forecast::ANY_MOMENT,
            busy_until: Nanos::MAX,
            slack: state.slack(),
            lull: state.lull,
            spell: state.arrivals.spell(),
            deadline,
            solo_wait: state.solo_wait(),
            whole: state.whole,
            in_line: state.arrivals.wait_in_line(),
        });
    }

    /// It is over, and the process idle; `slo`: what 99 of 100 requests should stay below. Whether the next one is to be seen
    /// alone, and somebody is on the GPU who has to be told: one whom our requests do not concern does not listen for them.
    pub fn ended(&self, seat: &Seat, now: Nanos, took: Nanos, calls: u64, slo: Option<Nanos>) -> bool {
        let Ok(mut state) = self.state.try_lock() else { return false };
        let dials = seat.board().dials();
        let beside = has_company(seat, state.began, now);
        let alone = !state.company && !beside;
        let warm_up = state.warm_ups != warm_up::count();
        state.solo.observe(now, Sighting { took, alone, warm_up });
        state.arrivals.ended(now);
        state.whole = calls.wrapping_sub(state.calls) <= WHOLE;
        state.chosen = state.solo.wants_the_next_alone(dials.solo_share);
        if state.requests.is_multiple_of(TOLD_EVERY) || now.since(state.told) >= TOLD_AFTER {
            state.told = now;
            let profile = state.consider(seat, slo);
            self.alone.store(profile.map_or(0, |profile| profile.p50.0), Ordering::Relaxed);
        }
        state.requests += 1;
        seat.say_outlook(Outlook {
            next: state.next(now),
            busy_until: now,
            slack: state.slack(),
            lull: state.lull,
            spell: state.arrivals.spell(),
            deadline: None,
            solo_wait: state.solo_wait(),
            whole: state.whole,
            in_line: state.arrivals.wait_in_line(),
        });
        state.chosen && beside
    }
}

impl State {
    /// For how long the next request is waited for, if it is to be seen alone.
    fn solo_wait(&self) -> Nanos {
        match self.chosen {
            true if self.solo.is_learning() => LEARNING_PATIENCE,
            true => PATIENCE,
            false => Nanos::ZERO,
        }
    }

    fn slack(&self) -> Nanos {
        self.limit.unwrap_or(Nanos::ZERO) - self.usual
    }

    /// When the next request comes, where somebody has said how long it may take. Without an objective the slack is a few
    /// hundredths of a request, and hardly anything can be stopped within that: best-effort work would be kept away from nearly all
    /// of the time. There it is the controller's part to find out how much the tenant bears.
    fn next(&self, now: Nanos) -> Forecast {
        if self.promised { self.arrivals.next(now) } else { Forecast::ANY_MOMENT }
    }

    /// Sees what requests take, says so, and what follows for the next ones.
    fn consider(&mut self, seat: &Seat, slo: Option<Nanos>) -> Option<SoloProfile> {
        let (all, profile) = (self.solo.all(), self.solo.profile());
        let at = |permille| all.quantile(permille).unwrap_or(Nanos::ZERO);
        let observed = Typical { p50: at(500), p99: at(990) };
        let solo = profile.map(|SoloProfile { p50, p99, .. }| Typical { p50, p99 });
        seat.say_experience(Experience {
            all: spans(all.count(), Some(observed)),
            alone: spans(self.solo.seen_alone(), solo),
            alone_needed: NEEDED.into(),
        });
        let report = Report {
            requests: 0,
            missed: 0,
            observed,
            solo,
            slo,
            tolerance: seat.board().settings().tolerance,
            best_effort: 0,
            kept_away: false,
            certificate: Nanos::ZERO,
            in_line: false,
        };
        self.limit = slo::aim(&report).limit();
        self.promised = matches!(slo::aim(&report), Aim::Slo(_));
        self.lull = self.arrivals.lull();
        self.usual = profile.map_or_else(|| at(900), |profile| profile.p90);
        profile
    }
}

/// Whether somebody else was on the GPU since then, or a moment before.
fn has_company(seat: &Seat, since: Nanos, now: Nanos) -> bool {
    let board = seat.board();
    let last = board.best_effort_last_ran(now).max(board.stranger_seen(now));
    last.is_some_and(|last| last + AFTERMATH >= since)
}

/// What is not known yet has a count and no times.
fn spans(count: u32, times: Option<Typical>) -> Spans {
    let Typical { p50, p99 } = times.unwrap_or_default();
    Spans { count: count.into(), p50, p99 }
}
