//! When a tenant launches next, from what it launched before.
//!
//! A request is mostly the same kernels in the same order, and so are the pauses between them: most are as short as the
//! program can make them, and some, where it computes, copies or waits for a result, are long and always in the same place.
//! To find the place is all there is to it. A place is told by what came before: best by everything since the request began,
//! and if it has never been like this, by the last four kernels, the last three, two, or the last one alone. Of each such
//! *context* the spans that followed are remembered; the longest context that has enough of them speaks. Where none has,
//! all spans of the tenant speak together, and until there are enough of those, nobody: [`Forecast::ANY_MOMENT`].
//!
//! A span is learned by the context that spoke and by all that are longer, which so come to speak in their turn. A shorter
//! context learns nothing then: it is asked only where the longer ones know nothing, and is to know what happens there. So a
//! tenant that repeats itself costs one entry per launch, whatever the depth.
//!
//! What counts is the time from one launch to the next, on the clock of whoever launches. The span after the last kernel of a
//! request reaches to the next request, so it is known to be long as soon as that kernel is launched.

use model::{Forecast, Nanos};

use crate::calibration::{Calibration, Span};
use crate::kernel::{Kernel, mixed};
use crate::recent::Recent;
use crate::table::{Place, Table};

/// The last kernels that a context may consist of.
const ORDERS: usize = 4;
/// Contexts by length: the whole request, and the orders.
const CONTEXTS: usize = ORDERS + 1;
/// Beyond so many launches nobody repeats a request exactly, and whoever does is told by the last four.
const LONGEST: u32 = 1_024;
/// So many requests that were the same to the last kernel are a habit.
const HABIT: u32 = 3;

/// What a forecast is based on, from the best to the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// All launches of the request so far.
    Request,
    /// The last launches, one to four.
    Last(u8),
    /// All spans of the tenant.
    Overall,
    /// Nothing.
    Nothing,
}

/// A launch site: the place of a launch in what the tenant does again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The same whenever the tenant comes by: a hash of the request so far where that recurs, else of the last four kernels.
    pub hash: u64,
    /// Launches since the request began, this one included.
    pub position: u32,
    /// Whether a request was like this one, up to here, before.
    pub recurs: bool,
}

/// The launches of one tenant; `SLOTS` contexts are remembered, a power of two from eight on. With 2,048 it takes 144 kB, which
/// is enough to know every place of a request of a thousand kernels.
///
/// ```
/// use forecast::{Kernel, Sequence};
/// use model::{Forecast, Nanos};
///
/// let mut sequence = Sequence::<64>::new();
/// let mut now = Nanos::ZERO;
/// let mut said = [Forecast::ANY_MOMENT; 2];
/// for _ in 0..50 {
///     // Two kernels; the first is followed by a pause of 10 µs, the second by one of 500 µs.
///     sequence.begins();
///     said[0] = sequence.launched(now, Kernel(1));
///     now += Nanos::from_micros(10);
///     said[1] = sequence.launched(now, Kernel(2));
///     now += Nanos::from_micros(500);
/// }
/// let start = now - Nanos::from_micros(510);
/// assert!(said[0].likely.since(start) <= Nanos::from_micros(11));
/// assert!(said[1].early.since(start) >= Nanos::from_micros(450));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence<const SLOTS: usize> {
    table: Table<SLOTS>,
    overall: Recent<99>,
    calibration: Calibration,
    /// The last kernels, the latest first.
    last: [u64; ORDERS],
    request: Request,
    pending: Pending,
}

/// The request in progress, and how many before it were the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Request {
    hash: u64,
    length: u32,
    previous: (u64, u32),
    repeats: u32,
}

/// The last launch, until the next one shows how long it took. No `Option` is around it or in it, whose emptiness might be
/// another number than nought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pending {
    /// Whether there was a launch at all.
    launched: bool,
    at: Nanos,
    /// The contexts that learn what follows, the longest first.
    learning: [Place; CONTEXTS],
    speaker: Speaker,
    said: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    Nobody,
    Overall,
    /// The context with this number, nought being the longest.
    Context(usize),
}

impl<const SLOTS: usize> Sequence<SLOTS> {
    pub const fn new() -> Sequence<SLOTS> {
        Sequence {
            table: Table::new(),
            overall: Recent::new(),
            calibration: Calibration::new(),
            last: [0; ORDERS],
            request: Request { hash: 0, length: 0, previous: (0, 0), repeats: 0 },
            pending: Pending::NONE,
        }
    }

    /// The next launch is the first of a request.
    pub fn begins(&mut self) {
        self.request.begin();
    }

    /// A launch; the answer is when the next one comes.
    pub fn launched(&mut self, now: Nanos, kernel: Kernel) -> Forecast {
        self.settle(now);
        let [latest, second, third, _] = self.last;
        self.last = [kernel.0, latest, second, third];
        self.request.goes_on(kernel);
        self.expect(now)
    }

