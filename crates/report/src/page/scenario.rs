//! One scenario: what was asked, a table of modes, the tails of its latencies, and a moment of it.

use maud::{Markup, html};
use model::{Class, Nanos};
use results::figures::{BestEffort, Latency, ModeFigures};
use results::iteration::Checks;
use results::record::Tenant;
use results::request::Request;
use results::timeline::{Track, stretch, tracks};
use results::{Estimate, passage, request};

use super::rows;
use crate::charts::tail::{Series, tail};
use crate::charts::timeline::{Lane, Panel, Span, timeline};
use crate::numbers::{attained, count, finite, grouped, millis, percent, three, time, times};
use crate::palette;
use crate::view::{Scenario, samples};

pub fn inside(scenario: &Scenario) -> Markup {
    html! {
        (asked(scenario))
        (latency_table(scenario))
        (token_table(scenario))
        (best_effort_table(scenario))
        (gaps(scenario))
        div.row { @for tenant in scenario.tenants(Class::Latency) { (tails(scenario, tenant)) } }
        (moment(scenario))
    }
}

/// What was asked, in the words of the scenario file.
fn asked(scenario: &Scenario) -> Markup {
    let record = scenario.record;
    html! {
        @if let Some(about) = &record.about { p { (about) } }
        dl.facts {
            @if let Some(source) = &record.source { dt { "source" } dd { (source) } }
            @for tenant in &record.tenants {
                dt { (tenant.name) }
                dd {
                    (tenant.class.to_string()) ", " code { (tenant.workload) }
                    @if tenant.class == Class::Latency {
                        ", " (tenant.arrival)
                        @if let Some(rate) = tenant.rate.filter(|_| !tenant.arrival.contains("/s")) { " (" (three(rate)) " requests/s)" }
                        @if let Some(slo) = slo(scenario, tenant) { ", SLO " (slo) }
                    }
                }
            }
            dt { "time" }
            dd {
                (time(record.duration_us as f64)) " counted after " (time(record.warmup_us as f64)) " of warm-up, "
                (record.repetitions) " repetitions, seed " (record.seed)
                @if record.slowdown > 1.0 { ", all times stretched by " (grouped(record.slowdown, 0)) }
                ", file " code { (record.suite) "/" (record.name) }
            }
        }
    }
}

