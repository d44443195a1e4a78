//! A suite in a few lines: what each mode and policy costs and gives over all its scenarios, and what ebb would in the
//! domain that suits each scenario better.
//!
//! Which domain that is, `choice` says. It is chosen once for each policy, and once among all policies and domains, and
//! every figure is then taken from it: to choose again for each figure would be to measure something that nobody can
//! have. Scenarios that were measured in one domain only are no choice, and left out.

use results::figures::Told;
use results::mode::Name;
use results::record::ALONE;

use crate::choice::ranked;
use crate::numbers::{NONE, OVERLOAD, attained, count, finite, grouped, many, percent, time, times};
use crate::palette;
use crate::summary::{Spread, Summary, pairs};
use crate::view::{Scenario, View, modes_of};

/// Text in rows and columns, for whatever shows it.
pub struct Table {
    pub title: String,
    pub heads: Vec<&'static str>,
    /// How many columns are words; figures follow.
    pub words: usize,
    pub rows: Vec<Vec<String>>,
}

pub const FIGURES: [&str; 11] = [
    "cases",
    "p99 over alone, mean",
    "worst",
    "overload",
    "SLO points lost, mean",
    "worst",
    "of ideal, mean",
    "worst",
    "of left, mean",
    "worst",
    "wrong",
];
/// Only where some tenant told ebb an SLO.
const TOLD: [&str; 2] = ["told SLO points lost, mean", "worst"];

/// A line for each mode of a suite, and for the better domain under each policy; then the same over all pairs.
pub fn suites(view: &View) -> Vec<Table> {
    groups(view).into_iter().map(|(title, scenarios)| table(title, &scenarios)).collect()
}

/// What is summed up together: each suite, and all pairs where they are not the only suite there is.
pub fn groups<'a>(view: &View<'a>) -> Vec<(String, Vec<Scenario<'a>>)> {
    let mut groups: Vec<_> =
        view.suites.iter().map(|suite| (suite.name.to_owned(), suite.scenarios.clone())).collect();
    let pairs: Vec<Scenario<'a>> = pairs(view).into_iter().copied().collect();
    let is_a_suite = groups.len() == 1 && pairs.len() == groups[0].1.len();
    if !is_a_suite && !pairs.is_empty() {
        let title = format!("All {} of a latency and a best-effort tenant", many(pairs.len(), "pair"));
        groups.push((title, pairs));
    }
    groups
}

