//! What came of simulations, for people and for programs.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use model::Nanos;
use results::Figures;
use results::figures::{BestEffort, Latency, ModeFigures, ScenarioFigures};

use crate::json::Json;

/// How far it is, on standard error, where somebody can see it.
pub fn bar(length: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} [{bar:30}] {pos}/{len} worlds");
    let bar = ProgressBar::new(length as u64);
    bar.set_style(style.expect("the template is valid").progress_chars("=> "));
    bar
}

/// How fast that was.
pub fn pace(simulated: Nanos, took: Duration) -> String {
    let (simulated, took) = (simulated.as_secs_f64(), took.as_secs_f64().max(1e-6));
    let times = simulated / took;
    format!(
        "{} simulated seconds in {} s: {} simulated seconds per second",
        figure(simulated),
        figure(took),
        figure(times)
    )
}

/// Every tenant of every scenario, in every way.
pub fn tenants(figures: &Figures) -> String {
    let mut text = String::new();
    for scenario in &figures.scenarios {
        text += &head(scenario);
        let names = [
            "mode",
            "tenant",
            "offered",
            "p50",
            "p99",
            "p99/alone",
            "in time",
            "it/s",
            "of alone",
            "of ideal",
        ];
        let mut rows = vec![names.map(str::to_owned).to_vec()];
        for mode in scenario.modes.iter().filter(|mode| mode.is_measured()) {
            rows.extend(mode.latency.iter().map(|latency| served(mode, latency)));
            rows.extend(mode.best_effort.iter().map(|best_effort| worked(mode, best_effort)));
        }
        text += &table(&rows, 2);
    }
    text
}

/// Every way in one line.
pub fn modes(figures: &Figures) -> String {
    let mut text = String::new();
    for scenario in &figures.scenarios {
        text += &head(scenario);
        let names = ["mode", "worst p99", "p99/alone", "in time", "best-effort", "of ideal"];
        let mut rows = vec![names.map(str::to_owned).to_vec()];
        for mode in scenario.modes.iter().filter(|mode| mode.is_measured()) {
            let worst = mode.latency.iter().map(|latency| latency.p99.value).fold(f64::NAN, f64::max);
            let rate = match mode.best_effort.as_slice() {
                [] => dash(),
                [one] => format!("{}/s", figure(one.rate.value)),
                several => format!("{} tenants", several.len()),
            };
            rows.push(vec![
                mode.mode.clone(),
                milliseconds(worst),
                mode.together.worst_overhead.map_or_else(dash, |overhead| times(overhead.value)),
                mode.together.worst_attainment.map_or_else(dash, |share| percent(share.value)),
                rate,
                mode.together.of_ideal.map_or_else(dash, |share| percent(share.value)),
            ]);
        }
        text += &table(&rows, 1);
    }
    text
}

fn head(figures: &ScenarioFigures) -> String {
    let scenario = &figures.scenario;
    format!("{}/{}: {}\n", scenario.suite, scenario.name, scenario.title)
}

fn served(mode: &ModeFigures, latency: &Latency) -> Vec<String> {
    vec![
        mode.mode.clone(),
        latency.tenant.clone(),
        latency.offered.to_string(),
        milliseconds(latency.p50.value),
        milliseconds(latency.p99.value),
        latency.overhead.map_or_else(dash, |overhead| times(overhead.value)),
        latency.attainment.map_or_else(dash, |share| percent(share.value)),
        dash(),
        dash(),
        dash(),
    ]
}

fn worked(mode: &ModeFigures, best_effort: &BestEffort) -> Vec<String> {
    let alone_in_company = mode.best_effort.len() == 1;
    let ideal = mode.together.of_ideal.filter(|_| alone_in_company);
    let mut row = vec![mode.mode.clone(), best_effort.tenant.clone()];
    row.extend((0..5).map(|_| dash()));
    row.push(figure(best_effort.rate.value));
    row.push(best_effort.of_alone.map_or_else(dash, |share| percent(share.value)));
    row.push(ideal.map_or_else(dash, |share| percent(share.value)));
    row
}

/// Columns as wide as they must be: the first `names` to the left, figures to the right; a line of its own after each.
pub fn table(rows: &[Vec<String>], names: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < names { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text += "  ";
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text += "\n";
    }
    text
}

/// For programs; the keys are described in `docs/sim.md` and stay what they are.
pub fn json(figures: &Figures) -> Json {
    let scenario = |figures: &ScenarioFigures| {
        let measured = figures.modes.iter().filter(|mode| mode.is_measured());
        Json::object([
            ("suite", figures.scenario.suite.as_str().into()),
            ("scenario", figures.scenario.name.as_str().into()),
            ("modes", Json::List(measured.map(mode_json).collect())),
        ])
    };
    Json::object([("scenarios", Json::List(figures.scenarios.iter().map(scenario).collect()))])
}

fn mode_json(mode: &ModeFigures) -> Json {
    let latency = |latency: &Latency| {
        Json::object([
            ("tenant", latency.tenant.as_str().into()),
            ("workload", latency.workload.as_str().into()),
            ("offered", (latency.offered as u64).into()),
            ("unanswered", (latency.dropped as u64).into()),
            ("p50_ns", nanos(latency.p50.value)),
            ("p99_ns", nanos(latency.p99.value)),
            ("p99_of_alone", real(latency.overhead.map(|estimate| estimate.value))),
            ("attainment", real(latency.attainment.map(|estimate| estimate.value))),
        ])
    };
    let best_effort = |best_effort: &BestEffort| {
        Json::object([
            ("tenant", best_effort.tenant.as_str().into()),
            ("workload", best_effort.workload.as_str().into()),
            ("per_s", Json::Real(best_effort.rate.value)),
            ("of_alone", real(best_effort.of_alone.map(|estimate| estimate.value))),
        ])
    };
    Json::object([
        ("mode", mode.mode.as_str().into()),
        ("repetitions", (mode.repetitions as u64).into()),
        ("latency", Json::List(mode.latency.iter().map(latency).collect())),
        ("best_effort", Json::List(mode.best_effort.iter().map(best_effort).collect())),
        ("of_ideal", real(mode.together.of_ideal.map(|estimate| estimate.value))),
    ])
}

/// Overload is no number.
fn nanos(value: f64) -> Json {
    if value.is_finite() { Json::from(value as u64) } else { Json::Null }
}

fn real(value: Option<f64>) -> Json {
    value.map_or(Json::Null, Json::Real)
}

pub fn milliseconds(nanos: f64) -> String {
    match nanos {
        nanos if nanos.is_nan() => dash(),
        nanos if nanos.is_infinite() => "overload".to_owned(),
        nanos => format!("{} ms", figure(nanos * 1e-6)),
    }
}

fn times(ratio: f64) -> String {
    if ratio.is_finite() { format!("{ratio:.2}x") } else { "overload".to_owned() }
}

pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

pub fn dash() -> String {
    "–".to_owned()
}

/// Three figures that matter.
pub fn figure(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}
