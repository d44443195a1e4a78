//! One scenario: what was asked, its tables, the tails of its latencies, and a moment of it.

use maud::{Markup, html};
use model::{Class, Kind, Nanos};
use results::iteration::Checks;
use results::mode::Name;
use results::record::Tenant;
use results::timeline::{Track, stretch, tracks};

use super::{tables, tails};
use crate::charts::timeline::{Lane, Panel, Span, timeline};
use crate::numbers::{grouped, many, three, time, times};
use crate::view::Scenario;

pub fn inside(scenario: &Scenario) -> Markup {
    html! {
        (asked(scenario))
        (tables::tables(scenario))
        div.row { @for tenant in scenario.tenants(Class::Latency) { (tails::tails(scenario, tenant)) } }
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
                        // Unless the arrival says so itself.
                        @if let Some(rate) = tenant.rate.filter(|_| !tenant.arrival.contains("/s")) {
                            " (" (three(rate)) " requests/s)"
                        }
                        @if let Some(slo) = slo(scenario, tenant) { ", SLO " (slo) }
                    }
                }
            }
            dt { "time" }
            dd {
                (time(record.duration_us as f64)) " counted after " (time(record.warmup_us as f64)) " of warm-up, "
                (many(record.repetitions as usize, "repetition")) ", seed " (record.seed)
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

/// Which modes a timeline shows: the driver's default, the best of what there is without us, and ours.
const SHOWN: [&[&str]; 4] =
    [&["timeslice"], &["mps-priority", "mps", "streams"], &["ebb-isolated"], &["ebb-shared"]];

/// The mode of this base to show: as it comes, else under the policy that it would choose, else any.
fn shown<'a>(scenario: &Scenario<'a>, base: &str) -> Option<&'a str> {
    let of_base = scenario.modes().map(|mode| mode.mode.as_str()).filter(|mode| Name::of(mode).base == base);
    of_base.min_by_key(|mode| match Name::of(mode).policy {
        None => 0,
        Some(kind) if kind == Kind::default() => 1,
        Some(_) => 2,
    })
}

fn moment(scenario: &Scenario) -> Markup {
    let record = scenario.record;
    let Some(stretch) = stretch(scenario.archive, record) else { return html! {} };
    let checks = Checks::of(scenario.archive);
    let first = |mode: &str| scenario.archive.runs_of(&record.suite, &record.name, mode).first().copied();
    let shown = SHOWN.iter().filter_map(|choice| {
        choice.iter().filter_map(|base| shown(scenario, base)).find_map(|mode| Some((mode, first(mode)?)))
    });
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
                "The same arrivals (ticks) in every mode. Upper strip: requests that wait, darker where "
                "several do; lower: the "
                "one that is served. Best-effort iterations in turns of grey, each from the end of the one "
                "before. Chosen by when requests are due, not by how they fared."
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
