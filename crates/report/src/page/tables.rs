//! The tables of one scenario: a row for each mode and tenant, and what is to be known about them.

use maud::{Markup, html};
use model::Class;
use results::Estimate;
use results::figures::{BestEffort, Latency, ModeFigures};

use super::rows;
use crate::numbers::{attained, count, millis, percent, three, times};
use crate::overview;
use crate::palette;
use crate::view::{Scenario, samples, samples_of};

pub fn tables(scenario: &Scenario) -> Markup {
    html! {
        (latency_table(scenario))
        (token_table(scenario))
        (best_effort_table(scenario))
        (few(scenario))
        (gaps(scenario))
    }
}

/// A row for each mode and latency tenant. A single best-effort tenant stands in the same row.
fn latency_table(scenario: &Scenario) -> Markup {
    let several = scenario.tenants(Class::Latency).count() > 1;
    let single = single_best_effort(scenario);
    html! {
        div.scroll { table.dense {
            thead { tr {
                (rows::heads(&["mode"]))
                @if several { th.left scope="col" { "tenant" } }
                (rows::heads(&["offered", "served", "dropped", "wrong", "p50, ms", "p90", "p99", "p99.9"]))
                (rows::heads(&["p99 over alone", "service p99, ms", "within SLO"]))
                @if single { (rows::heads(&["best-effort, /s"])) }
                (rows::heads(&["best-effort of ideal", "of left"]))
                @if single { (rows::heads(&["wrong results"])) }
                (rows::heads(&["GPU busy"]))
            } }
            tbody { @for mode in scenario.modes() {
                @for (index, tenant) in mode.latency.iter().enumerate() {
                    tr class=(rows::class(&mode.mode, several && index == 0)) {
                        td { (palette::tag(&mode.mode)) }
                        @if several { td.left { (tenant.tenant) } }
                        (latency_cells(mode, tenant))
                        // What all tenants of a mode have together stands in its first row.
                        @if index > 0 { td colspan=(if single { "5" } else { "3" }) {} } @else {
                            @if single { (single_cells(mode)) } @else { (shares_of_best_effort(mode)) }
                            (busy(mode))
                        }
                    }
                }
            } }
        } }
    }
}

fn single_best_effort(scenario: &Scenario) -> bool {
    scenario.tenants(Class::BestEffort).count() == 1 && scenario.tenants(Class::Latency).count() > 0
}

fn latency_cells(mode: &ModeFigures, tenant: &Latency) -> Markup {
    let n = samples_of(tenant.offered, mode);
    // Estimates of quantiles are in nanoseconds.
    let in_micros = |estimate: Estimate| {
        let Estimate { value, low, high } = estimate;
        Estimate { value: value / 1e3, low: low / 1e3, high: high / 1e3 }
    };
    html! {
        (rows::number(tenant.offered))
        (rows::number(tenant.offered - tenant.dropped))
        (rows::blemish(tenant.dropped))
        (rows::blemish(tenant.wrong))
        (rows::estimate(Some(in_micros(tenant.p50)), millis, &n))
        (rows::quantile(tenant.arrival.p90, &n))
        (rows::estimate(Some(in_micros(tenant.p99)), millis, &n))
        (rows::quantile(tenant.arrival.p999, &n))
        (rows::estimate(tenant.overhead, times, &n))
        (rows::quantile(tenant.service.p99, &n))
        (rows::estimate(tenant.attainment, attained, &n))
    }
}