/// The SLO as it was set, and what it comes to.
fn slo(scenario: &Scenario, tenant: &Tenant) -> Option<String> {
    let slo = &tenant.slo;
    let limits = scenario.modes().find_map(|mode| mode.latency_of(&tenant.name)?.limits).unwrap_or_default();
    let part = |name: &str, absolute: Option<u64>, multiple: Option<f64>, limit: Option<Nanos>| {
        let set = match (absolute, multiple) {
            (None, None) => return None,
            (None, Some(multiple)) => format!("{name}{} of p99 alone", times(multiple)),
            (Some(us), None) => return Some(format!("{name}{}", time(us as f64))),
            (Some(us), Some(multiple)) => {
                format!("{name}{}, {} of p99 alone", time(us as f64), times(multiple))
            }
        };
        Some(limit.map_or(set.clone(), |limit| format!("{set} = {}", time(limit.as_micros_f64()))))
    };
    let parts = [
        part("", slo.latency_us, slo.alone_p99, limits.latency),
        part("first token ", slo.ttft_us, slo.alone_ttft_p99, limits.ttft),
        part("each token ", slo.tpot_us, slo.alone_tpot_p99, limits.tpot),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A row for each mode and latency tenant. A single best-effort tenant stands in the same row.
fn latency_table(scenario: &Scenario) -> Markup {
    let several = scenario.tenants(Class::Latency).count() > 1;
    let single = single_best_effort(scenario);
    html! {
        div.scroll { table.dense {
            thead { tr {
                th scope="col" { "mode" }
                @if several { th.left scope="col" { "tenant" } }
                th scope="col" { "offered" } th scope="col" { "served" } th scope="col" { "dropped" } th scope="col" { "wrong" }
                th scope="col" { "p50, ms" } th scope="col" { "p90" } th scope="col" { "p99" } th scope="col" { "p99.9" }
                th scope="col" { "p99 over alone" }
                th scope="col" { "service p99, ms" }
                th scope="col" { "within SLO" }
                @if single { th scope="col" { "best-effort, /s" } }
                th scope="col" { "best-effort of ideal" }
                @if single { th scope="col" { "wrong results" } }
                th scope="col" { "GPU busy" }
            } }
            tbody { @for mode in scenario.modes() {
                @for (index, tenant) in mode.latency.iter().enumerate() {
                    tr class=(rows::class(&mode.mode, several && index == 0)) {
                        td { (palette::tag(&mode.mode)) }
                        @if several { td.left { (tenant.tenant) } }
                        (latency_cells(mode, tenant))
                        // What all tenants of a mode have together stands in its first row.
                        @if index > 0 { td colspan=(if single { "4" } else { "2" }) {} } @else {
                            @if single { (single_cells(mode)) } @else {
                                (rows::estimate(mode.together.of_ideal, percent, &samples(mode)))
                            }
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
    let n = format!("n = {} in {} repetitions", count(tenant.offered), mode.repetitions);
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
                th scope="col" { "mode" } th.left scope="col" { "tenant" }
                th scope="col" { "first token p50, ms" } th scope="col" { "p90" } th scope="col" { "p99" } th scope="col" { "p99.9" }
                th scope="col" { "each further token p50, ms" } th scope="col" { "p90" } th scope="col" { "p99" } th scope="col" { "p99.9" }
            } }
            tbody { @for (mode, tenant) in streaming {
                @let n = format!("n = {} in {} repetitions", count(tenant.offered), mode.repetitions);
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
        return html! { (rows::none()) (rows::none()) (rows::none()) };
    };
    html! {
        (rows::estimate(Some(tenant.rate), three, &samples(mode)))
        (rows::estimate(mode.together.of_ideal, percent, &samples(mode)))
        (wrong_results(tenant))
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
                th scope="col" { "mode" } th.left scope="col" { "best-effort tenant" }
                th scope="col" { "iterations/s" } th scope="col" { "of alone" } th scope="col" { "wrong results" }
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

/// Modes without all their runs, with why.
fn gaps(scenario: &Scenario) -> Markup {
    html! {
        @for (mode, reasons) in scenario.missing() {
            p.note { (palette::tag(mode)) " " span.bad { "missing" } ": " (reasons.join("; ")) }
        }
    }
}

fn tails(scenario: &Scenario, tenant: &Tenant) -> Markup {
    let here = || scenario.modes().filter_map(|mode| Some((mode, mode.latency_of(&tenant.name)?)));
    let limits = here().find_map(|(_, figures)| figures.limits).unwrap_or_default();
    let streaming = here().any(|(_, figures)| figures.ttft.is_some());
    let chart = |what: &str, of: fn(&Request) -> Option<Nanos>, limit: Option<Nanos>| {
        let curves: Vec<(&ModeFigures, Curve)> =
            here().map(|(mode, _)| (mode, curve(scenario, mode, tenant, of))).collect();
        let series: Vec<Series> = curves.iter().map(|(mode, curve)| curve.series(mode)).collect();
        let name = format!("{what} of {} in {}", tenant.name, scenario.record.title);
        html! {
            figure {
                h4 { (tenant.name) ": " (what) }
                (tail(&name, &format!("{what} (log) →"), &series, limit.map(|limit| limit.as_micros_f64())))
            }
        }
    };
    html! {
        (chart("latency from arrival", Request::latency, limits.latency))
        @if streaming {
            (chart("time to first token", Request::ttft, limits.ttft))
            (chart("time per further token", Request::tpot, limits.tpot))
        }
    }
}

struct Curve {
    values: Vec<f64>,
    offered: usize,
}

impl Curve {
    fn series<'a>(&'a self, mode: &'a ModeFigures) -> Series<'a> {
        let at = |share: f64| {
            let place = results::quantile::rank(self.offered, share);
            finite(place.and_then(|place| self.values.get(place)).copied().unwrap_or(f64::INFINITY), time)
        };
        let tip =
            format!("{}: p50 {}, p99 {}, p99.9 {}", palette::label(&mode.mode), at(0.5), at(0.99), at(0.999));
        Series { mode: &mode.mode, served: &self.values, offered: self.offered, tip }
    }
}

/// The requests of all repetitions together.
fn curve(
    scenario: &Scenario,
    mode: &ModeFigures,
    tenant: &Tenant,
    of: fn(&Request) -> Option<Nanos>,
) -> Curve {
    let passages = passage::of(scenario.archive, scenario.record, &mode.mode, &tenant.name);
    let requests = || passages.iter().flat_map(|passage| request::offered(passage.run, passage.tenant));
    let mut values: Vec<f64> =
        requests().filter_map(|request| of(&request)).map(Nanos::as_micros_f64).collect();
    values.sort_by(f64::total_cmp);
    Curve { values, offered: requests().count() }
}

/// Which modes a timeline shows: the driver's default, the best of what there is without us, and ours.
const SHOWN: [&[&str]; 4] =
    [&["timeslice"], &["mps-priority", "mps", "streams"], &["ebb-isolated"], &["ebb-shared"]];

fn moment(scenario: &Scenario) -> Markup {
    let record = scenario.record;
    let Some(stretch) = stretch(scenario.archive, record) else { return html! {} };
    let checks = Checks::of(scenario.archive);
    let first = |mode: &str| scenario.archive.runs_of(&record.suite, &record.name, mode).first().copied();
    let shown = SHOWN.iter().filter_map(|choice| choice.iter().find_map(|mode| Some((*mode, first(mode)?))));
    let told: Vec<(&str, Vec<Track>)> =
        shown.map(|(mode, run)| (mode, tracks(run, stretch, &checks))).collect();
    if told.is_empty() {
        return html! {};
    }
    let panels: Vec<Panel> =
        told.iter().map(|(mode, tracks)| Panel { mode, lanes: tracks.iter().map(lane).collect() }).collect();
    let window = (stretch.from.as_micros_f64(), stretch.to.as_micros_f64());
    html! {
        figure {
            h4 { "The busiest " (time(window.1 - window.0)) " of the first repetition" }
            (timeline(&format!("Timeline of {}", record.title), window, &panels))
            figcaption {
                "The same arrivals (ticks) in every mode. Upper strip: requests that wait, darker where several do; lower: the one that is served. Best-effort iterations in turns of grey, each from the end of the one before. "
                "Chosen by when requests are due, not by how they fared."
            }
        }
    }
}

fn lane(track: &Track) -> Lane<'_> {
    let latency = track.class == Class::Latency;
    let span = |span: &results::timeline::Span| Span {
        due: latency.then(|| span.due.as_micros_f64()),
        served: span.end.map(|end| (span.start.as_micros_f64(), end.as_micros_f64())),
    };
    Lane { tenant: &track.tenant, latency, spans: track.spans.iter().map(span).collect() }
}
