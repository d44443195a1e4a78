//! What everybody wants to know first: what each mode costs and gives, and whether our bars are met.

use maud::{Markup, html};
use results::record::ALONE;

use super::rows;
use crate::bars::{self, Verdict, bars};
use crate::charts::scatter::{Corner, Dot, scatter};
use crate::numbers::{NONE, OVERLOAD, count, finite, grouped, percent, points, times};
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
                    (card(overhead_in_short(&summary), &format!("p99 over alone with {}, mean of {} pairs", palette::label(mode), count(summary.cases)), worst(&summary)))
                    (card(summary.of_ideal.map_or(NONE.into(), |share| percent(share.mean)), "best-effort throughput of ideal, mean", summary.of_ideal.map_or(String::new(), |share| format!("worst {}", percent(share.worst)))))
                    (card(summary.lost.map_or(NONE.into(), |lost| points(-lost.mean)), "points of SLO attainment against alone, mean", summary.lost.map_or(String::new(), |lost| format!("worst {}", points(-lost.worst)))))
                    (card(count(summary.wrong), &format!("wrong results of {}", count(summary.requests + summary.iterations)), String::new()))
                }
            }
        }
    }
}

fn overhead_in_short(summary: &Summary) -> String {
    summary.over_alone.map_or(OVERLOAD.into(), |ratio| times(ratio.mean))
}

fn worst(summary: &Summary) -> String {
    match (summary.overloaded, summary.over_alone) {
        (0, Some(ratio)) => format!("worst {}", times(ratio.worst)),
        (some, _) => format!("{} overloaded, in no mean", count(some)),
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
                "Over all latency tenants of a suite's scenarios: p99 from arrival over the tenant's p99 alone, and SLO attainment lost against alone; "
                "over its scenarios: best-effort throughput of the ideal. Cases without a finite p99 are counted as overload and are in no mean."
            }
            (table(view))
        }
        section id="bars" {
            h2 { "Our bars" }
            p.note {
                "Pairs are the " (count(pairs(view).len())) " scenarios of one latency tenant beside one best-effort tenant; those of bare kernels are instruments and left out. "
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
                    th scope="col" { "suite" }
                    th.left scope="col" { "mode" }
                    th scope="col" { "cases" }
                    th scope="col" { "p99 over alone, mean" }
                    th scope="col" { "worst" }
                    th scope="col" { "overload" }
                    th scope="col" { "SLO points lost, mean" }
                    th scope="col" { "worst" }
                    th scope="col" { "best-effort of ideal, mean" }
                    th scope="col" { "worst" }
                    th scope="col" { "wrong results" }
                }
            }
            tbody {
                @for suite in &view.suites {
                    @for (index, mode) in modes_of(&suite.scenarios).into_iter().filter(|mode| *mode != ALONE).enumerate() {
                        (line(suite.name, mode, &Summary::of(&suite.scenarios, mode), index == 0))
                    }
                }
            }
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
    html! {
        tr class=(rows::class(mode, first)) {
            td { (suite) }
            td.left { (palette::tag(mode)) }
            (rows::number(summary.cases))
            (spread(summary.over_alone, times, |found| found.mean))
            @if summary.overloaded > 0 {
                (rows::cell(OVERLOAD, Some(f64::INFINITY), summary.over_alone.map(|ratio| format!("worst finite one {}", times(ratio.worst)))))
            } @else { (spread(summary.over_alone, times, |found| found.worst)) }
            (rows::blemish(summary.overloaded))
            (spread(summary.lost, lost, |found| found.mean))
            (spread(summary.lost, lost, |found| found.worst))
            (spread(summary.of_ideal, percent, |found| found.mean))
            (spread(summary.of_ideal, percent, |found| found.worst))
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
                    td.left { span.verdict.met[bar.verdict == Verdict::Met].missed[bar.verdict == Verdict::Missed] { (bar.verdict.name()) } }
                }
            } }
        } }
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
        @if dots.is_empty() { p { "No scenario has both a latency tenant's p99 alone and an ideal for best-effort work." } } @else {
            figure {
                (scatter("p99 over alone against best-effort throughput of ideal", &dots, corner))
                figcaption {
                    "One mark for each scenario and mode, " (count(dots.len())) " in all; of several latency tenants the one that fared worst. "
                    "The marked corner is where our bars are met. Marks in the band on top have no finite p99."
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
                    svg.{ (palette::class(&mode.mode)) } viewBox="0 0 14 14" width="12" height="12" aria-hidden="true" { (palette::mark(&mode.mode, 7.0, 7.0, 4.4)) }
                    span { (finite(ratio.value, times)) }
                }
            }
        } }
    }
}
