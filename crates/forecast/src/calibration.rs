//! How often forecasts came true, and what follows from it.
//!
//! A forecast says of a span that nine of ten exceed it. Whether they do is counted, and the share is there for everybody to
//! see. It also feeds back. What is forecast is multiplied by a factor; each time the moment came earlier than forecast the
//! factor falls by nine parts of itself, each time it did not the factor rises by one. It stands still only where the one
//! happens nine times as often as the other, so over a long time nine of ten are later, however the tenant changes its ways:
//! nothing is assumed about spans but that some factor in reach would do. (This is conformal prediction in its online form.)
//! Who says that it may be any moment cannot be wrong, and is not scored.
//!
//! One factor for everything would let many short spans make up for few long ones, and the long ones are what a policy
//! uses. So spans are put into classes by their length as forecast, each four times as long as the one before, and every
//! class answers for itself.

use model::{Forecast, Nanos};

/// What is one, as a factor.
const ONE: u32 = 1 << 16;
/// A factor rises by this part of itself, and falls by nine: a third of a percent, and three percent.
const STEP: u32 = 320;
/// Spans may turn out longer than they were remembered, or shorter; but who believes too much of it is wrong for long when
/// it ends.
const LEAST: u32 = ONE / 64;
const MOST: u32 = ONE * 2;
/// The first class ends at 2¹² ns, about four microseconds, which nobody can use; the last begins at a second.
const FIRST: u32 = 12;
const CLASSES: usize = 11;
/// Counts are halved when there are so many, so that the share is that of the last few thousand.
const MEMORY: u32 = 8_192;

/// A span that has not ended yet, as well as it is known, and how it was arrived at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Nine of ten are longer.
    pub early: Nanos,
    /// Half of them are longer.
    pub likely: Nanos,
    /// `None`: nothing was said.
    class: Option<u8>,
}

/// What became of forecasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// How many of them have met their outcome; the older ones count less and less.
    pub scored: u32,
    /// Of these, where the moment came no earlier than `early`.
    pub not_before_early: u32,
    /// Of these, where the moment came no earlier than `likely`.
    pub not_before_likely: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Class {
    /// How far the factor lies below [`MOST`], so that all zeros is a beginning.
    below_most: u32,
    record: Record,
}

/// Corrects spans, and remembers how they turned out.
///
/// ```
/// use forecast::Calibration;
/// use model::Nanos;
///
/// // Somebody who always says 100 µs, of something that takes 80 µs.
/// let mut calibration = Calibration::new();
/// for _ in 0..1_000 {
///     let span = calibration.correct(Nanos::from_micros(100), Nanos::from_micros(120));
///     calibration.score(span, Nanos::from_micros(80));
/// }
/// let said = calibration.correct(Nanos::from_micros(100), Nanos::from_micros(120));
/// assert!(said.early <= Nanos::from_micros(82));
/// assert!(calibration.error().unwrap() <= 20);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibration {
    classes: [Class; CLASSES],
}

impl Calibration {
    pub const fn new() -> Calibration {
        Calibration { classes: [Class::NEW; CLASSES] }
    }

    /// What to say of a span of which `early` and `likely` would be said from memory alone.
    pub fn correct(&self, early: Nanos, likely: Nanos) -> Span {
        let class = class(early);
        let factor = self.class(class).map_or(ONE, Class::factor);
        let early = stretched(early, factor);
        Span { early, likely: likely.max(early), class }
    }

    /// The span turned out to be so long.
    pub fn score(&mut self, said: Span, outcome: Nanos) {
        if let Some(class) = said.class.and_then(|class| self.classes.get_mut(usize::from(class))) {
            class.score(outcome >= said.early, outcome >= said.likely);
        }
    }

    /// What became of all forecasts.
    pub fn record(&self) -> Record {
        self.record_from(Nanos::ZERO)
    }

