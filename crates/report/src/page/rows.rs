//! Cells of tables: a figure, by what it is sorted, and how certain it is.

use maud::{Markup, html};
use model::Nanos;
use results::Estimate;

use crate::numbers::{NONE, count, finite, millis};
use crate::palette;

/// The class of a mode's row; the first of a group has a line above it.
pub fn class(mode: &str, first: bool) -> String {
    let class = palette::class(mode);
    if first { format!("{class} first") } else { class }
}

/// Heads of columns of figures.
pub fn heads(names: &[&str]) -> Markup {
    html! { @for name in names { th scope="col" { (name) } } }
}

/// A cell with its value for sorting, and with a tip where there is something to add.
pub fn cell(text: &str, order: Option<f64>, tip: Option<String>) -> Markup {
    // An infinite number is one that scripts can read, too.
    let order = order.map_or(String::new(), |value| match value {
        f64::INFINITY => "1e300".into(),
        // Four decimals tell any two figures apart that look different.
        value => format!("{}", (value * 1e4).round() / 1e4),
    });
    html! {
        td data-v=(order) {
            @if let Some(tip) = tip { abbr title=(tip) { (text) } } @else { (text) }
        }
    }
}

pub fn none() -> Markup {
    cell(NONE, None, None)
}

pub fn number(value: usize) -> Markup {
    cell(&count(value), Some(value as f64), None)
}

/// A number that should be nought.
pub fn blemish(value: usize) -> Markup {
    html! { td.bad[value > 0] data-v=(value) { (count(value)) } }
}

/// What a person wants to know about a figure's certainty.
pub fn certainty(estimate: Estimate, show: fn(f64) -> String, samples: &str) -> String {
    format!("95%: {} to {}; {samples}", finite(estimate.low, show), finite(estimate.high, show))
}

pub fn estimate(value: Option<Estimate>, show: fn(f64) -> String, samples: &str) -> Markup {
    match value {
        None => none(),
        Some(found) => {
            cell(&finite(found.value, show), Some(found.value), Some(certainty(found, show, samples)))
        }
    }
}

/// A quantile without an interval, in milliseconds.
pub fn quantile(value: Option<Nanos>, samples: &str) -> Markup {
    let us = value.map_or(f64::INFINITY, Nanos::as_micros_f64);
    cell(&finite(us, millis), Some(us), Some(samples.into()))
}
