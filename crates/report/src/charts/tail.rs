//! How many requests are slower than x: the complement of a latency's distribution, both axes logarithmic.
//!
//! The usual CDF shows the median well and squeezes p99 and p99.9 into its last pixel. Turned over, each nine has
//! as much room as the next. Requests that were never served are slower than any x: a curve with such requests
//! never comes down.

use maud::{Markup, html};

use super::axis::{Area, Axis, Scale, polyline};
use super::picture;
use crate::numbers::{count, px, short_time, time};
use crate::palette;

pub struct Series<'a> {
    pub mode: &'a str,
    /// Latencies of the served requests in microseconds, ascending.
    pub served: &'a [f64],
    /// All that were offered; those beyond `served` have no latency.
    pub offered: usize,
    pub tip: String,
}

/// Points of one curve: enough for every pixel, few enough for a page with hundreds of curves.
const POINTS: usize = 150;

pub fn tail(name: &str, label: &str, series: &[Series], slo: Option<f64>) -> Markup {
    let area = Area { width: 480.0, height: 300.0, left: 46.0, right: 44.0, top: 30.0, bottom: 42.0 };
    let most = series.iter().map(|one| one.offered).max().unwrap_or(1).max(1);
    let served = || series.iter().flat_map(|one| one.served.first().into_iter().chain(one.served.last()));
    let low = served().chain(slo.as_ref()).copied().fold(f64::INFINITY, f64::min);
    let high = served().chain(slo.as_ref()).copied().fold(0.0, f64::max);
    let low = if low.is_finite() { low } else { 1.0 };
    let x = Scale::log((low * 0.9, (high * 1.1).max(low * 1.5)), area.across());
    let y = Scale::log(((0.6 / most as f64).clamp(6e-5, 0.05), 1.0), area.up());
    let ((_, right), (bottom, top)) = (area.across(), area.up());
    let nines = [(0.5, "p50"), (0.1, "p90"), (0.01, "p99"), (0.001, "p99.9"), (0.0001, "p99.99")];
    let content = html! {
        (area.frame(
            &x, &Axis { label, tick: short_time },
            &y, &Axis { label: "share of all offered requests that are slower (log)", tick: share },
        ))
        g.tick {
            @for (share, name) in nines.iter().filter(|(share, _)| *share >= y.low()) {
                text x=(px(right + 5.0)) y=(px(y.at(*share) + 3.5)) { (name) }
            }
        }
        @if let Some(slo) = slo {
            g.slo {
                title { "SLO: " (time(slo)) }
                path d={ "M" (px(x.at(slo))) " " (px(top)) "V" (px(bottom)) } {}
                text.mid x=(px(x.at(slo))) y=(px(top - 3.0)) { "SLO" }
            }
        }
        @for one in series.iter().filter(|one| !palette::of(one.mode).ours) { (curve(one, &x, &y)) }
        @for one in series.iter().filter(|one| palette::of(one.mode).ours) { (curve(one, &x, &y)) }
    };
    picture(name, (area.width, area.height), 340.0, content)
}

fn share(value: f64) -> String {
    match value {
        _ if value >= 0.0095 => format!("{:.0}%", value * 100.0),
        _ => format!("{}%", value * 100.0),
    }
}

fn curve(series: &Series, x: &Scale, y: &Scale) -> Markup {
    html! {
        g.{ (palette::class(series.mode)) } {
            title { (series.tip) ", n = " (count(series.offered)) }
            path.line d=(polyline(steps(series.served, series.offered).map(|(us, slower)| (x.at(us), y.at(slower))))) {}
        }
    }
}

/// The corners of the curve: along to the next time, then down. Ranks are dense where the axis is.
fn steps(served: &[f64], offered: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
    let slower = move |rank: usize| (offered - rank) as f64 / offered.max(1) as f64;
    let mut before = 1.0;
    let corners = thin(served.len(), offered).into_iter().flat_map(move |rank| {
        let (us, here) = (served[rank - 1], slower(rank));
        [(us, std::mem::replace(&mut before, here)), (us, here)]
    });
    // After the slowest served one, the unserved remain.
    let rest = (offered > served.len()).then(|| (f64::INFINITY, slower(served.len())));
    corners.chain(rest)
}

/// Ranks from 1 to `served`: all if few, else about [`POINTS`], the last ones all.
fn thin(served: usize, offered: usize) -> Vec<usize> {
    if served <= POINTS {
        return (1..=served).collect();
    }
    let bottom = (1.0 / offered as f64).ln();
    let rank = |index: usize| {
        let slower = (bottom * index as f64 / (POINTS - 1) as f64).exp();
        ((offered as f64 * (1.0 - slower)).round() as usize).clamp(1, served)
    };
    // Half of the requests lie in the first few pixels from the top, so ranks even in number join them.
    let mut ranks: Vec<_> =
        (0..POINTS).map(rank).chain((1..30).map(|part| (served * part / 30).max(1))).collect();
    ranks.push(served);
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_ends_and_the_tail() {
        let ranks = thin(100_000, 100_000);
        assert!(ranks.len() < 250, "{}", ranks.len());
        assert_eq!((ranks[0], ranks[ranks.len() - 1]), (1, 100_000));
        assert!(
            ranks.iter().filter(|rank| **rank > 99_000).count() > 50,
            "the last hundredth has its points"
        );
        assert_eq!(thin(3, 9), [1, 2, 3]);
    }

    #[test]
    fn what_was_never_served_keeps_the_curve_up() {
        let points: Vec<_> = steps(&[10.0, 20.0], 4).collect();
        assert_eq!(points, [(10.0, 1.0), (10.0, 0.75), (20.0, 0.75), (20.0, 0.5), (f64::INFINITY, 0.5)]);
        assert_eq!(steps(&[], 2).collect::<Vec<_>>(), [(f64::INFINITY, 1.0)]);
    }

    #[test]
    fn nothing_offered_draws_nothing_and_breaks_nothing() {
        let none = Series { mode: "mps", served: &[], offered: 0, tip: "MPS".into() };
        assert!(tail("t", "l", &[none], None).into_string().contains("<svg"));
    }
}
