//! A figure over a swept quantity: a line for each mode, with its confidence intervals.

use maud::{Markup, html};

use super::axis::{Area, Axis, Scale, polyline};
use super::{BAND, overload_band, picture};
use crate::numbers::px;
use crate::palette;

pub struct Line<'a> {
    pub mode: &'a str,
    pub points: Vec<Point>,
}

pub struct Point {
    pub x: f64,
    /// None when infinite.
    pub y: Option<f64>,
    pub interval: Option<(f64, f64)>,
    pub tip: String,
}

/// How the axes are laid out.
pub struct Layout<'a> {
    pub x: Axis<'a>,
    pub y: Axis<'a>,
    pub x_log: bool,
    pub y_log: bool,
    /// Values that the y axis must show in any case.
    pub y_holds: (f64, f64),
    /// A bar to be met, drawn as a dashed line.
    pub bar: Option<(f64, &'a str)>,
}

pub fn lines(name: &str, lines: &[Line], layout: &Layout) -> Markup {
    let points = || lines.iter().flat_map(|line| &line.points);
    let overloaded = points().any(|point| point.y.is_none());
    let top = if overloaded { 26.0 + BAND } else { 26.0 };
    let area = Area { width: 480.0, height: 300.0, left: 58.0, right: 16.0, top, bottom: 42.0 };
    let (x, y) = scales(lines, layout, &area);
    let ((left, right), (_, top)) = (area.across(), area.up());
    let content = html! {
        @if overloaded { (overload_band(left, right, top)) }
        (area.frame(&x, &layout.x, &y, &layout.y))
        @if let Some((value, label)) = layout.bar {
            g.slo {
                path d={ "M" (px(left)) " " (px(y.at(value))) "H" (px(right)) } {}
                text.end x=(px(right - 3.0)) y=(px(y.at(value) - 4.0)) { (label) }
            }
        }
        @for line in lines.iter().filter(|line| !palette::of(line.mode).ours) { (draw(line, &x, &y, top)) }
        @for line in lines.iter().filter(|line| palette::of(line.mode).ours) { (draw(line, &x, &y, top)) }
    };
    picture(name, (area.width, area.height), 340.0, content)
}

fn scales(lines: &[Line], layout: &Layout, area: &Area) -> (Scale, Scale) {
    let points = || lines.iter().flat_map(|line| &line.points);
    let xs = points()
        .map(|point| point.x)
        .fold((f64::INFINITY, 0.0f64), |(low, high), x| (low.min(x), high.max(x)));
    let xs = if xs.0.is_finite() { xs } else { (1.0, 10.0) };
    let (low, high) =
        points().filter_map(|point| point.y).fold(layout.y_holds, |(low, high), y| (low.min(y), high.max(y)));
    let x = match layout.x_log {
        true => Scale::log((xs.0 / 1.3, xs.1 * 1.3), area.across()),
        false => Scale::linear((0.0, xs.1 * 1.08), area.across()),
    };
    let y = match layout.y_log {
        true => Scale::log((low * 0.93, high * 1.15), area.up()),
        false => Scale::linear((low, high * 1.05), area.up()),
    };
    (x, y)
}

fn draw(line: &Line, x: &Scale, y: &Scale, top: f64) -> Markup {
    let height = |point: &Point| point.y.map_or(top - BAND / 2.0 - 2.0, |value| y.at(value));
    html! {
        g.{ (palette::class(line.mode)) } {
            path.line d=(polyline(line.points.iter().map(|point| (x.at(point.x), height(point))))) {}
            @for point in &line.points {
                @if let Some((low, high)) = point.interval {
                    path.whisker d={ "M" (px(x.at(point.x))) " " (px(y.at(low))) "V" (px(y.at(high))) } {}
                }
                g.dot { title { (point.tip) } (palette::mark(line.mode, x.at(point.x), height(point), 4.0)) }
            }
        }
    }
}
