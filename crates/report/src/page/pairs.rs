//! Suites of pairs: a map of all pairs for each mode, and lines over the load where it was swept.

use maud::{Markup, html};
use results::figures::ModeFigures;

use crate::bars;
use crate::charts::axis::Axis;
use crate::charts::heatmap::{self, Cell, heatmap};
use crate::charts::lines::{Layout, Line, Point, lines};
use crate::numbers::{NONE, finite, percent, short_times, times};
use crate::palette;
use crate::view::{Scenario, Suite, modes_of, overhead, samples, shares};

/// The load at which pairs are compared, where a pair was measured at several.
const USUAL_LOAD: f64 = 0.5;

/// The suite's pairs as a grid: latency tenants down, best-effort tenants across.
struct Grid<'a, 'b> {
    rows: Vec<String>,
    columns: Vec<String>,
    cells: Vec<(usize, usize, &'a Scenario<'b>)>,
}

pub fn maps(suite: &Suite) -> Markup {
    let Some(grid) = grid(suite) else { return html! {} };
    let modes = modes_of(grid.cells.iter().map(|(_, _, scenario)| *scenario));
    html! {
        h3 { "Every pair" }
        p.note {
            "Down: the latency tenant; across: the best-effort tenant. Large: p99 from arrival over alone; "
            "small: best-effort "
            "throughput of ideal. Blue is within our bar. Of a pair that was measured at several loads, the "
            "load nearest to "
            (USUAL_LOAD) "."
        }
        (heatmap::legend())
        div.row style={ "--least:" (heatmap::width(&grid.rows, &grid.columns)) "px" } {
            @for mode in modes.into_iter().filter(|mode| shares(mode)) { (map(&grid, mode)) }
        }
    }
}

fn map(grid: &Grid, mode: &str) -> Markup {
    let cells = cells(grid, mode);
    let name = format!("p99 over alone for every pair, {}", palette::label(mode));
    html! {
        @if !cells.is_empty() {
            figure.{ (palette::class(mode)) } {
                h4 { (palette::tag(mode)) }
                (heatmap(&name, &grid.rows, &grid.columns, &cells))
            }
        }
    }
}

/// None unless at least two of each side meet.
fn grid<'a, 'b>(suite: &'a Suite<'b>) -> Option<Grid<'a, 'b>> {
    let mut grid = Grid { rows: Vec::new(), columns: Vec::new(), cells: Vec::new() };
    let off = |scenario: &Scenario| scenario.load().map_or(0.0, |load| (load - USUAL_LOAD).abs());
    for scenario in &suite.scenarios {
        let Some((latency, best_effort)) = scenario.pair() else { continue };
        let row = place(&mut grid.rows, &latency.name);
        let column = place(&mut grid.columns, &best_effort.name);
        match grid.cells.iter_mut().find(|cell| (cell.0, cell.1) == (row, column)) {
            Some(cell) if off(scenario) < off(cell.2) => cell.2 = scenario,
            Some(_) => {}
            None => grid.cells.push((row, column, scenario)),
        }
    }
    (grid.rows.len() > 1 && grid.columns.len() > 1 && grid.cells.len() > 3).then_some(grid)
}

