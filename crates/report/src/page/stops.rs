//! How long it takes until best-effort work is off the GPU: how it is distributed, and how it depends on the length
//! of the blocks that run.

use maud::{Markup, html};
use model::Class;
use results::stop::Stops;

use crate::bars;
use crate::charts::axis::Axis;
use crate::charts::histogram::{Row, histogram};
use crate::charts::lines::{Layout, Line, Point, lines};
use crate::numbers::{finite, many, short_time, time};
use crate::palette;
use crate::view::{Scenario, Suite, modes_of, samples, shares};

pub fn stops(suite: &Suite) -> Markup {
    let scenarios: Vec<&Scenario> =
        suite.scenarios.iter().filter(|scenario| scenario.is_instrument()).collect();
    if scenarios.is_empty() {
        return html! {};
    }
    html! {
        h3 { "Stop latency" }
        p.note {
            "What a burst's service time has over its median alone: the time until best-effort work has left "
            "the GPU, and "
            "whatever it slows down while it is there. Full line: p99; dashed: median."
        }
        div.row {
            figure {
                (all_together(&scenarios))
                figcaption { (many(scenarios.len(), "scenario")) " together, a row for each mode." }
            }
            @let by_block = by_block(&scenarios);
            @if by_block.iter().any(|line| line.points.len() > 1) {
                figure {
                    (over_blocks(&by_block, bar(&scenarios)))
                    figcaption {
                        "p99 over the length of the best-effort tenant's blocks; of several grids with blocks "
                        "of one "
                        "length, the largest."
                    }
                }
            }
        }
    }
}

fn all_together(scenarios: &[&Scenario]) -> Markup {
    let modes = modes_of(scenarios.iter().copied());
    let gathered: Vec<(&str, Vec<f64>, usize)> = modes
        .into_iter()
        .filter(|mode| shares(mode))
        .map(|mode| {
            let found: Vec<Stops> = scenarios.iter().filter_map(|scenario| scenario.stops(mode)).collect();
            let mut waits: Vec<f64> =
                found.iter().flat_map(|stops| &stops.waits).map(|wait| wait.as_micros_f64()).collect();
            waits.sort_by(f64::total_cmp);
            let offered: usize = found.iter().map(|stops| stops.quantiles.offered).sum();
            let missing = offered - waits.len();
            (mode, waits, missing)
        })
        .collect();
    let rows: Vec<Row> =
        gathered.iter().map(|(mode, values, missing)| Row { mode, values, missing: *missing }).collect();
    histogram(
        "Stop latency by mode",
        "service time over the median alone (log) →",
        &rows,
        Some(bar(scenarios)),
    )
}

/// The bar, stretched as time is.
fn bar(scenarios: &[&Scenario]) -> f64 {
    bars::STOP_US * scenarios.first().map_or(1.0, |scenario| scenario.record.slowdown)
}

/// One line for each mode over the lengths of blocks. Of several grids with blocks of one length the largest counts:
/// it is the one that would run on for longest.
fn by_block<'a>(scenarios: &[&Scenario<'a>]) -> Vec<Line<'a>> {
    let mut swept: Vec<(f64, f64, &Scenario<'a>)> = scenarios
        .iter()
        .filter_map(|scenario| {
            let (blocks, block_us) = grid(&scenario.tenants(Class::BestEffort).next()?.workload)?;
            Some((block_us * scenario.record.slowdown, blocks, *scenario))
        })
        .collect();
    swept.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
    swept.dedup_by(|a, b| a.0 == b.0);
    let line = |mode: &'a str| {
        let points = swept.iter().filter_map(|(block_us, _, scenario)| point(*block_us, scenario, mode));
        Line { mode, points: points.collect() }
    };
    let modes = modes_of(scenarios.iter().copied()).into_iter().filter(|mode| shares(mode));
    modes.map(line).filter(|line| !line.points.is_empty()).collect()
}

fn point(block_us: f64, scenario: &Scenario, mode: &str) -> Option<Point> {
    let p99 = scenario.stops(mode)?.quantiles.p99.map(|wait| wait.as_micros_f64());
    let tip = format!(
        "{}\nblocks of {}: p99 {}\n{}",
        palette::label(mode),
        time(block_us),
        finite(p99.unwrap_or(f64::INFINITY), time),
        samples(scenario.mode(mode)?),
    );
    // A stop of less than a microsecond cannot be told from none.
    Some(Point { x: block_us, y: p99.map(|us| us.max(1.0)), interval: None, tip })
}

fn over_blocks(by_block: &[Line], bar: f64) -> Markup {
    let layout = Layout {
        x: Axis { label: "length of a best-effort block (log) →", tick: short_time },
        y: Axis { label: "stop latency, p99 (log)", tick: short_time },
        x_log: true,
        y_log: true,
        y_holds: (bar * 0.7, bar * 2.0),
        bar: Some((bar, "our bar")),
    };
    lines("Stop latency over block length", by_block, &layout)
}

/// Blocks and block length out of the id of a grid: `grid-1056x100us`.
fn grid(workload: &str) -> Option<(f64, f64)> {
    let (blocks, block) = workload.strip_prefix("grid-")?.split_once('x')?;
    let digits = block.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let unit = match &block[digits..] {
        "ns" => 1e-3,
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        _ => return None,
    };
    Some((blocks.parse().ok()?, block[..digits].parse::<f64>().ok()? * unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_read_out_of_its_id() {
        assert_eq!(grid("grid-1056x100us"), Some((1056.0, 100.0)));
        assert_eq!(grid("grid-132x1.5ms"), Some((132.0, 1500.0)));
        assert_eq!(grid("grid-132x5"), None);
        assert_eq!(grid("vgg19-inference-eager-b1"), None);
    }
}
