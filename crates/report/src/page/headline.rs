//! What everybody wants to know first: what each mode costs and gives, and whether our bars are met.

use maud::{Markup, html};
use results::record::ALONE;

use super::rows;
use crate::bars::{self, Verdict, bars};
use crate::charts::scatter::{Corner, Dot, scatter};
use crate::numbers::{NONE, OVERLOAD, count, finite, grouped, many, percent, points, times};
use crate::overview::{self, Table};
use crate::palette;
use crate::summary::{Spread, Summary, pairs};
use crate::view::{Scenario, View, modes_of, overhead, samples, shares};

/// Our modes that were measured.
fn ours<'a>(view: &View<'a>) -> Vec<&'a str> {
    let modes = modes_of(view.scenarios());
    modes.into_iter().filter(|mode| palette::of(mode).ours).collect()
}

/// Four numbers, for a reader of five seconds.
pub fn cards(view: &View) -> Markup {
    let pairs = pairs(view);
    html! {
        @for mode in ours(view) {
            @let summary = Summary::of(pairs.iter().copied(), mode);
            @if !summary.is_empty() {
                ul.cards aria-label={ "In short: " (palette::label(mode)) } {
                    (in_short(mode, &summary))
                }
            }
        }
    }
}

fn in_short(mode: &str, summary: &Summary) -> Markup {
    let mean = |spread: Option<Spread>, show: fn(f64) -> String| {
        spread.map_or(NONE.into(), |found| show(found.mean))
    };
    let worst = |spread: Option<Spread>, show: fn(f64) -> String| {
        spread.map_or(String::new(), |found| format!("worst {}", show(found.worst)))
    };
    let against: fn(f64) -> String = |lost| points(-lost);
    let overhead =
        format!("p99 over alone with {}, median of {}", palette::label(mode), many(summary.compared, "pair"));
    let checked = format!("wrong results of {}", count(summary.requests + summary.iterations));
    let attained = "points of SLO attainment against alone, mean";
    html! {
        (card(overhead_in_short(summary), &overhead, overload_or_worst(summary)))
        (card(mean(summary.of_ideal, percent), "best-effort throughput of ideal, mean", worst(summary.of_ideal, percent)))
        (card(mean(summary.lost, against), attained, worst(summary.lost, against)))
        (card(count(summary.wrong), &checked, String::new()))
    }
}

fn overhead_in_short(summary: &Summary) -> String {
    summary.median.map_or(NONE.into(), |ratio| finite(ratio, times))
}

fn overload_or_worst(summary: &Summary) -> String {
    match (summary.overloaded, summary.over_alone) {
        (0, Some(ratio)) => format!("worst {}", times(ratio.worst)),
        (some, _) => format!("{} overloaded", count(some)),
    }
}

fn card(figure: String, what: &str, more: String) -> Markup {
    html! { li { b { (figure) } span { (what) } @if !more.is_empty() { span { (more) } } } }
}

pub fn section(view: &View) -> Markup {
    html! {
        section id="headline" {
            h2 { "Headline" }
            p.note {
                "Over all latency tenants of a suite's scenarios: p99 from arrival over the tenant's p99 "
                "alone, and SLO "
                "attainment lost against alone; over its scenarios: best-effort throughput of the ideal. A case "
                "whose p99 is not finite is an overload, and in the median infinitely slow."
            }
            (table(view))
            (better_domains(view))
        }
        section id="bars" {
            h2 { "Our bars" }
            p.note {
                "Pairs: " (many(pairs(view).len(), "scenario")) " of one latency tenant beside one best-effort "
                "tenant; those of "
                "bare kernels are instruments and left out. "
                @if let Some(caveat) = bars::caveat(view.archive) { (caveat) }
            }
            @if ours(view).is_empty() { p { "None of ebb's modes is in these results." } }
            @for mode in ours(view) { (bars_table(view, mode)) }
        }
        section id="trade" {
            h2 { "Latency against throughput" }
            (trade(view))
        }
    }
}

fn table(view: &View) -> Markup {
    html! {
        div.scroll { table.sortable {
            thead {
                tr {
                    (rows::heads(&["suite"])) th.left scope="col" { "mode" }
                    (rows::heads(&["cases", "p99 over alone, median", "worst", "overload"]))
                    (rows::heads(&["SLO points lost, mean", "worst", "best-effort of ideal, mean", "worst"]))
                    (rows::heads(&["of left, mean", "worst", "wrong results"]))
                }
            }
            tbody {
                @for suite in &view.suites {
                    @let modes = modes_of(&suite.scenarios).into_iter().filter(|mode| *mode != ALONE);
                    @for (index, mode) in modes.enumerate() {
                        (line(suite.name, mode, &Summary::of(&suite.scenarios, mode), index == 0))
                    }
                }
            }
        } }
    }
}

/// Where ebb was measured in both domains: what it costs and gives in the better one, and which that is.
fn better_domains(view: &View) -> Markup {
    let mut lines: Vec<Vec<String>> = Vec::new();
    for (group, scenarios) in overview::groups(view) {
        for (name, summary) in overview::in_better_domains(&scenarios) {
            lines.push([group.clone(), name].into_iter().chain(overview::figures(&summary)).collect());
        }
    }
    let heads = ["suite", "mode"].into_iter().chain(overview::FIGURES).collect();
    let title = "In the better domain of each scenario".to_owned();
    let lines = Table { title, heads, words: 2, rows: lines };
    html! {
        @if let Some(choices) = overview::choices(view) {
            h3 { (lines.title) }
            p.note {
                "Of the domains in which requests are as if alone (no more than one point of SLO attainment lost, p99 at most 1.05 "
                "times that alone), the one that gives best-effort work more of its ideal; where there is none, the one with less p99 over alone. It is chosen once "
                "for each scenario and policy, and once among all policies, and all figures are of that one."
            }
            (plain_table(&lines))
            details { summary { (choices.title) } (plain_table(&choices)) }
        }
    }
}