fn place(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

fn cells(grid: &Grid, mode: &str) -> Vec<Cell> {
    let cell = |(row, column, scenario): &(usize, usize, &Scenario)| {
        let here = scenario.mode(mode)?;
        let value = Some(overhead(here)?.value).filter(|ratio| ratio.is_finite());
        let note = here.together.of_ideal.map_or(NONE.into(), |share| percent(share.value));
        Some(Cell { row: *row, column: *column, value, note, tip: tip(scenario, here) })
    };
    grid.cells.iter().filter_map(cell).collect()
}

fn tip(scenario: &Scenario, mode: &ModeFigures) -> String {
    let told = |estimate: Option<results::Estimate>, show: fn(f64) -> String| {
        estimate.map_or(NONE.into(), |found| {
            let [value, low, high] = [found.value, found.low, found.high].map(|value| finite(value, show));
            format!("{value} ({low} to {high})")
        })
    };
    format!(
        "{}\n{}\np99 over alone: {}\nbest-effort of ideal: {}\n{}",
        palette::label(&mode.mode),
        scenario.record.title,
        told(overhead(mode), times),
        told(mode.together.of_ideal, percent),
        samples(mode),
    )
}

/// A pair of charts for each pair of workloads that was measured at three loads or more.
pub fn sweeps(suite: &Suite) -> Markup {
    let sweeps = swept(suite);
    html! {
        @if !sweeps.is_empty() { h3 { "Over the load" } }
        @for (name, scenarios) in &sweeps {
            h4 { (name) }
            div.row {
                figure { (latency_chart(name, scenarios)) }
                figure { (throughput_chart(name, scenarios)) }
            }
        }
    }
}

type Swept<'a, 'b> = Vec<(f64, &'a Scenario<'b>)>;

fn swept<'a, 'b>(suite: &'a Suite<'b>) -> Vec<(String, Swept<'a, 'b>)> {
    let mut sweeps: Vec<(String, Swept)> = Vec::new();
    for scenario in &suite.scenarios {
        let (Some((latency, best_effort)), Some(load)) = (scenario.pair(), scenario.load()) else { continue };
        let name = format!("{} beside {}", latency.workload, best_effort.workload);
        match sweeps.iter_mut().find(|(known, _)| *known == name) {
            Some((_, found)) => found.push((load, scenario)),
            None => sweeps.push((name, vec![(load, scenario)])),
        }
    }
    for (_, scenarios) in &mut sweeps {
        scenarios.sort_by(|a, b| a.0.total_cmp(&b.0));
        scenarios.dedup_by(|a, b| (a.0 - b.0).abs() < 1e-3);
    }
    sweeps.retain(|(_, scenarios)| scenarios.len() > 2);
    sweeps
}

fn series<'b>(
    scenarios: &Swept<'_, 'b>,
    point: impl Fn(f64, &Scenario<'b>, &ModeFigures) -> Option<Point>,
) -> Vec<Line<'b>> {
    let modes = modes_of(scenarios.iter().map(|(_, scenario)| *scenario));
    let line = |mode: &'b str| {
        let points =
            scenarios.iter().filter_map(|(load, scenario)| point(*load, scenario, scenario.mode(mode)?));
        Line { mode, points: points.collect() }
    };
    modes.into_iter().map(line).filter(|line| !line.points.is_empty()).collect()
}

fn latency_chart(name: &str, scenarios: &Swept) -> Markup {
    let all = series(scenarios, |x, scenario, mode| {
        let ratio = overhead(mode).filter(|_| shares(&mode.mode))?;
        let y = Some(ratio.value).filter(|ratio| ratio.is_finite());
        Some(Point { x, y, interval: y.map(|_| (ratio.low, ratio.high)), tip: tip(scenario, mode) })
    });
    let layout = Layout {
        x: Axis { label: "load of the latency tenant →", tick: load },
        y: Axis { label: "p99 from arrival over alone (log)", tick: short_times },
        x_log: false,
        y_log: true,
        y_holds: (1.0, 2.0),
        bar: Some((bars::OVER_ALONE.1, "our bar")),
    };
    lines(&format!("p99 over alone by load, {name}"), &all, &layout)
}

fn throughput_chart(name: &str, scenarios: &Swept) -> Markup {
    let all = series(scenarios, |x, scenario, mode| {
        let share = mode.together.of_ideal.filter(|_| shares(&mode.mode))?;
        Some(Point {
            x,
            y: Some(share.value),
            interval: Some((share.low, share.high)),
            tip: tip(scenario, mode),
        })
    });
    let layout = Layout {
        x: Axis { label: "load of the latency tenant →", tick: load },
        y: Axis { label: "best-effort throughput of ideal", tick: |share| format!("{:.0}%", share * 100.0) },
        x_log: false,
        y_log: false,
        y_holds: (0.0, 1.05),
        bar: Some((bars::OF_IDEAL, "our bar")),
    };
    lines(&format!("best-effort of ideal by load, {name}"), &all, &layout)
}

fn load(value: f64) -> String {
    format!("{value:.1}")
}
