//! When a tenant's next request comes.
//!
//! Two spans are remembered: from the end of a request to the beginning of the next, and from beginning to beginning. Clients
//! that wait for an answer and think for a while make the first one regular; clients with a rhythm of their own, such as
//! cameras and tickers, the second. Whichever varied less speaks. Requests that had to wait for the one before come at once
//! when it ends: they are pauses of nought, which the first span knows about, and no beginning by any rhythm.
//!
//! Requests come in bursts, so what follows a short span is different from what follows a long one. Spans are therefore also
//! remembered by how long the one before them was, and if there are enough of the kind, these speak alone.
//!
//! Requests that follow each other with no more than a breath between them are a *spell*. Whoever leaves the GPU for the first of one had
//! better stay away until it is over, so how long spells last counts, and not how long requests do. Where spells have several requests, these
//! *wait in line*, or are steps of something longer: whoever asked has waited for more than the one that is seen. Only where a spell does not
//! end at all they come in a loop, each behind the answer to the one before, and nobody waits.
//!
//! A forecast that is asked for while the tenant is idle takes into account that it has been idle so far: only spans that
//! are longer are considered. After a span longer than all that are known, the next request may come at any moment.

use model::{Forecast, LONGEST_LULL, Nanos};

use crate::calibration::{Calibration, Record, Span};
use crate::recent::Recent;

/// The span before is put into classes, each four times as long as the one before it, from 2¹⁷ ns on (131 µs).
const FIRST: u32 = 17;
const CLASSES: usize = 8;
/// What follows one class of spans speaks alone from so many on.
const SPEAKS_ALONE: usize = 19;
/// A request that follows so soon had been waiting, and says nothing about when requests come.
const AT_ONCE: Nanos = Nanos::from_micros(50);
/// Where a tenth of the pauses is so many times shorter than half of them, requests wait in line, or come in pairs.
const IN_LINE: u32 = 16;
/// When a request comes, at most so many forecasts are scored that could have been made while it was waited for.
const ASKED_AGAIN: usize = 4;

/// What it costs if best-effort work begins between two requests and has to leave at once. On an H200 it takes best-effort work some 100 µs to
/// go and come, and the next request waits for up to that; a request's time counts twice.
const FALSE_START: Nanos = Nanos::from_micros(300);

/// A longer pause than this ends a spell, and one longer than the lull, where that is longer: whoever was away for the request before is
/// back by then.
const BREATH: Nanos = Nanos::from_micros(100);
/// Of how long spells last, the last one counts for one part in so many; of how many requests they have, which should not change with
/// every burst, for one in so many.
const SPELLS: u64 = 8;
const MORE_SPELLS: u64 = 32;
/// Requests in a spell are counted in so many parts of one. From one and a half on, on average, they wait in line.
const PARTS: u64 = 256;
const LINE: u64 = PARTS * 3 / 2;
/// A spell counts for no more requests than this: one loop is not made up for by a hundred that come alone.
const MOST: u64 = 16;
/// A spell of so many requests is a loop.
const LOOP: u64 = 1_000;

/// How regularly requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rhythm {
    /// There were too few of them.
    Unknown,
    /// One every so often, eight of ten within an eighth of that.
    Periodic(Nanos),
    Irregular,
}

/// The requests of one tenant.
///
/// ```
/// use forecast::{Arrivals, Rhythm};
/// use model::Nanos;
///
/// let mut arrivals = Arrivals::new();
/// let period = Nanos::from_millis(10);
/// let mut now = Nanos::ZERO;
/// for request in 0..50 {
///     now += period;
///     arrivals.began(now);
///     arrivals.ended(now + Nanos::from_millis(1 + request % 3));
/// }
/// assert_eq!(arrivals.rhythm(), Rhythm::Periodic(Nanos(9_994_240)));
/// // However long the last request took, the next one is due ten milliseconds after it began.
/// let next = arrivals.next(now + Nanos::from_millis(4));
/// assert!(next.early.since(now) > Nanos::from_millis(9));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// From the end of a request to the beginning of the next.
    pauses: Spans,
    /// From beginning to beginning.
    periods: Spans,
    /// Of forecasts made when a request has just ended, and of those made later, which depend on how tails look.
    at_once: Calibration,
    later: Calibration,
    began: Option<Nanos>,
    /// When it ended; `None` while it is under way.
    ended: Option<Nanos>,
    /// When the spell began, and how many of its requests were answered.
    spell_began: Option<Nanos>,
    answered: u64,
    /// How long spells last, and how many requests they have, in parts, on average.
    spell: Nanos,
    requests: u64,
}

/// Spans, all of them and by what was before.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Spans {
    all: Recent<99>,
    after: [Recent<39>; CLASSES],
    last: Nanos,
}

/// What a set of spans says, when some time has passed.
#[derive(Clone, Copy, Debug)]
struct Opinion {
    /// From now on.
    early: Nanos,
    likely: Nanos,
    /// How far apart nine of ten and one of ten are.
    spread: Nanos,
}

impl Arrivals {
    pub const fn new() -> Arrivals {
        Arrivals {
            pauses: Spans::NEW,
            periods: Spans::NEW,
            at_once: Calibration::new(),
            later: Calibration::new(),
            began: None,
            ended: None,
            spell_began: None,
            answered: 0,
            spell: Nanos::ZERO,
            requests: 0,
        }
    }