/// Of tenants that answer token by token.
fn token_table(scenario: &Scenario) -> Markup {
    let streaming: Vec<(&ModeFigures, &Latency)> = scenario
        .modes()
        .flat_map(|mode| mode.latency.iter().map(move |tenant| (mode, tenant)))
        .filter(|(_, tenant)| tenant.ttft.is_some())
        .collect();
    let cells = |quantiles: Option<results::Quantiles>, n: &str| {
        let all = quantiles.map_or([None; 4], |found| [found.p50, found.p90, found.p99, found.p999]);
        html! { @for one in all { (rows::quantile(one, n)) } }
    };
    html! {
        @if !streaming.is_empty() { div.scroll { table.dense {
            thead { tr {
                (rows::heads(&["mode"])) th.left scope="col" { "tenant" }
                (rows::heads(&["first token p50, ms", "p90", "p99", "p99.9"]))
                (rows::heads(&["each further token p50, ms", "p90", "p99", "p99.9"]))
            } }
            tbody { @for (mode, tenant) in streaming {
                @let n = samples_of(tenant.offered, mode);
                tr.{ (palette::class(&mode.mode)) } {
                    td { (palette::tag(&mode.mode)) } td.left { (tenant.tenant) }
                    (cells(tenant.ttft, &n)) (cells(tenant.tpot, &n))
                }
            } }
        } } }
    }
}

fn single_cells(mode: &ModeFigures) -> Markup {
    let Some(tenant) = mode.best_effort.first() else {
        return html! { (rows::none()) (rows::none()) (rows::none()) (rows::none()) };
    };
    html! {
        (rows::estimate(Some(tenant.rate), three, &samples(mode)))
        (shares_of_best_effort(mode))
        (wrong_results(tenant))
    }
}

fn shares_of_best_effort(mode: &ModeFigures) -> Markup {
    html! {
        (rows::estimate(mode.together.of_ideal, percent, &samples(mode)))
        (rows::estimate(mode.together.of_left, percent, &samples(mode)))
    }
}

fn wrong_results(tenant: &BestEffort) -> Markup {
    html! {
        td.bad[tenant.wrong > 0] data-v=(tenant.wrong) {
            (count(tenant.wrong))
            @if tenant.unchecked > 0 { small { "+ " (count(tenant.unchecked)) " unchecked" } }
        }
    }
}

fn busy(mode: &ModeFigures) -> Markup {
    match mode.together.busy {
        Some(share) => rows::cell(
            &percent(share),
            Some(share),
            Some("GPU time of all that was finished, by its length alone".into()),
        ),
        None => rows::none(),
    }
}

/// Where there are several best-effort tenants, or no latency tenant, they have a table of their own.
fn best_effort_table(scenario: &Scenario) -> Markup {
    if single_best_effort(scenario) || scenario.tenants(Class::BestEffort).next().is_none() {
        return html! {};
    }
    html! {
        div.scroll { table.dense {
            thead { tr {
                (rows::heads(&["mode"])) th.left scope="col" { "best-effort tenant" }
                (rows::heads(&["iterations/s", "of alone", "wrong results"]))
            } }
            tbody { @for mode in scenario.modes() {
                @for tenant in &mode.best_effort {
                    tr.{ (palette::class(&mode.mode)) } {
                        td { (palette::tag(&mode.mode)) }
                        td.left { (tenant.tenant) }
                        (rows::estimate(Some(tenant.rate), three, &samples(mode)))
                        (rows::estimate(tenant.of_alone, percent, &samples(mode)))
                        (wrong_results(tenant))
                    }
                }
            } }
        } }
    }
}

/// Quantiles that rest on a single request, said before somebody builds on them.
fn few(scenario: &Scenario) -> Markup {
    let least = scenario.modes().flat_map(|mode| &mode.latency).map(|tenant| tenant.offered).min();
    html! {
        @match least {
            Some(0..100) => p.note { "Under a hundred requests: p99 and p99.9 are the slowest one." },
            Some(100..1000) => p.note { "Under a thousand requests: p99.9 is the slowest one." },
            _ => {},
        }
    }
}

/// What tenants told ebb and how that was kept, and modes without all their runs, with why.
fn gaps(scenario: &Scenario) -> Markup {
    html! {
        @for (mode, said) in overview::told(scenario) { p.note.{ (palette::class(mode)) } { (palette::tag(mode)) ": " (said) } }
        @for (mode, reasons) in scenario.missing() {
            p.note { (palette::tag(mode)) " " span.bad { "missing" } ": " (reasons.join("; ")) }
        }
    }
}
