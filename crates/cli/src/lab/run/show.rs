//! What is seen of a campaign: a line for each run as it ends, on a terminal also how far it is and how long it will
//! take, and in the end a table.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use lab::campaign::{Event, Label};
use model::{Class, Nanos};
use results::figures::{Latency, ModeFigures, ScenarioFigures, Told};
use results::iteration::{self, Checks};
use results::record::{Run, TenantRun};
use results::{Archive, Figures, Quantiles, request};

pub struct Show {
    bar: ProgressBar,
}

impl Show {
    pub fn new() -> Show {
        let style = ProgressStyle::with_template("{spinner} [{bar:30}] {pos}/{len}  {prefix} left  {msg}");
        let bar = ProgressBar::new(0);
        bar.set_style(style.expect("the template is valid").progress_chars("=> "));
        Show { bar }
    }

    pub fn see(&mut self, event: &Event<'_>) {
        match event {
            Event::Planned { runs, done, left } => {
                self.bar.set_length(*runs as u64);
                self.bar.set_prefix(clock(*left));
                self.bar.enable_steady_tick(Duration::from_millis(200));
                let already = if *done > 0 { format!(", {done} are there already") } else { String::new() };
                self.say(&format!("{runs} runs to make{already}; about {}", clock(*left)));
            }
            Event::Absent { mode, scenario, reason } => {
                let place = scenario.map(|scenario| format!(" in {scenario}")).unwrap_or_default();
                self.say(&format!("without {mode}{place}: {reason}"));
            }
            Event::Starting { workers: 0 } => {}
            Event::Starting { workers } => {
                let line = format!("starting {workers} workers");
                if self.bar.is_hidden() { self.say(&line) } else { self.bar.set_message(line) }
            }
            Event::Calibrated { workload, per_s } => {
                self.say(&format!("{workload} alone serves {} requests/s", figure(*per_s)));
            }
            Event::Begun { label, left } => {
                self.bar.set_position(label.number as u64 - 1);
                self.bar.set_prefix(clock(*left));
                self.bar.set_message(name(label));
            }
            Event::Ended { label, run } => {
                self.say(&format!("{}  {}", place(label), glance(run)));
                self.bar.set_position(label.number as u64);
            }
            Event::Failed { label, tenant, reason } => {
                let who = tenant.map(|tenant| format!("{tenant}: ")).unwrap_or_default();
                self.say(&format!("{}  FAILED: {who}{reason}", place(label)));
                self.bar.set_position(label.number as u64);
            }
        }
    }

    /// Above the bar, where there is one.
    fn say(&self, line: &str) {
        if self.bar.is_hidden() {
            eprintln!("{line}");
        } else {
            self.bar.println(line);
        }
    }
}