    /// A request came. One that comes while another is under way counts as a beginning, but not as the end of a pause.
    pub fn began(&mut self, now: Nanos) {
        let spell_began = *self.spell_began.get_or_insert(now);
        if let Some(ended) = self.ended {
            let pause = now.since(ended);
            if pause > BREATH && pause > self.lull() {
                self.observe_spell(ended.since(spell_began));
                self.spell_began = Some(now);
                self.answered = 0;
            }
            self.score(ended, now);
            self.ended = None;
            self.pauses.observe(now.since(ended));
            if now.since(ended) < AT_ONCE {
                self.began = Some(now);
                return;
            }
        }
        if let Some(began) = self.began.replace(now) {
            self.periods.observe(now.since(began));
        }
    }

    /// All requests that had come are answered.
    pub fn ended(&mut self, now: Nanos) {
        if self.began.is_some() {
            self.ended = Some(now);
            self.answered += 1;
        }
    }

    fn observe_spell(&mut self, lasted: Nanos) {
        let average = |before: u64, last: u64, of: u64| {
            let before = if before == 0 { last } else { before };
            before.saturating_mul(of - 1).saturating_add(last) / of
        };
        self.spell = Nanos(average(self.spell.0, lasted.0, SPELLS));
        self.requests = average(self.requests, self.answered.min(MOST) * PARTS, MORE_SPELLS);
    }

    /// How long a spell of requests lasts, on average; nought: none has ended yet.
    pub fn spell(&self) -> Nanos {
        self.spell
    }

    /// Whether requests wait in line, or are steps of something longer.
    pub fn wait_in_line(&self) -> bool {
        self.answered < LOOP && self.requests >= LINE
    }

    /// When the next request comes, as far as it is known now.
    pub fn next(&self, now: Nanos) -> Forecast {
        self.span(now).map_or(Forecast::ANY_MOMENT, |span| span.from(now))
    }

    /// For how long after a request the next one is worth waiting for. A server that has requests waiting still needs a moment between
    /// two of them; whoever starts in there only has to be stopped again.
    pub fn lull(&self) -> Nanos {
        let pauses = &self.pauses.all;
        if !pauses.is_enough() {
            return Nanos::ZERO;
        }
        // The next pause of a kind may be the longest of its kind.
        let patience = pauses.patience(FALSE_START, LONGEST_LULL);
        (patience + patience.scaled(1, 8)).min(LONGEST_LULL)
    }

    pub fn rhythm(&self) -> Rhythm {
        let all = &self.periods.all;
        if !all.is_enough() {
            return Rhythm::Unknown;
        }
        let (low, period, high) = (all.tenth(1), all.tenth(5), all.tenth(9));
        if high.since(low) <= period.scaled(1, 8) { Rhythm::Periodic(period) } else { Rhythm::Irregular }
    }

    /// How forecasts turned out. A request that comes late after many times of asking is scored for each of them that
    /// would have said something new.
    pub fn record(&self) -> Record {
        self.at_once.record().and(self.later.record())
    }

    /// From now to the next request.
    fn span(&self, now: Nanos) -> Option<Span> {
        let pause = self.ended.and_then(|ended| self.pauses.opinion(now.since(ended)));
        let period = self.began.and_then(|began| self.periods.opinion(now.since(began)));
        let opinion = match (pause, period) {
            (Some(pause), Some(period)) if period.spread < pause.spread && !pause.is_in_line() => period,
            (pause, period) => pause.or(period)?,
        };
        let calibration = if self.ended == Some(now) { &self.at_once } else { &self.later };
        Some(calibration.correct(opinion.early, opinion.likely))
    }

    /// Nothing has been learned since the last request ended, so whatever would have been said in the meantime can be said
    /// again now: at its end, and each time that half of the requests would have come.
    fn score(&mut self, ended: Nanos, came: Nanos) {
        let mut said = [None; ASKED_AGAIN];
        let mut asked = ended;
        for slot in &mut said {
            let Some(span) = self.span(asked) else { break };
            *slot = Some((asked, span));
            // Half of the spans lie behind the next question; one that asks for ever finds nothing longer.
            let later = asked + span.likely;
            if later >= came || later == asked {
                break;
            }
            asked = later;
        }
        for (asked, span) in said.into_iter().flatten() {
            let calibration = if asked == ended { &mut self.at_once } else { &mut self.later };
            calibration.score(span, came.since(asked));
        }
    }
}

impl Default for Arrivals {
    fn default() -> Arrivals {
        Arrivals::new()
    }
}

impl Spans {
    const NEW: Spans =
        Spans { all: Recent::new(), after: [const { Recent::new() }; CLASSES], last: Nanos::ZERO };

    fn observe(&mut self, span: Nanos) {
        // The very first one follows nothing.
        if !self.all.is_empty()
            && let Some(after) = self.after.get_mut(class(self.last))
        {
            after.observe(span);
        }
        self.all.observe(span);
        self.last = span;
    }

    fn opinion(&self, passed: Nanos) -> Option<Opinion> {
        let after = self.after.get(class(self.last)).filter(|after| after.len() >= SPEAKS_ALONE);
        match after {
            Some(after) => Some(opinion(after, passed)),
            None if self.all.is_enough() => Some(opinion(&self.all, passed)),
            None => None,
        }
    }
}

impl Opinion {
    /// Whether there is a good chance that the next request comes at once, whatever the rhythm of the others.
    fn is_in_line(&self) -> bool {
        self.early < self.likely.scaled(1, IN_LINE)
    }
}

fn opinion<const N: usize>(spans: &Recent<N>, passed: Nanos) -> Opinion {
    let after = |tenths| spans.tenth_after(tenths, passed).since(passed);
    Opinion { early: after(1), likely: after(5), spread: spans.tenth(9).since(spans.tenth(1)) }
}

fn class(span: Nanos) -> usize {
    let powers = span.0.checked_ilog2().map_or(0, |power| power.saturating_add(1)).saturating_sub(FIRST);
    (powers.div_ceil(2) as usize).min(CLASSES.saturating_sub(1))
}
