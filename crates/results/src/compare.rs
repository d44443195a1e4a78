//! What got better or worse between two archives, beyond noise.
//!
//! Every figure is compared as a ratio, later over earlier. A change is called one only if the interval of the ratio
//! leaves out 1 *and* the change is larger than a floor: with enough requests, any two afternoons differ significantly by
//! half a percent. Both are meant to err on the side of silence, since a check that cries wolf is switched off.
//!
//! The interval is wider than that of a single figure, on purpose. Drawing from three repetitions makes them look more
//! alike than they are, so the spread of the rounds is corrected for their number, and Student's t stands where a
//! normal distribution would pretend that three are many. A single repetition says nothing at all about how two runs of
//! the same thing differ; then only the floor can help, and it is higher. And a table of hundreds of figures has some whose
//! three repetitions agree by mere luck: no figure is believed to be much steadier than others of its kind.

use model::Class;

use crate::Archive;
use crate::bootstrap::{Estimate, ROUNDS, repetitions};
use crate::figures::{best_effort, latency};
use crate::iteration::Checks;
use crate::mode::Name;
use crate::passage::{self, Passage};
use crate::quantile::rank;
use crate::record::{Scenario, Tenant};

/// The smallest change that is worth a word.
pub const FLOOR: f64 = 0.02;
/// The same where a side has one repetition only.
pub const FLOOR_OF_ONE: f64 = 0.10;
/// How sure the interval of a ratio is.
pub const CONFIDENCE: f64 = 0.99;

/// Figures that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// From arrival, in nanoseconds.
    P50,
    P99,
    Attainment,
    /// Iterations per second that were right.
    Rate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Better,
    Worse,
    Unchanged,
}

/// One figure of one tenant in one mode, before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub suite: String,
    pub scenario: String,
    pub mode: String,
    pub tenant: String,
    pub figure: Figure,
    pub before: f64,
    pub after: f64,
    /// After over before.
    pub ratio: Estimate,
    pub verdict: Verdict,
}

/// Two archives side by side.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    pub changes: Vec<Change>,
    /// `suite/scenario, mode, tenant` that only one of them has.
    pub only_before: Vec<String>,
    pub only_after: Vec<String>,
    /// Scenarios of one name that are not the same scenario; they are not compared.
    pub redefined: Vec<String>,
    pub remarks: Vec<String>,
}

impl Comparison {
    pub fn of(before: &Archive, after: &Archive) -> Comparison {
        let mut comparison = Comparison { remarks: devices(before, after), ..Comparison::default() };
        let (one, two) = (Side::new(before), Side::new(after));
        let mut ratios = Vec::new();
        for scenario in &before.scenarios {
            match after.scenario(&scenario.suite, &scenario.name) {
                Some(other) if other.digest != scenario.digest => {
                    comparison.redefined.push(format!("{}/{}", scenario.suite, scenario.name));
                }
                _ => ratios.extend(comparison.scenario(scenario, &one, &two)),
            }
        }
        let known = |scenario: &&Scenario| before.scenario(&scenario.suite, &scenario.name).is_none();
        for scenario in after.scenarios.iter().filter(known) {
            ratios.extend(comparison.scenario(scenario, &one, &two));
        }
        comparison.judge(&ratios);
        comparison
    }

    pub fn count(&self, verdict: Verdict) -> usize {
        self.changes.iter().filter(|change| change.verdict == verdict).count()
    }

    /// Puts down the changes of one scenario, and gives the ratio of each.
    fn scenario(&mut self, scenario: &Scenario, before: &Side<'_>, after: &Side<'_>) -> Vec<Ratio> {
        let mut ratios = Vec::new();
        for mode in modes(scenario, [before.archive, after.archive]) {
            for tenant in &scenario.tenants {
                let name = || format!("{}/{}, {mode}, {}", scenario.suite, scenario.name, tenant.name);
                let one = before.passages(scenario, &mode, tenant);
                let two = after.passages(scenario, &mode, tenant);
                match (one.is_empty(), two.is_empty()) {
                    (true, true) => {}
                    (false, true) => self.only_before.push(name()),
                    (true, false) => self.only_after.push(name()),
                    (false, false) if one[0].window() != two[0].window() => {
                        self.remarks.push(format!("{}: runs of different lengths are not compared", name()));
                    }
                    (false, false) => {
                        let one = before.drawn(scenario, tenant, &one);
                        let two = after.drawn(scenario, tenant, &two);
                        for (change, ratio) in changes(scenario, &mode, &tenant.name, &one, &two) {
                            self.changes.push(change);
                            ratios.push(ratio);
                        }
                    }
                }
            }
        }
        ratios
    }

