//! What a latency tenant says of what is to come.
//!
//! Best-effort tenants decide by the board when they may run. That there is work now, the board says already; this adds when
//! the next request is likely to come, how much a request may still be delayed, and whether the next one is to be seen alone.
//! All of it is learned from when requests began and ended, in the thread that begins or ends one, and costs it a fraction of
//! a microsecond. It is advice: where two threads come at once, one of them says nothing.
//!
//! A *request* is the time for which the process is busy: from when the first of its streams is given work until the last is
//! waited for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use board::{Experience, Outlook, Seat, Spans};
use forecast::{Arrivals, Sketch, Solo};
use model::{Forecast, Nanos};
use policy::aside::WHOLE;
use policy::slo::{self, Aim, Report, Typical};

/// Percentiles are told once in so many requests: to find them takes longer than a request should wait for.
const TOLD_EVERY: u64 = 16;
/// So many requests bear out a 99th percentile.
const ENOUGH: u32 = 100;

pub struct Prospect {
    state: Mutex<State>,
    /// What half of the requests take alone; zero: not known.
    alone: AtomicU64,
}

struct State {
    arrivals: Arrivals,
    solo: Solo,
    /// Whether somebody else was on the GPU when the request began.
    company: bool,
    /// How often work had been handed over when the request began, and whether the last one was handed over as a whole.
    calls: u64,
    whole: bool,
    /// Whether the request under way, or the next one, is to be seen alone.
    chosen: bool,
    requests: u64,
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
            company: false,
            calls: 0,
            whole: false,
            chosen: false,
            requests: 0,
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
        state.company = has_company(seat, now);
        let deadline = state.limit.map(|limit| now + limit);
        // When it launches something next is not known: at any moment.
        seat.say_outlook(Outlook {
            next: Forecast::ANY_MOMENT,
            busy_until: Nanos::MAX,
            slack: state.slack(),
            lull: state.lull,
            spell: state.arrivals.spell(),
            deadline,
            solo: state.chosen,
            whole: state.whole,
            in_line: state.arrivals.wait_in_line(),
        });
    }

    /// It is over, and the process idle.
    pub fn ended(&self, seat: &Seat, now: Nanos, took: Nanos, calls: u64) {
        let Ok(mut state) = self.state.try_lock() else { return };
        let dials = seat.board().dials();
        let alone = !state.company && !has_company(seat, now);
        state.solo.observe(took, alone);
        state.arrivals.ended(now);
        state.whole = calls.wrapping_sub(state.calls) <= WHOLE;
        state.chosen = state.solo.wants_the_next_alone(dials.solo_share);
        if state.requests.is_multiple_of(TOLD_EVERY) {
            state.consider(seat);
            let alone = state.solo.alone();
            let known = if alone.count() >= ENOUGH { alone.quantile(500) } else { None };
            self.alone.store(known.unwrap_or(Nanos::ZERO).0, Ordering::Relaxed);
        }
        state.requests += 1;
        seat.say_outlook(Outlook {
            next: state.next(now),
            busy_until: now,
            slack: state.slack(),
            lull: state.lull,
            spell: state.arrivals.spell(),
            deadline: None,
            solo: state.chosen,
            whole: state.whole,
            in_line: state.arrivals.wait_in_line(),
        });
    }
}

impl State {
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
    fn consider(&mut self, seat: &Seat) {
        let (all, alone) = (spans(self.solo.all()), spans(self.solo.alone()));
        seat.say_experience(Experience { all, alone });
        let typical = |spans: Spans| Typical { p50: spans.p50, p99: spans.p99 };
        let known = self.solo.alone().count() >= ENOUGH;
        let report = Report {
            requests: 0,
            missed: 0,
            observed: typical(all),
            solo: known.then(|| typical(alone)),
            slo: seat.terms().slo,
            tolerance: seat.board().settings().tolerance,
            best_effort: 0,
            kept_away: false,
            certificate: Nanos::ZERO,
            in_line: false,
        };
        self.limit = slo::aim(&report).limit();
        self.promised = matches!(slo::aim(&report), Aim::Slo(_));
        let usual = self.solo.alone().quantile(900).filter(|_| known);
        self.lull = self.arrivals.lull();
        self.usual = usual.or_else(|| self.solo.all().quantile(900)).unwrap_or(Nanos::ZERO);
    }
}

/// Whether a best-effort tenant has work on the GPU.
fn has_company(seat: &Seat, now: Nanos) -> bool {
    seat.board().best_effort_tenants(now).any(|tenant| tenant.runs)
}

fn spans(sketch: &Sketch) -> Spans {
    let at = |thousandths| sketch.quantile(thousandths).unwrap_or(Nanos::ZERO);
    Spans { count: sketch.seen(), p50: at(500), p99: at(990) }
}