impl Drop for Show {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn place(label: &Label<'_>) -> String {
    format!("[{}/{}] {}", label.number, label.of, name(label))
}

fn name(label: &Label<'_>) -> String {
    let Label { suite, scenario, mode, repetition, tenant, .. } = label;
    let tenant = tenant.map(|tenant| format!(" {tenant}")).unwrap_or_default();
    format!("{suite}/{scenario} {mode}{tenant} #{}", repetition + 1)
}

/// The worst p99 of its requests, and how often best-effort tenants iterated; nothing is checked yet.
fn glance(run: &Run) -> String {
    let of = |class| run.tenants.iter().filter(move |tenant| tenant.class == class);
    let latency = of(Class::Latency).filter_map(|tenant| {
        let requests = request::offered(run, tenant);
        Quantiles::of(requests.iter().map(request::Request::latency))
    });
    let worst = latency.map(|quantiles| quantiles.p99.unwrap_or(Nanos::MAX)).max();
    let rate = |tenant: &TenantRun| {
        let iterations = iteration::finished(tenant, &Checks::default());
        iteration::done(&iterations, run.warmup_us, run.until_us).all / run.window_s()
    };
    let rates: Vec<String> =
        of(Class::BestEffort).map(|tenant| format!("{} it/s", figure(rate(tenant)))).collect();
    let p99 = worst.map(|worst| match worst {
        Nanos::MAX => "p99 overload".to_owned(),
        time => format!("p99 {} ms", figure(time.as_secs_f64() * 1e3)),
    });
    let all: Vec<String> = p99.into_iter().chain(rates).collect();
    if all.is_empty() { "no request in the counted time".to_owned() } else { all.join(", ") }
}

/// Every scenario and mode of a folder's results, in one line each.
pub fn table(folder: &Path) -> Result<()> {
    if std::fs::metadata(folder.join(results::FILE)).map_or(0, |file| file.len()) == 0 {
        return Ok(());
    }
    print!("{}", tables(&Figures::of(&Archive::read(&[folder])?)));
    Ok(())
}

fn tables(figures: &Figures) -> String {
    let mut text = String::new();
    for ScenarioFigures { scenario, modes } in &figures.scenarios {
        let modes = modes.iter().filter(|mode| mode.is_measured() || !mode.missing.is_empty());
        let modes: Vec<&ModeFigures> = modes.collect();
        let wide = modes.iter().map(|mode| mode.mode.len()).max().unwrap_or(0).max(NARROWEST);
        text += &format!("\n{}/{}: {}\n", scenario.suite, scenario.name, scenario.title);
        text += &format!(
            "  {:<wide$} {:>5} {:>11} {:>10} {:>9} {:>12} {:>9}\n",
            "mode", "times", "p99", "p99/alone", "in time", "best-effort", "of ideal"
        );
        modes.into_iter().for_each(|mode| text += &format!("  {}\n", line(mode, wide)));
    }
    text + "\n"
}

/// Of the column of modes: what those without a policy need.
const NARROWEST: usize = 17;

fn line(mode: &ModeFigures, wide: usize) -> String {
    if !mode.is_measured() {
        return format!("{:<wide$} {:>5} {}", mode.mode, "–", mode.missing.join("; "));
    }
    let worst = mode.latency.iter().map(|latency| latency.p99.value).fold(0.0, f64::max);
    let dash = || "–".to_owned();
    let cells = [
        if worst > 0.0 { milliseconds(worst) } else { dash() },
        mode.together.worst_overhead.map_or_else(dash, |overhead| times(overhead.value)),
        mode.together.worst_attainment.map_or_else(dash, |share| percent(share.value)),
        match mode.best_effort.as_slice() {
            [] => dash(),
            [one] => format!("{}/s", figure(one.rate.value)),
            several => format!("{} tenants", several.len()),
        },
        mode.together.of_ideal.map_or_else(dash, |share| percent(share.value)),
    ];
    let wrong = if mode.together.right { "" } else { "  WRONG RESULTS" };
    let missing =
        if mode.missing.is_empty() { String::new() } else { format!("  ({})", mode.missing.join("; ")) };
    let told = told(mode);
    let [p99, overhead, attainment, best, ideal] = cells;
    let count = mode.repetitions;
    let name = &mode.mode;
    format!(
        "{name:<wide$} {count:>5} {p99:>11} {overhead:>10} {attainment:>9} {best:>12} {ideal:>9}{wrong}{told}{missing}"
    )
}

/// How the SLOs were kept that latency tenants told ebb, beside how they would have been kept alone.
fn told(mode: &ModeFigures) -> String {
    let one = |latency: &Latency| {
        let Told { slo, kept, alone } = latency.told?;
        let (slo, kept, alone) = (milliseconds(slo.0 as f64), percent(kept), percent(alone));
        Some(format!("  {} told {slo}: {kept} in it, alone {alone}", latency.tenant))
    };
    mode.latency.iter().filter_map(one).collect()
}

fn milliseconds(nanos: f64) -> String {
    if nanos.is_finite() { format!("{} ms", figure(nanos * 1e-6)) } else { "overload".to_owned() }
}

fn times(ratio: f64) -> String {
    if ratio.is_finite() { format!("{ratio:.2}x") } else { "overload".to_owned() }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// Three figures that matter.
fn figure(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Minutes and seconds.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use results::sample;

    use super::*;

    #[test]
    fn policies_have_their_lines_behind_what_others_have() {
        let mut archive = sample::policies();
        archive.scenarios.retain(|scenario| scenario.suite == "disb-a");
        archive.runs.retain(|run| run.is_of("disb-a", "disb-a"));
        insta::assert_snapshot!(tables(&Figures::of(&archive)));
    }
}