fn plain_table(table: &Table) -> Markup {
    let left = |column: usize| column > 0 && column < table.words;
    html! {
        div.scroll { table {
            thead { tr { @for (column, head) in table.heads.iter().enumerate() {
                th.left[left(column)] scope="col" { (head) }
            } } }
            tbody { @for row in &table.rows {
                tr { @for (column, cell) in row.iter().enumerate() { td.left[left(column)] { (cell) } } }
            } }
        } }
    }
}

fn line(suite: &str, mode: &str, summary: &Summary, first: bool) -> Markup {
    let spread = |spread: Option<Spread>, show: fn(f64) -> String, pick: fn(Spread) -> f64| match spread {
        Some(found) => {
            rows::cell(&show(pick(found)), Some(pick(found)), Some(format!("over {}", count(found.count))))
        }
        None => rows::none(),
    };
    let lost = |share: f64| grouped(share * 100.0, 2);
    let finite_one = summary.over_alone.map(|ratio| format!("worst finite one {}", times(ratio.worst)));
    html! {
        tr class=(rows::class(mode, first)) {
            td { (suite) }
            td.left { (palette::tag(mode)) }
            (rows::number(summary.cases))
            @match summary.median {
                Some(ratio) => (rows::cell(&finite(ratio, times), Some(ratio), Some(format!("over {}", count(summary.compared))))),
                None => (rows::none()),
            }
            @if summary.overloaded > 0 {
                (rows::cell(OVERLOAD, Some(f64::INFINITY), finite_one))
            } @else { (spread(summary.over_alone, times, |found| found.worst)) }
            (rows::blemish(summary.overloaded))
            (spread(summary.lost, lost, |found| found.mean))
            (spread(summary.lost, lost, |found| found.worst))
            (spread(summary.of_ideal, percent, |found| found.mean))
            (spread(summary.of_ideal, percent, |found| found.worst))
            (spread(summary.of_left, percent, |found| found.mean))
            (spread(summary.of_left, percent, |found| found.worst))
            (rows::blemish(summary.wrong))
        }
    }
}

fn bars_table(view: &View, mode: &str) -> Markup {
    html! {
        h3 { (palette::tag(mode)) }
        div.scroll { table {
            thead { tr {
                th scope="col" { "figure" }
                th.left scope="col" { "best known" }
                th.left scope="col" { "our bar" }
                th.left scope="col" { "measured" }
                th.left scope="col" { "" }
            } }
            tbody { @for bar in bars(view, mode) {
                tr {
                    td.wrap { (bar.figure) }
                    td.left.wrap { (bar.best_known) }
                    td.left { (bar.bar) }
                    td.left.wrap { (bar.measured) }
                    td.left { (verdict(bar.verdict)) }
                }
            } }
        } }
    }
}

fn verdict(verdict: Verdict) -> Markup {
    html! {
        span.verdict.met[verdict == Verdict::Met].missed[verdict == Verdict::Missed] { (verdict.name()) }
    }
}

/// A dot for each scenario and mode that shares.
fn trade(view: &View) -> Markup {
    let all = view.scenarios().flat_map(|scenario| scenario.modes().map(move |mode| (scenario, mode)));
    let dots: Vec<Dot> = all
        .filter(|(_, mode)| shares(&mode.mode))
        .filter_map(|(scenario, mode)| {
            let (of_ideal, ratio) = (mode.together.of_ideal?, overhead(mode)?);
            let tip = format!(
                "{}\n{}\np99 {} of alone ({})\nbest-effort {} of ideal ({})",
                palette::label(&mode.mode),
                scenario.record.title,
                finite(ratio.value, times),
                rows::certainty(ratio, times, &samples(mode)),
                percent(of_ideal.value),
                rows::certainty(of_ideal, percent, &samples(mode)),
            );
            let over_alone = Some(ratio.value).filter(|ratio| ratio.is_finite());
            Some(Dot { mode: &mode.mode, of_ideal: of_ideal.value, over_alone, tip })
        })
        .collect();
    let corner = Corner { of_ideal: bars::OF_IDEAL, over_alone: bars::OVER_ALONE.1 };
    html! {
        @if dots.is_empty() {
            p { "No scenario has both a latency tenant's p99 alone and an ideal for best-effort work." }
        } @else {
            figure {
                (scatter("p99 over alone against best-effort throughput of ideal", &dots, corner))
                figcaption {
                    "One mark for each scenario and mode, " (count(dots.len())) " in all; of several latency "
                    "tenants the one "
                    "that fared worst. The marked corner is where our bars are met. Marks in the band on top "
                    "have no finite p99."
                }
            }
        }
    }
}

/// For the summaries of folded scenarios: each sharing mode's mark and ratio.
pub fn brief(scenario: &Scenario) -> Markup {
    html! {
        span.brief { @for mode in scenario.modes().filter(|mode| shares(&mode.mode)) {
            @if let Some(ratio) = overhead(mode) {
                span.tag title={ (palette::label(&mode.mode)) ": p99 over alone" } {
                    (palette::sign(&mode.mode))
                    span { (finite(ratio.value, times)) }
                }
            }
        } }
    }
}
