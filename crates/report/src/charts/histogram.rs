//! How a quantity is distributed: a row for each mode over one logarithmic axis, so that shapes can be compared
//! without lying on each other.

use maud::{Markup, html};

use super::axis::Scale;
use super::picture;
use crate::numbers::{count, px, short_time, time};
use crate::palette;

pub struct Row<'a> {
    pub mode: &'a str,
    /// Microseconds, ascending.
    pub values: &'a [f64],
    /// Those that have no value because they were never served.
    pub missing: usize,
}

const HEIGHT: f64 = 46.0;
const LEFT: f64 = 108.0;
const RIGHT: f64 = 466.0;
const BINS: usize = 72;

pub fn histogram(name: &str, label: &str, rows: &[Row], bar: Option<f64>) -> Markup {
    let all = || rows.iter().flat_map(|row| row.values.first().into_iter().chain(row.values.last())).copied();
    let low = all().chain(bar).fold(f64::INFINITY, f64::min).max(1.0);
    let high = all().chain(bar).fold(low * 10.0, f64::max);
    let x = Scale::log((low / 1.2, high * 1.2), (LEFT, RIGHT));
    let bottom = 20.0 + HEIGHT * rows.len() as f64;
    let content = html! {
        g.grid { @for tick in x.ticks() {
            line x1=(px(x.at(tick))) x2=(px(x.at(tick))) y1="14" y2=(px(bottom)) {}
        } }
        g.tick { @for tick in x.ticks() {
            text.mid x=(px(x.at(tick))) y=(px(bottom + 15.0)) { (short_time(tick)) }
        } }
        text.label.end x=(px(RIGHT)) y=(px(bottom + 34.0)) { (label) }
        @if let Some(bar) = bar {
            g.slo {
                path d={ "M" (px(x.at(bar))) " 14V" (px(bottom)) } {}
                text x=(px(x.at(bar) + 4.0)) y="11" { "our bar, " (time(bar)) }
            }
        }
        @for (index, row) in rows.iter().enumerate() { (draw(row, &x, 20.0 + HEIGHT * (index as f64 + 1.0))) }
    };
    picture(name, (RIGHT + 14.0, bottom + 40.0), 340.0, content)
}

fn draw(row: &Row, x: &Scale, bottom: f64) -> Markup {
    let bins = fill(row.values, x);
    let most = bins.iter().copied().max().unwrap_or(0).max(1) as f64;
    let width = (RIGHT - LEFT) / BINS as f64;
    let mut shape = format!("M{} {}", px(LEFT), px(bottom));
    for (index, bin) in bins.iter().enumerate() {
        let top = bottom - (HEIGHT - 12.0) * *bin as f64 / most;
        shape += &format!("V{}H{}", px(top), px(LEFT + width * (index as f64 + 1.0)));
    }
    let at = |share: f64| quantile(row, share);
    let told = |share: f64| at(share).map_or("overload".into(), time);
    html! {
        g.{ (palette::class(row.mode)) } {
            title {
                (palette::label(row.mode)) ": p50 " (told(0.5)) ", p99 " (told(0.99))
                ", n = " (count(row.values.len() + row.missing))
            }
            path.shape d={ (shape) "V" (px(bottom)) "Z" } {}
            @for (share, class) in [(0.5, "quantile median"), (0.99, "quantile")] {
                @if let Some(value) = at(share) {
                    path class=(class) d={ "M" (px(x.at(value))) " " (px(bottom)) "v-" (px(HEIGHT - 12.0)) } {}
                }
            }
            text.name.end x=(px(LEFT - 8.0)) y=(px(bottom - 18.0)) { (palette::label(row.mode)) }
            text.figures.end x=(px(LEFT - 8.0)) y=(px(bottom - 4.0)) { "p99 " (told(0.99)) }
        }
    }
}

fn fill(values: &[f64], x: &Scale) -> [usize; BINS] {
    let mut bins = [0; BINS];
    for value in values {
        let place = (x.at(*value) - LEFT) / (RIGHT - LEFT) * BINS as f64;
        bins[(place as usize).min(BINS - 1)] += 1;
    }
    bins
}

/// Nearest rank, over those without a value too.
fn quantile(row: &Row, share: f64) -> Option<f64> {
    let rank = ((row.values.len() + row.missing) as f64 * share).ceil().max(1.0) as usize;
    row.values.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_bin() {
        let x = Scale::log((1.0, 1000.0), (LEFT, RIGHT));
        let bins = fill(&[0.1, 1.0, 30.0, 1000.0, 5000.0], &x);
        assert_eq!(bins.iter().sum::<usize>(), 5);
        assert_eq!((bins[0], bins[BINS - 1]), (2, 2));
    }

    #[test]
    fn the_unserved_count_in_the_quantiles() {
        let row = Row { mode: "mps", values: &[1.0, 2.0], missing: 2 };
        assert_eq!(quantile(&row, 0.5), Some(2.0));
        assert_eq!(quantile(&row, 0.99), None);
    }
}
