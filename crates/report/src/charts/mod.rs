//! Charts as SVG, drawn from plain numbers: a chart knows colours and pixels, and nothing of archives.
//!
//! Every chart is one `<svg>` with a name for those who cannot see it. Its text has the page's colours, its series
//! those of their modes ([`crate::palette`]), so one stylesheet does light, dark and print. What a dot or a cell
//! stands for is in its `<title>`, which browsers show when it is pointed at, with or without script.
//!
//! * [`axis`]: values to pixels, ticks, the frame
//! * [`scatter`]: what latency pays for what throughput gets
//! * [`tail`]: how many requests are slower than x
//! * [`lines`]: a figure over a swept quantity
//! * [`heatmap`]: a figure for each pair
//! * [`histogram`]: how a quantity is distributed, a row for each mode
//! * [`timeline`]: who had the GPU when

pub mod axis;
pub mod heatmap;
pub mod histogram;
pub mod lines;
pub mod scatter;
pub mod tail;
pub mod timeline;

use maud::{Markup, html};

use crate::numbers::px;

/// The picture around a chart. `least` is the width in pixels under which its text would be too small: a narrower
/// screen scrolls.
fn picture(name: &str, (width, height): (f64, f64), least: f64, content: Markup) -> Markup {
    html! {
        div.chart {
            svg viewBox={ "0 0 " (px(width)) " " (px(height)) } role="img" aria-label=(name)
                style={ "max-width:" (px(width * 1.25)) "px;min-width:" (px(least)) "px" } { (content) }
        }
    }
}

/// Pixels between the frame and the band over it where values are infinite.
const BAND: f64 = 22.0;

/// The band over a chart's frame in which what is overloaded is drawn.
fn overload_band(left: f64, right: f64, top: f64) -> Markup {
    html! {
        rect.over x=(px(left)) y=(px(top - BAND)) width=(px(right - left)) height=(px(BAND - 4.0)) {}
        text.tick.end x=(px(left - 6.0)) y=(px(top - BAND + 13.0)) { "overload" }
    }
}