    /// When the next launch comes, asked again: what was said after the last one, less what has not happened since.
    pub fn next(&self, now: Nanos) -> Forecast {
        let passed = now.since(self.pending.at);
        match self.remembered(passed) {
            Some((early, likely)) => {
                self.calibration.correct(early.since(passed), likely.since(passed)).from(now)
            }
            None => Forecast::ANY_MOMENT,
        }
    }

    /// What the forecast after the last launch is based on.
    pub fn level(&self) -> Level {
        match self.pending.speaker {
            Speaker::Context(0) => Level::Request,
            Speaker::Context(context) => Level::Last(CONTEXTS.saturating_sub(context) as u8),
            Speaker::Overall => Level::Overall,
            Speaker::Nobody => Level::Nothing,
        }
    }

    /// Where the last launch was in what the tenant does again and again.
    pub fn site(&self) -> Option<Site> {
        let [request, ..] = self.pending.learning;
        let recurs = request != Place::NOWHERE;
        let hash = self.hash(usize::from(!recurs)).filter(|_| self.pending.launched)?;
        Some(Site { hash, position: self.request.length, recurs })
    }

    /// How many kernels a request has, if the last few were the same kernel by kernel.
    pub fn period(&self) -> Option<u32> {
        (self.request.repeats >= HABIT).then_some(self.request.previous.1)
    }

    /// How forecasts turned out.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The last launch's span has ended: everybody who should learns it.
    fn settle(&mut self, now: Nanos) {
        let pending = &self.pending;
        if !pending.launched {
            return;
        }
        let span = now.since(pending.at);
        self.calibration.score(pending.said, span);
        for &place in &pending.learning {
            self.table.observe(place, span);
        }
        if !matches!(pending.speaker, Speaker::Context(_)) {
            self.overall.observe(span);
        }
    }

    /// Looks for the longest context that knows enough, notes all that were asked, and says what it says.
    fn expect(&mut self, now: Nanos) -> Forecast {
        let mut learning = [Place::NOWHERE; CONTEXTS];
        let mut speaker = if self.overall.is_enough() { Speaker::Overall } else { Speaker::Nobody };
        for (context, learner) in learning.iter_mut().enumerate() {
            let Some(place) = self.hash(context).and_then(|hash| self.table.visit(hash)) else { continue };
            *learner = place;
            if self.table.recent(place).is_some_and(Recent::is_enough) {
                speaker = Speaker::Context(context);
                break;
            }
        }
        self.pending = Pending { launched: true, at: now, learning, speaker, said: Span::UNSAID };
        let Some((early, likely)) = self.remembered(Nanos::ZERO) else {
            return Forecast::ANY_MOMENT;
        };
        self.pending.said = self.calibration.correct(early, likely);
        self.pending.said.from(now)
    }

    /// The span that nine of ten exceed, and the one that half of them do, of those that are longer than what has passed.
    fn remembered(&self, passed: Nanos) -> Option<(Nanos, Nanos)> {
        match self.pending.speaker {
            Speaker::Context(context) => {
                let recent = self.table.recent(*self.pending.learning.get(context)?)?;
                Some((recent.tenth_after(1, passed), recent.tenth_after(5, passed)))
            }
            Speaker::Overall => {
                Some((self.overall.tenth_after(1, passed), self.overall.tenth_after(5, passed)))
            }
            Speaker::Nobody => None,
        }
    }

    /// The hash of a context: nought is the request so far, if it is not too long; then the last four, three, two, one.
    fn hash(&self, context: usize) -> Option<u64> {
        let order = match context {
            0 if self.request.length > LONGEST => return None,
            0 => return Some(self.request.hash),
            shorter => CONTEXTS.saturating_sub(shorter),
        };
        let kernels = self.last.iter().take(order);
        // The order is part of it: a context of two kernels is not one of four of which two are nought.
        Some(kernels.fold(order as u64, |hash, kernel| mixed(hash ^ kernel)))
    }
}

impl<const SLOTS: usize> Default for Sequence<SLOTS> {
    fn default() -> Sequence<SLOTS> {
        Sequence::new()
    }
}

impl Pending {
    const NONE: Pending = Pending {
        launched: false,
        at: Nanos::ZERO,
        learning: [Place::NOWHERE; CONTEXTS],
        speaker: Speaker::Nobody,
        said: Span::UNSAID,
    };
}

impl Request {
    fn begin(&mut self) {
        let ended = (self.hash, self.length);
        if ended.1 == 0 {
            return;
        }
        let repeats = if ended == self.previous { self.repeats.saturating_add(1) } else { 0 };
        *self = Request { hash: 0, length: 0, previous: ended, repeats };
    }

    fn goes_on(&mut self, kernel: Kernel) {
        self.hash = mixed(self.hash ^ kernel.0.rotate_left(17)).wrapping_add(1);
        self.length = self.length.saturating_add(1);
    }
}