    /// Gives every change its interval and its verdict, once all spreads are known.
    fn judge(&mut self, ratios: &[Ratio]) {
        for figure in [Figure::P50, Figure::P99, Figure::Attainment, Figure::Rate] {
            let of_kind = |change: &Change| change.figure == figure;
            let kind = || self.changes.iter().zip(ratios).filter(|(change, _)| of_kind(change));
            let usual = usual(kind().map(|(_, ratio)| ratio));
            for (change, ratio) in self.changes.iter_mut().zip(ratios).filter(|(change, _)| of_kind(change)) {
                change.ratio = ratio.interval(usual);
                change.verdict = ratio.verdict(figure, &change.ratio);
            }
        }
    }
}

impl Figure {
    fn more_is_better(self) -> bool {
        matches!(self, Figure::Attainment | Figure::Rate)
    }
}

/// One of the two archives.
struct Side<'a> {
    archive: &'a Archive,
    checks: Checks,
}

/// One figure with its rounds.
struct Drawn {
    figure: Figure,
    repetitions: usize,
    value: f64,
    rounds: Vec<f64>,
}

impl<'a> Side<'a> {
    fn new(archive: &'a Archive) -> Side<'a> {
        Side { archive, checks: Checks::of(archive) }
    }

    fn passages(&self, scenario: &Scenario, mode: &str, tenant: &Tenant) -> Vec<Passage<'a>> {
        passage::of(self.archive, scenario, mode, &tenant.name)
    }

    fn drawn(&self, scenario: &Scenario, tenant: &Tenant, passages: &[Passage<'_>]) -> Vec<Drawn> {
        let stream = format!("{}/{}", scenario.suite, scenario.name);
        let of = |figure, value, rounds| Drawn { figure, repetitions: passages.len(), value, rounds };
        match tenant.class {
            Class::Latency => {
                let alone = passage::alone(self.archive, scenario, &tenant.name, passages);
                let limits = latency::limits(tenant, &alone);
                let requests = latency::all(passages);
                let (measured, rounds) = latency::drawn(&stream, &tenant.name, &requests, limits.as_ref());
                let mut drawn = vec![
                    of(Figure::P50, measured.p50, rounds.iter().map(|round| round.p50).collect()),
                    of(Figure::P99, measured.p99, rounds.iter().map(|round| round.p99).collect()),
                ];
                let attainments = || rounds.iter().map(|round| round.attainment).collect();
                drawn.extend(limits.map(|_| of(Figure::Attainment, measured.attainment, attainments())));
                drawn
            }
            Class::BestEffort => {
                let rates = best_effort::rates(passages, &self.checks);
                let round = |n| rates.redrawn(n, &tenant.name, &repetitions(n, &stream, passages.len()));
                vec![of(Figure::Rate, rates.measured(), (0..ROUNDS).map(round).collect())]
            }
        }
    }
}

/// The figures that both sides have of a tenant, not yet judged.
fn changes(
    scenario: &Scenario,
    mode: &str,
    tenant: &str,
    before: &[Drawn],
    after: &[Drawn],
) -> Vec<(Change, Ratio)> {
    let change = |before: &Drawn| {
        let after = after.iter().find(|after| after.figure == before.figure)?;
        let ratio = Ratio::new(before, after)?;
        let change = Change {
            suite: scenario.suite.clone(),
            scenario: scenario.name.clone(),
            mode: mode.to_owned(),
            tenant: tenant.to_owned(),
            figure: before.figure,
            before: before.value,
            after: after.value,
            ratio: ratio.interval(0.0),
            verdict: Verdict::Unchanged,
        };
        Some((change, ratio))
    };
    before.iter().filter_map(change).collect()
}

/// A ratio on its way to an interval.
struct Ratio {
    value: f64,
    rounds: Vec<f64>,
    /// How much its logarithm varies; `None` in overload and at a standstill, which have no logarithm.
    spread: Option<f64>,
    /// Of both sides.
    repetitions: (usize, usize),
}

impl Ratio {
    /// `None` where there is nothing to compare: no requests, or nothing done on either side.
    fn new(before: &Drawn, after: &Drawn) -> Option<Ratio> {
        let over = |after: f64, before: f64| if after == before { 1.0 } else { after / before };
        let value = over(after.value, before.value);
        let pairs = after.rounds.iter().zip(&before.rounds);
        let rounds: Vec<f64> = pairs.map(|(after, before)| over(*after, *before)).collect();
        let usable = |ratio: f64| ratio.is_finite() && ratio > 0.0;
        let spread = (usable(value) && rounds.iter().copied().all(usable)).then(|| spread(&rounds));
        let repetitions = (before.repetitions, after.repetitions);
        (!value.is_nan()).then_some(Ratio { value, rounds, spread, repetitions })
    }