    /// What became of forecasts that were about so long, or longer: those that a policy can use.
    pub fn record_from(&self, early: Nanos) -> Record {
        let classes = self.classes.iter().skip(class(early).map_or(0, usize::from));
        classes.fold(Record::default(), |sum, class| sum.and(class.record))
    }

    /// The calibration error in thousandths: by how much the share of moments that came no earlier than `early` differs from
    /// nine tenths. `None` when nothing has been forecast.
    pub fn error(&self) -> Option<u32> {
        self.record().error()
    }

    fn class(&self, class: Option<u8>) -> Option<&Class> {
        self.classes.get(usize::from(class?))
    }
}

impl Default for Calibration {
    fn default() -> Calibration {
        Calibration::new()
    }
}

impl Class {
    const NEW: Class =
        Class { below_most: 0, record: Record { scored: 0, not_before_early: 0, not_before_likely: 0 } };

    /// A class that knows nothing of its own believes what is remembered.
    fn factor(&self) -> u32 {
        if self.record.scored == 0 { ONE } else { MOST.saturating_sub(self.below_most) }
    }

    fn score(&mut self, not_early: bool, not_likely: bool) {
        let factor = self.factor();
        let step = factor / STEP;
        let next = match not_early {
            true => factor.saturating_add(step).min(MOST),
            false => factor.saturating_sub(step.saturating_mul(9)).max(LEAST),
        };
        self.below_most = MOST.saturating_sub(next);
        let record = &mut self.record;
        if record.scored >= MEMORY {
            record.scored /= 2;
            record.not_before_early /= 2;
            record.not_before_likely /= 2;
        }
        record.scored = record.scored.saturating_add(1);
        record.not_before_early = record.not_before_early.saturating_add(u32::from(not_early));
        record.not_before_likely = record.not_before_likely.saturating_add(u32::from(not_likely));
    }
}

impl Record {
    /// In thousandths: the share of moments that came no earlier than `early`, which ought to be 900.
    pub fn early_share(&self) -> Option<u32> {
        share(self.not_before_early, self.scored)
    }

    /// In thousandths: the share of moments that came no earlier than `likely`, which ought to be 500.
    pub fn likely_share(&self) -> Option<u32> {
        share(self.not_before_likely, self.scored)
    }

    /// By how many thousandths the share of `early` differs from what it ought to be.
    pub fn error(&self) -> Option<u32> {
        self.early_share().map(|share| share.abs_diff(900))
    }

    /// The record of two forecasters together.
    pub fn and(self, other: Record) -> Record {
        Record {
            scored: self.scored.saturating_add(other.scored),
            not_before_early: self.not_before_early.saturating_add(other.not_before_early),
            not_before_likely: self.not_before_likely.saturating_add(other.not_before_likely),
        }
    }
}

impl Span {
    /// Nothing is said.
    pub(crate) const UNSAID: Span = Span { early: Nanos::ZERO, likely: Nanos::ZERO, class: None };

    /// The moment at which a span ends that began at this one.
    pub fn from(&self, began: Nanos) -> Forecast {
        Forecast { early: began + self.early, likely: began + self.likely }
    }
}

fn share(part: u32, whole: u32) -> Option<u32> {
    let thousandths = u64::from(part).saturating_mul(1_000).checked_div(u64::from(whole))?;
    u32::try_from(thousandths).ok()
}

fn class(early: Nanos) -> Option<u8> {
    let powers = early.0.checked_ilog2()?.saturating_add(1).saturating_sub(FIRST);
    Some((powers.div_ceil(2) as usize).min(CLASSES.saturating_sub(1)) as u8)
}

/// A span times a factor, rounded down; without the long division that [`Nanos::scaled`] needs.
fn stretched(span: Nanos, factor: u32) -> Nanos {
    let product = u128::from(span.0).saturating_mul(u128::from(factor)) >> 16;
    Nanos(u64::try_from(product).unwrap_or(u64::MAX))
}