fn table(title: String, scenarios: &[Scenario<'_>]) -> Table {
    let mut lines: Vec<(String, Summary)> = modes_of(scenarios)
        .into_iter()
        .filter(|mode| *mode != ALONE)
        .map(|mode| (palette::label(mode).into_owned(), Summary::of(scenarios, mode)))
        .collect();
    lines.extend(in_better_domains(scenarios));
    let told = lines.iter().any(|(_, summary)| summary.told_lost.is_some());
    let heads = ["mode"].into_iter().chain(FIGURES).chain(TOLD.into_iter().filter(|_| told));
    let rows = lines.iter().map(|(name, summary)| {
        [name.clone()].into_iter().chain(figures(summary)).chain(told_figures(summary, told)).collect()
    });
    Table { title, heads: heads.collect(), words: 1, rows: rows.collect() }
}

/// The same for the better domains alone; nothing where there was no choice.
pub fn in_better_domains<'s, 'a: 's>(scenarios: &'s [Scenario<'a>]) -> Vec<(String, Summary)> {
    let line = |name: String, choose: &dyn Fn(&'s Scenario<'a>) -> Option<Choice<'s, 'a>>| {
        let chosen = scenarios.iter().filter_map(choose);
        let summary = Summary::over(chosen.map(|choice| (choice.scenario, choice.better)));
        (!summary.is_empty()).then_some((name, summary))
    };
    let variants = variants(scenarios);
    let under = |variant: &Variant| {
        line(format!("ebb, better domain{}", variant.label()), &|scenario| Choice::under(scenario, *variant))
    };
    let mut lines: Vec<_> = variants.iter().filter_map(under).collect();
    if variants.len() > 1 {
        lines.extend(line("ebb, best policy and domain".to_owned(), &Choice::of_all));
    }
    lines
}

/// Which domain was the better one for each scenario under each policy, and which policy in which domain the best;
/// nothing where there was no choice.
pub fn choices(view: &View) -> Option<Table> {
    let mut rows = Vec::new();
    for suite in &view.suites {
        for scenario in &suite.scenarios {
            let variants = variants([scenario]);
            let under = variants.iter().filter_map(|variant| Choice::under(scenario, *variant));
            rows.extend(under.map(|choice| choice.cells("")));
            let of_all = Choice::of_all(scenario).filter(|_| variants.len() > 1);
            rows.extend(of_all.map(|choice| choice.cells("best: ")));
        }
    }
    let heads = vec![
        "scenario",
        "policy",
        "better domain",
        "p99 over alone",
        "SLO points lost",
        "of ideal",
        "of left",
        "in the other: p99 over alone",
        "of ideal",
        "of left",
    ];
    let title = "The better domain for each scenario".to_owned();
    (!rows.is_empty()).then_some(Table { title, heads, words: 3, rows })
}

/// How ebb was run, but for its domain.
#[derive(Clone, Copy, PartialEq)]
struct Variant {
    policy: Option<model::Kind>,
    slo: Option<results::mode::Factor>,
}

impl Variant {
    fn of(mode: &str) -> Variant {
        let Name { policy, slo, .. } = Name::of(mode);
        Variant { policy, slo }
    }

    fn mode(self, base: &'static str) -> String {
        Name { base, policy: self.policy, slo: self.slo }.to_string()
    }

    /// What stands behind `ebb` in the label of a mode.
    fn label(self) -> String {
        let label = palette::label(&self.mode(DOMAINS[0])).into_owned();
        label.strip_prefix(palette::of(DOMAINS[0]).label).unwrap_or_default().to_owned()
    }
}

const DOMAINS: [&str; 2] = ["ebb-isolated", "ebb-shared"];

fn is_in_a_domain(mode: &str) -> bool {
    DOMAINS.contains(&Name::of(mode).base)
}

/// In the order of the modes.
fn variants<'s, 'a: 's>(scenarios: impl IntoIterator<Item = &'s Scenario<'a>>) -> Vec<Variant> {
    let mut variants: Vec<Variant> = Vec::new();
    for mode in modes_of(scenarios) {
        let variant = Variant::of(mode);
        if is_in_a_domain(mode) && !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    variants
}

struct Choice<'s, 'a> {
    scenario: &'s Scenario<'a>,
    better: &'a str,
    /// The same in the other domain, where the choice was between the two.
    other: Option<&'a str>,
}

impl<'s, 'a> Choice<'s, 'a> {
    /// Between the domains under one policy.
    fn under(scenario: &'s Scenario<'a>, variant: Variant) -> Option<Choice<'s, 'a>> {
        let modes = DOMAINS.into_iter().filter_map(|domain| scenario.mode(&variant.mode(domain)));
        let [better, other] = ranked(scenario, modes)[..] else { return None };
        Some(Choice { scenario, better: &better.mode, other: Some(&other.mode) })
    }

    /// Among all policies in both domains.
    fn of_all(scenario: &'s Scenario<'a>) -> Option<Choice<'s, 'a>> {
        let ranked = ranked(scenario, scenario.modes().filter(|mode| is_in_a_domain(&mode.mode)));
        let best = ranked.first()?;
        let is_there = |domain| ranked.iter().any(|mode| Name::of(&mode.mode).base == domain);
        let choice = Choice { scenario, better: &best.mode, other: None };
        DOMAINS.into_iter().all(is_there).then_some(choice)
    }

    fn cells(&self, before_policy: &str) -> Vec<String> {
        let record = self.scenario.record;
        let of = |mode: &str| figures(&Summary::of([self.scenario], mode));
        let [_, _, cost, _, _, lost, _, gain, _, left, _] = of(self.better);
        let in_the_other = self.other.map_or([NONE; 3].map(str::to_owned), |other| {
            let [_, _, cost, _, _, _, _, gain, _, left, _] = of(other);
            [cost, gain, left]
        });
        let domain = Name::of(self.better).base.trim_start_matches("ebb-");
        let label = Variant::of(self.better).label();
        let policy = if label.is_empty() { "as it comes" } else { label.trim_start_matches(": ") };
        let place = format!("{}/{}", record.suite, record.name);
        let policy = format!("{before_policy}{policy}");
        let here = [place, policy, domain.to_owned(), cost, lost, gain, left];
        here.into_iter().chain(in_the_other).collect()
    }
}

/// In the order of [`FIGURES`].
pub fn figures(summary: &Summary) -> [String; 11] {
    let [mean, worst] = both(summary.over_alone, times3);
    // What has no end is in no mean, and worse than whatever has one.
    let worst = if summary.overloaded > 0 { OVERLOAD.to_owned() } else { worst };
    let [lost, most] = both(summary.lost, in_points);
    let [ideal, least_ideal] = both(summary.of_ideal, percent);
    let [left, least_left] = both(summary.of_left, percent);
    let (cases, overloaded, wrong) = (count(summary.cases), count(summary.overloaded), count(summary.wrong));
    [cases, mean, worst, overloaded, lost, most, ideal, least_ideal, left, least_left, wrong]
}

fn told_figures(summary: &Summary, wanted: bool) -> Vec<String> {
    if wanted { both(summary.told_lost, in_points).to_vec() } else { Vec::new() }
}

fn both(spread: Option<Spread>, show: fn(f64) -> String) -> [String; 2] {
    spread.map_or([NONE.to_owned(), NONE.to_owned()], |Spread { mean, worst, .. }| [show(mean), show(worst)])
}

fn in_points(share: f64) -> String {
    grouped(share * 100.0, 2)
}

/// The bars are a few hundredths from one.
fn times3(ratio: f64) -> String {
    if ratio < 2.0 { format!("{}×", grouped(ratio, 3)) } else { finite(ratio, times) }
}

/// How the SLOs were kept in a scenario that its tenants told ebb: mode and sentence.
pub fn told<'a>(scenario: &Scenario<'a>) -> Vec<(&'a str, String)> {
    let each = scenario.modes().flat_map(|mode| mode.latency.iter().map(move |tenant| (mode, tenant)));
    let said = each.filter_map(|(mode, tenant)| {
        let Told { slo, kept, alone } = tenant.told?;
        let (kept, alone) = (attained(kept), attained(alone));
        let slo = time(slo.as_micros_f64());
        Some((
            mode.mode.as_str(),
            format!(
                "{} told ebb an SLO of {slo}: kept in {kept} of requests, alone in {alone}",
                tenant.tenant
            ),
        ))
    });
    said.collect()
}

/// For a terminal.
pub fn text(view: &View) -> String {
    let mut text = String::new();
    for table in suites(view).into_iter().chain(choices(view)) {
        text += &aligned(&table);
        text.push('\n');
    }
    text
}

fn aligned(table: &Table) -> String {
    let columns: Vec<usize> = (0..table.heads.len())
        .map(|column| {
            let cells = table.rows.iter().map(|row| row[column].chars().count());
            cells.chain([table.heads[column].chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let line = |cells: &[&str]| {
        let padded = cells.iter().zip(&columns).enumerate().map(|(column, (cell, &wide))| {
            if column < table.words { format!("{cell:<wide$}") } else { format!("{cell:>wide$}") }
        });
        format!("  {}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    let rows = table.rows.iter().map(|row| line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    format!("{}\n{}{}", table.title, line(&table.heads), rows.collect::<String>())
}