    /// `usual` is the spread of figures of this kind.
    fn interval(&self, usual: f64) -> Estimate {
        let Some(spread) = self.spread else { return Estimate::at(CONFIDENCE, self.value, &self.rounds) };
        let (one, two) = self.repetitions;
        let spread = spread.max(((spread * spread + usual * usual) / 2.0).sqrt());
        let reach = spread * widening(one).max(widening(two)) * student(one + two);
        Estimate { value: self.value, low: self.value * (-reach).exp(), high: self.value * reach.exp() }
    }

    fn verdict(&self, figure: Figure, interval: &Estimate) -> Verdict {
        let floor = if self.repetitions.0.min(self.repetitions.1) > 1 { FLOOR } else { FLOOR_OF_ONE };
        if !interval.excludes(1.0) || (self.value - 1.0).abs() <= floor {
            return Verdict::Unchanged;
        }
        if (self.value > 1.0) == figure.more_is_better() { Verdict::Better } else { Verdict::Worse }
    }
}

/// The median spread of the ratios of one figure.
fn usual<'a>(ratios: impl Iterator<Item = &'a Ratio>) -> f64 {
    let mut spreads: Vec<f64> = ratios.filter_map(|ratio| ratio.spread).collect();
    spreads.sort_unstable_by(f64::total_cmp);
    rank(spreads.len(), 0.5).map_or(0.0, |place| spreads[place])
}

/// The standard deviation of the logarithms.
fn spread(rounds: &[f64]) -> f64 {
    let logs: Vec<f64> = rounds.iter().map(|round| round.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / logs.len() as f64).sqrt()
}

/// Draws out of `n` values vary by less than the values do, by the square root of (n-1)/n.
fn widening(repetitions: usize) -> f64 {
    match repetitions {
        0 | 1 => 1.0,
        n => (n as f64 / (n - 1) as f64).sqrt(),
    }
}

/// The 99.5% quantile of Student's t for the repetitions of both sides together. With one on each side nothing is known
/// about runs, only about requests, of which there are many.
fn student(repetitions: usize) -> f64 {
    const TABLE: [f64; 11] = [2.58, 63.66, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25, 3.17];
    TABLE.get(repetitions.saturating_sub(2)).copied().unwrap_or(3.17)
}

fn modes(scenario: &Scenario, archives: [&Archive; 2]) -> Vec<String> {
    let mut modes: Vec<String> = Vec::new();
    for run in archives.into_iter().flat_map(|archive| &archive.runs) {
        if run.is_of(&scenario.suite, &scenario.name) && !modes.contains(&run.mode) {
            modes.push(run.mode.clone());
        }
    }
    modes.sort_by(|a, b| Name::of(a).rank().cmp(&Name::of(b).rank()));
    modes
}

fn devices(before: &Archive, after: &Archive) -> Vec<String> {
    let of = |archive: &Archive| {
        archive.machines.last().map(|machine| {
            let device = &machine.device;
            format!("{} ({}), driver {}, {}", device.name, device.kind, device.driver, machine.host.cpu)
        })
    };
    match (of(before), of(after)) {
        (Some(one), Some(two)) if one != two => {
            vec![format!("measured on different machines: {one} before, {two} after")]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
