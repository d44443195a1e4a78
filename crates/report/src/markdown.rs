//! The summary as Markdown: the headline, the bars, a table for each scenario, and what is missing. For repositories,
//! issues and mails, where a page of HTML is no guest.

use std::fmt::Write;

use model::Class;
use results::Estimate;
use results::figures::{Latency, ModeFigures};
use results::record::ALONE;

use crate::bars::{self, bars};
use crate::numbers::{NONE, OVERLOAD, attained, count, finite, grouped, millis, percent, three, times};
use crate::overview;
use crate::palette;
use crate::summary::{Spread, Summary};
use crate::view::{Scenario, View, modes_of};

pub fn markdown(view: &View) -> String {
    let mut text = String::new();
    head(&mut text, view);
    headline(&mut text, view);
    the_overview(&mut text, view);
    for mode in modes_of(view.scenarios()).into_iter().filter(|mode| palette::of(mode).ours) {
        the_bars(&mut text, view, mode);
    }
    for suite in &view.suites {
        line(&mut text, &format!("\n## {}", plain(suite.name)));
        for scenario in &suite.scenarios {
            the_scenario(&mut text, scenario);
        }
    }
    missing(&mut text, view);
    text
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn row<S: AsRef<str>>(text: &mut String, cells: &[S]) {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    writeln!(text, "| {} |", cells.join(" | ")).expect("a string takes all that is written");
}

/// The line under a table's head: the first `left` columns to the left, figures to the right.
fn rule(text: &mut String, left: usize, columns: usize) {
    let side = |column: usize| if column < left { "---" } else { "---:" };
    row(text, &(0..columns).map(side).collect::<Vec<_>>());
}

/// Text of others, which must neither end a cell nor become a heading, a link or markup.
fn plain(text: &str) -> String {
    let mut safe = String::new();
    for letter in text.chars() {
        match letter {
            '\n' | '\r' | '\t' => safe.push(' '),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '!' => {
                safe.push('\\');
                safe.push(letter);
            }
            other => safe.push(other),
        }
    }
    safe
}

fn head(text: &mut String, view: &View) {
    line(text, "# What was measured\n");
    for machine in &view.archive.machines {
        let device = &machine.device;
        let commit =
            machine.ebb.commit.as_deref().map_or(String::new(), |commit| format!(", commit {commit}"));
        let dirty = if machine.ebb.dirty { " with changes" } else { "" };
        let libraries: Vec<String> =
            machine.libraries.iter().map(|(name, version)| format!("{name} {version}")).collect();
        line(
            text,
            &format!(
                "* {}: {}, driver {}, {} SMs; {}, {} cores; ebb {}{}{dirty}; {}",
                plain(&machine.at),
                plain(&device.name),
                plain(&device.driver),
                device.sms,
                plain(&machine.host.cpu),
                machine.host.cores,
                plain(&machine.ebb.version),
                plain(&commit),
                plain(&libraries.join(", ")),
            ),
        );
    }
}

fn headline(text: &mut String, view: &View) {
    line(text, "\n## Headline\n");
    let heads = [
        "suite",
        "mode",
        "cases",
        "p99 over alone, median",
        "worst",
        "overload",
        "SLO points lost, mean",
        "worst",
        "best-effort of ideal, mean",
        "worst",
        "of left, mean",
        "worst",
        "wrong results",
    ];
    row(text, &heads);
    rule(text, 2, heads.len());
    for suite in &view.suites {
        for mode in modes_of(&suite.scenarios).into_iter().filter(|mode| *mode != ALONE) {
            let summary = Summary::of(&suite.scenarios, mode);
            let show = |spread: Option<Spread>, show: fn(f64) -> String| match spread {
                Some(Spread { mean, worst, .. }) => [show(mean), show(worst)],
                None => [NONE.into(), NONE.into()],
            };
            let points = |share: f64| grouped(share * 100.0, 2);
            let [_, mut worst] = show(summary.over_alone, times);
            let ratio = summary.median.map_or(NONE.into(), |ratio| finite(ratio, times));
            if summary.overloaded > 0 {
                worst = OVERLOAD.into();
            }
            let (suite, mode, cases) = (plain(suite.name), name(mode), count(summary.cases));
            let mut cells = vec![suite, mode, cases, ratio, worst, count(summary.overloaded)];
            cells.extend(show(summary.lost, points));
            cells.extend(show(summary.of_ideal, percent));
            cells.extend(show(summary.of_left, percent));
            cells.push(count(summary.wrong));
            row(text, &cells);
        }
    }
}

/// Mean and worst of what each mode and policy costs and gives, and of the better domain where there is one.
fn the_overview(text: &mut String, view: &View) {
    for table in overview::suites(view).iter().chain(&overview::choices(view)) {
        line(text, &format!("\n### {}\n", plain(&table.title)));
        row(text, &table.heads);
        rule(text, table.words, table.heads.len());
        for cells in &table.rows {
            row(text, &cells.iter().map(|cell| plain(cell)).collect::<Vec<_>>());
        }
    }
}

/// A mode's name; ours is bold.
fn name(mode: &str) -> String {
    let label = plain(&palette::label(mode));
    if palette::of(mode).ours { format!("**{label}**") } else { label }
}

fn the_bars(text: &mut String, view: &View, mode: &str) {
    line(text, &format!("\n## Our bars: {}\n", plain(&palette::label(mode))));
    if let Some(caveat) = bars::caveat(view.archive) {
        line(text, &format!("{caveat}\n"));
    }
    row(text, &["figure", "best known", "our bar", "measured", ""]);
    rule(text, 5, 5);
    for bar in bars(view, mode) {
        row(text, &[bar.figure, bar.best_known, bar.bar, &plain(&bar.measured), bar.verdict.name()]);
    }
}

fn the_scenario(text: &mut String, scenario: &Scenario) {
    line(text, &format!("\n### {}\n", plain(&scenario.record.title)));
    let heads = [
        "mode",
        "tenant",
        "offered",
        "dropped",
        "wrong",
        "p50, ms",
        "p90",
        "p99",
        "p99.9",
        "p99 over alone",
        "service p99",
        "within SLO",
        "best-effort, /s",
        "of ideal",
        "of left",
        "wrong results",
    ];
    row(text, &heads);
    rule(text, 2, heads.len());
    for mode in scenario.modes() {
        // A mode without latency tenants still has what its best-effort tenants did.
        match mode.latency.is_empty() {
            true => row(text, &cells(scenario, mode, None)),
            false => mode.latency.iter().for_each(|tenant| row(text, &cells(scenario, mode, Some(tenant)))),
        }
    }
    for (mode, said) in overview::told(scenario) {
        line(text, &format!("\n{}: {}", name(mode), plain(&said)));
    }
    for (mode, reasons) in scenario.missing() {
        line(text, &format!("\n{}: missing, {}", name(mode), plain(&reasons.join("; "))));
    }
}

fn cells(scenario: &Scenario, mode: &ModeFigures, tenant: Option<&Latency>) -> Vec<String> {
    let or_none = |value: Option<Estimate>, show: fn(f64) -> String| {
        value.map_or(NONE.into(), |estimate| finite(estimate.value, show))
    };
    let mut cells = vec![name(&mode.mode)];
    match tenant {
        Some(tenant) => {
            let quantile = |time: Option<model::Nanos>| {
                finite(time.map_or(f64::INFINITY, |time| time.as_micros_f64()), millis)
            };
            cells.push(plain(&tenant.tenant));
            cells.extend([tenant.offered, tenant.dropped, tenant.wrong].map(count));
            let arrival = &tenant.arrival;
            cells.extend([arrival.p50, arrival.p90, arrival.p99, arrival.p999].map(quantile));
            cells.push(or_none(tenant.overhead, times));
            cells.push(quantile(tenant.service.p99));
            cells.push(or_none(tenant.attainment, attained));
        }
        None => cells.extend(std::iter::repeat_n(NONE.to_owned(), 11)),
    }
    // Several best-effort tenants do different things in an iteration, so their rates stand side by side.
    let wanted = scenario.tenants(Class::BestEffort).filter_map(|tenant| mode.best_effort_of(&tenant.name));
    let rates: Vec<String> = wanted.map(|tenant| three(tenant.rate.value)).collect();
    cells.push(if rates.is_empty() { NONE.into() } else { rates.join(", ") });
    cells.push(or_none(mode.together.of_ideal, percent));
    cells.push(or_none(mode.together.of_left, percent));
    cells.push(count(mode.best_effort.iter().map(|tenant| tenant.wrong).sum()));
    cells
}

fn missing(text: &mut String, view: &View) {
    let archive = view.archive;
    let undone = view.left_undone();
    if archive.absent.is_empty()
        && archive.failures.is_empty()
        && view.figures.remarks.is_empty()
        && undone.is_empty()
    {
        return;
    }
    line(text, "\n## What is missing\n");
    for absent in &archive.absent {
        let place = [&absent.suite, &absent.scenario]
            .into_iter()
            .flatten()
            .map(|name| plain(name))
            .collect::<Vec<_>>();
        let place = if place.is_empty() { String::new() } else { format!(" in {}", place.join("/")) };
        line(text, &format!("* {}{place}: {}", name(&absent.mode), plain(&absent.reason)));
    }
    for failure in &archive.failures {
        line(text, &format!("* {} failed: {}", plain(&failure.id), plain(&failure.reason)));
    }
    for runs in &undone {
        line(text, &format!("* not made: {}", plain(runs)));
    }
    for remark in &view.figures.remarks {
        line(text, &format!("* {}", plain(remark)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_cell() {
        assert_eq!(plain("a|b\n# c <script> `x` [y](z)"), r"a\|b \# c &lt;script&gt; \`x\` \[y\](z)");
    }

    #[test]
    fn every_row_has_as_many_cells_as_its_head() {
        let archive = results::sample::archive();
        let figures = results::Figures::of(&archive);
        let text = markdown(&View::new(&archive, &figures));
        let mut columns = 0;
        for line in text.lines() {
            match line.starts_with('|') {
                true if columns == 0 => columns = line.matches(" | ").count(),
                true => assert_eq!(line.matches(" | ").count(), columns, "{line}"),
                false => columns = 0,
            }
        }
        assert!(text.contains("### VGG-19 at 100 requests/s beside ResNet-152"));
        assert!(text.contains("* stress/crowd/streams/1 failed"), "{text}");
    }
}
