//! From values to pixels, and the frame with its ticks.

use maud::{Markup, html};

use crate::numbers::px;

/// A range of values laid over a range of pixels.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    pub fn linear(values: (f64, f64), pixels: (f64, f64)) -> Self {
        let high = if values.1 > values.0 { values.1 } else { values.0 + 1.0 };
        Self { low: values.0, high, from: pixels.0, to: pixels.1, log: false }
    }

    /// A logarithmic scale needs values above zero; what is not is lifted to a tiny one.
    pub fn log(values: (f64, f64), pixels: (f64, f64)) -> Self {
        let low = values.0.max(1e-9);
        let high = if values.1 > low { values.1 } else { low * 10.0 };
        Self { low, high, from: pixels.0, to: pixels.1, log: true }
    }

    /// Where a value lies. What is outside of the range lies at its edge.
    pub fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    pub fn low(&self) -> f64 {
        self.low
    }

    pub fn high(&self) -> f64 {
        self.high
    }

    /// Round values, about half a dozen. A logarithmic scale of less than a decade has the ticks of a linear one.
    pub fn ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        if !self.log || decades < 0.6 {
            return self.even_ticks(if self.log { 4.0 } else { 5.0 });
        }
        let steps: &[f64] = match decades {
            _ if decades > 3.2 => &[1.0],
            _ if decades > 1.8 => &[1.0, 3.0],
            _ => &[1.0, 2.0, 5.0],
        };
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let all = (first..=last).flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        all.filter(|tick| self.holds(*tick)).collect()
    }

    fn even_ticks(&self, wanted: f64) -> Vec<f64> {
        let rough = (self.high - self.low) / wanted;
        let power = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        (first..first + 20).map(|index| index as f64 * step).take_while(|tick| self.holds(*tick)).collect()
    }

    fn holds(&self, value: f64) -> bool {
        let slack = (self.high - self.low) * 1e-9;
        value >= self.low - slack && value <= self.high + slack
    }
}

/// What is written along an axis: at each tick, and over all.
pub struct Axis<'a> {
    pub label: &'a str,
    pub tick: fn(f64) -> String,
}

/// The area in which values are drawn, inside of a picture that has room for labels around it.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub width: f64,
    pub height: f64,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Area {
    pub fn across(&self) -> (f64, f64) {
        (self.left, self.width - self.right)
    }

    /// From the bottom to the top, as values grow.
    pub fn up(&self) -> (f64, f64) {
        (self.height - self.bottom, self.top)
    }

    /// Grid, ticks and labels.
    pub fn frame(&self, x: &Scale, x_axis: &Axis, y: &Scale, y_axis: &Axis) -> Markup {
        let ((left, right), (bottom, top)) = (self.across(), self.up());
        html! {
            g.grid {
                @for tick in y.ticks() {
                    line x1=(px(left)) x2=(px(right)) y1=(px(y.at(tick))) y2=(px(y.at(tick))) {}
                }
                @for tick in x.ticks() {
                    line x1=(px(x.at(tick))) x2=(px(x.at(tick))) y1=(px(top)) y2=(px(bottom)) {}
                }
            }
            path.axis d={ "M" (px(left)) " " (px(top)) "V" (px(bottom)) "H" (px(right)) } {}
            g.tick {
                @for tick in y.ticks() {
                    text.end x=(px(left - 6.0)) y=(px(y.at(tick) + 3.5)) { ((y_axis.tick)(tick)) }
                }
                @for tick in x.ticks() {
                    text.mid x=(px(x.at(tick))) y=(px(bottom + 15.0)) { ((x_axis.tick)(tick)) }
                }
            }
            (self.labels(x_axis.label, y_axis.label))
        }
    }

    /// The names of the axes: one under, one over the upper left corner, where it can be read without turning the
    /// head.
    pub fn labels(&self, x: &str, y: &str) -> Markup {
        html! {
            text.label.end x=(px(self.width - self.right)) y=(px(self.height - 4.0)) { (x) }
            text.label x="2" y="12" { (y) }
        }
    }
}

/// Joins points to a line; nothing is drawn between two points in the same tenth of a pixel.
pub fn polyline(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    let mut last = (String::new(), String::new());
    for (x, y) in points {
        let next = (px(x), px(y));
        if next == last {
            continue;
        }
        // A run along one axis is shorter when said as such.
        match path.is_empty() {
            true => path += &format!("M{} {}", next.0, next.1),
            false if next.0 == last.0 => path += &format!("V{}", next.1),
            false if next.1 == last.1 => path += &format!("H{}", next.0),
            false => path += &format!("L{} {}", next.0, next.1),
        }
        last = next;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_where_they_should_and_never_outside() {
        let scale = Scale::log((1.0, 100.0), (0.0, 200.0));
        assert!((scale.at(10.0) - 100.0).abs() < 1e-9);
        assert_eq!(scale.at(0.0), 0.0);
        assert_eq!(scale.at(f64::INFINITY), 200.0);
        let up = Scale::linear((0.0, 2.0), (100.0, 0.0));
        assert_eq!(up.at(0.5), 75.0);
    }

    #[test]
    fn ticks_are_round_few_and_inside() {
        let cases = [(1.0, 1.2), (0.9, 3.0), (1.0, 40.0), (0.2, 900.0), (1.0, 1e6)];
        for (low, high) in cases {
            let ticks = Scale::log((low, high), (0.0, 1.0)).ticks();
            assert!((2..=9).contains(&ticks.len()), "{low} to {high}: {ticks:?}");
            assert!(ticks.iter().all(|tick| (low..=high * (1.0 + 1e-9)).contains(tick)), "{ticks:?}");
        }
        assert_eq!(Scale::linear((0.0, 1.0), (0.0, 1.0)).ticks().len(), 6);
    }

    #[test]
    fn an_empty_range_still_has_room() {
        assert!(Scale::linear((3.0, 3.0), (0.0, 10.0)).at(3.0).is_finite());
        assert!(Scale::log((0.0, 0.0), (0.0, 10.0)).at(0.0).is_finite());
    }

    #[test]
    fn a_line_says_nothing_twice() {
        assert_eq!(polyline([(0.0, 0.0), (0.01, 0.0), (5.0, 0.0), (5.0, 3.0), (6.0, 4.0)]), "M0 0H5V3L6 4");
    }
}
