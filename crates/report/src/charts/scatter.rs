//! What latency pays for what throughput gets: a dot for each pair and mode. The corner below the bars is where one
//! wants to be.

use maud::{Markup, html};

use super::axis::{Area, Axis, Scale};
use super::{BAND, overload_band, picture};
use crate::numbers::{percent, px, short_times, times};
use crate::palette;

pub struct Dot<'a> {
    pub mode: &'a str,
    /// Best-effort throughput, of the ideal.
    pub of_ideal: f64,
    /// p99 over that alone; none when overloaded.
    pub over_alone: Option<f64>,
    pub tip: String,
}

/// The bars that the design sets for ebb, drawn as a corner.
#[derive(Clone, Copy)]
pub struct Corner {
    pub of_ideal: f64,
    pub over_alone: f64,
}

pub fn scatter(name: &str, dots: &[Dot], corner: Corner) -> Markup {
    let area = Area { width: 860.0, height: 430.0, left: 62.0, right: 14.0, top: 48.0, bottom: 42.0 };
    let finite = || dots.iter().filter_map(|dot| dot.over_alone);
    let (low, high) = (finite().fold(0.95, f64::min), finite().fold(2.0, f64::max));
    let x = Scale::linear(across(dots), area.across());
    let y = Scale::log((low * 0.97, high * 1.15), area.up());
    let ((left, right), (bottom, top)) = (area.across(), area.up());
    let content = html! {
        rect.goal x=(px(x.at(corner.of_ideal))) y=(px(y.at(corner.over_alone)))
            width=(px(right - x.at(corner.of_ideal))) height=(px(bottom - y.at(corner.over_alone))) {
            title {
                "our bars: p99 at most " (times(corner.over_alone)) " of alone, best-effort at least "
                (percent(corner.of_ideal)) " of ideal"
            }
        }
        (overload_band(left, right, top))
        (area.frame(
            &x, &Axis { label: "best-effort throughput, of ideal →", tick: |v| format!("{:.0}%", v * 100.0) },
            &y, &Axis { label: "p99 from arrival over p99 alone (log) ↓ lower is better", tick: short_times },
        ))
        // Ours come last, so that nothing lies on them.
        @for dot in dots.iter().filter(|dot| !palette::of(dot.mode).ours) { (draw(dot, &x, &y, top)) }
        @for dot in dots.iter().filter(|dot| palette::of(dot.mode).ours) { (draw(dot, &x, &y, top)) }
    };
    picture(name, (area.width, area.height), 560.0, content)
}

/// From a round share below the least to a little above the most; the ideal is always in sight.
fn across(dots: &[Dot]) -> (f64, f64) {
    let shares = || dots.iter().map(|dot| dot.of_ideal);
    let (low, high) = (shares().fold(0.8, f64::min), shares().fold(1.05, f64::max));
    (((low - 0.04) * 10.0).floor().max(0.0) / 10.0, high + 0.02)
}

fn draw(dot: &Dot, x: &Scale, y: &Scale, top: f64) -> Markup {
    let height = dot.over_alone.map_or(top - BAND / 2.0 - 2.0, |ratio| y.at(ratio));
    html! {
        g.dot.{ (palette::class(dot.mode)) } {
            title { (dot.tip) }
            (palette::mark(dot.mode, x.at(dot.of_ideal), height, 4.6))
        }
    }
}
