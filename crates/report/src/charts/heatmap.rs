//! A figure for each pair, one map for each mode.
//!
//! The colours are steps and not a gradient, so that a cell can be told from the legend: blue is within the bar,
//! and what is not goes from sand to dark brown, which keeps its order in grey print and for every eye. The figure
//! stands in the cell in any case.

use maud::{Markup, html};

use super::picture;
use crate::numbers::{OVERLOAD, px, times};

pub struct Cell {
    pub row: usize,
    pub column: usize,
    /// None when overloaded.
    pub value: Option<f64>,
    /// The small text under the figure.
    pub note: String,
    pub tip: String,
}

struct Step {
    below: f64,
    name: &'static str,
    fill: &'static str,
    ink: &'static str,
}

const fn step(below: f64, name: &'static str, fill: &'static str, ink: &'static str) -> Step {
    Step { below, name, fill, ink }
}

const STEPS: [Step; 7] = [
    step(1.025, "≤ 1.02×", "#9ecae9", "#10202e"),
    step(1.055, "≤ 1.05×", "#d3e7f5", "#10202e"),
    step(1.205, "≤ 1.2×", "#fff3d1", "#2b2005"),
    step(1.505, "≤ 1.5×", "#fed98e", "#2b2005"),
    step(3.05, "≤ 3×", "#f5a04a", "#2b1505"),
    step(10.05, "≤ 10×", "#c4560f", "#ffffff"),
    step(f64::INFINITY, "more", "#7a2d06", "#ffffff"),
];
const OVER: Step = step(f64::INFINITY, OVERLOAD, "#33150a", "#ffffff");

fn of(value: Option<f64>) -> &'static Step {
    let Some(value) = value else { return &OVER };
    STEPS.iter().find(|step| value < step.below).unwrap_or(&STEPS[STEPS.len() - 1])
}

const CELL: (f64, f64) = (66.0, 40.0);

/// Room for the names of the rows.
fn margin(rows: &[String]) -> f64 {
    8.0 + 6.4 * rows.iter().map(|row| row.chars().count()).max().unwrap_or(0) as f64
}

/// How wide a map is at its natural size.
pub fn width(rows: &[String], columns: &[String]) -> f64 {
    (margin(rows) + CELL.0 * columns.len() as f64 + 2.0).ceil()
}

/// A map with a row for each of `rows` and a column for each of `columns`; what has no cell was not measured.
pub fn heatmap(name: &str, rows: &[String], columns: &[String], cells: &[Cell]) -> Markup {
    let (left, width) = (margin(rows), width(rows, columns));
    let height = 46.0 + CELL.1 * rows.len() as f64;
    let content = html! {
        g.tick {
            @for (index, column) in columns.iter().enumerate() {
                // Two heights, because neighbours' names are wider than their columns.
                @let y = if index % 2 == 0 { "34" } else { "18" };
                text.mid x=(px(left + CELL.0 * (index as f64 + 0.5))) y=(y) { (column) }
            }
            @for (index, row) in rows.iter().enumerate() {
                text.end x=(px(left - 6.0)) y=(px(46.0 + CELL.1 * (index as f64 + 0.5))) { (row) }
            }
        }
        @for row in 0..rows.len() { @for column in 0..columns.len() {
            rect.void x=(px(left + CELL.0 * column as f64 + 1.0)) y=(px(41.0 + CELL.1 * row as f64))
                width=(px(CELL.0 - 2.0)) height=(px(CELL.1 - 2.0)) {}
        } }
        @for cell in cells { (draw(cell, left)) }
    };
    picture(name, (width, height), width.min(360.0), content)
}

fn draw(cell: &Cell, left: f64) -> Markup {
    let (x, y) = (left + CELL.0 * cell.column as f64, 40.0 + CELL.1 * cell.row as f64);
    let step = of(cell.value);
    let (middle, figure) = (px(x + CELL.0 / 2.0), cell.value.map_or(OVERLOAD.into(), times));
    html! {
        g {
            title { (cell.tip) }
            rect x=(px(x + 1.0)) y=(px(y + 1.0)) width=(px(CELL.0 - 2.0)) height=(px(CELL.1 - 2.0))
                fill=(step.fill) {}
            text.big.mid x=(middle) y=(px(y + 18.0)) style={ "fill:" (step.ink) } { (figure) }
            text.small.mid x=(middle) y=(px(y + 32.0)) style={ "fill:" (step.ink) } { (cell.note) }
        }
    }
}

/// What the colours mean.
pub fn legend() -> Markup {
    html! {
        ul.steps { @for step in STEPS.iter().chain([&OVER]) {
            li style={ "background:" (step.fill) ";color:" (step.ink) } { (step.name) }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_the_colour_whose_name_it_would_be_rounded_to() {
        assert_eq!(of(Some(1.02)).name, "≤ 1.02×");
        assert_eq!(of(Some(1.03)).name, "≤ 1.05×");
        assert_eq!(of(Some(0.9)).name, "≤ 1.02×");
        assert_eq!(of(Some(1e9)).name, "more");
        assert_eq!(of(None).name, OVERLOAD);
    }
}
