//! The headline as a picture by itself, for the top of a README: for each way of sharing, what requests pay and what
//! best-effort work gets, over all pairs. A way that was measured in some of the pairs only is left out, and said to be:
//! it would be compared over others than the rest.
//!
//! It has a ground of its own, because whoever shows it may be light or dark whatever the reader's system says; its
//! colours follow the reader's system. Nothing outside of it is needed, not even a font.

use maud::{Markup, PreEscaped, html};

use crate::numbers::{count, many, percent, px, times};
use crate::palette;
use crate::summary::{Summary, pairs};
use crate::view::{View, modes_of, shares};

const WIDTH: f64 = 860.0;
const TOP: f64 = 84.0;
const ROW: f64 = 38.0;
/// Where the bars of the two figures begin, and how long they may be.
const PAID: (f64, f64) = (158.0, 190.0);
const GOT: (f64, f64) = (560.0, 200.0);
/// How far a share may reach beyond the whole.
const MOST: f64 = 1.18;

/// None if no pair was measured in any way of sharing.
pub fn picture(view: &View) -> Option<String> {
    let pairs = pairs(view);
    let modes = modes_of(pairs.iter().copied()).into_iter().filter(|mode| shares(mode));
    let all: Vec<(&str, Summary)> =
        modes.map(|mode| (mode, Summary::of(pairs.iter().copied(), mode))).collect();
    let most = all.iter().map(|(_, summary)| summary.scenarios).max()?;
    let (rows, left_out): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(_, summary)| summary.scenarios == most);
    let height = TOP + ROW * rows.len() as f64 + 52.0;
    let highest = rows.iter().filter_map(|(_, summary)| Some(summary.over_alone?.worst)).fold(2.0, f64::max);
    let name = "What requests pay and what best-effort work gets, by way of sharing";
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (px(WIDTH)) " " (px(height)) }
            width=(px(WIDTH)) height=(px(height)) role="img" aria-label=(name) {
            title { (name) }
            style { (style(&modes_of(view.scenarios()))) }
            rect.ground x="0.5" y="0.5" width=(px(WIDTH - 1.0)) height=(px(height - 1.0)) rx="8" {}
            text.title x="20" y="30" { (title(view, most)) }
            text.head x=(px(PAID.0)) y="62" { "p99 latency over alone, log; lower is better" }
            text.head x=(px(GOT.0)) y="62" { "best-effort work of ideal; higher is better" }
            path.one d={ "M" (px(PAID.0)) " 72V" (px(height - 50.0)) } {}
            path.one d={ "M" (px(GOT.0 + GOT.1)) " 72V" (px(height - 50.0)) "M" (px(GOT.0)) " 72V" (px(height - 50.0)) } {}
            @for (index, (mode, summary)) in rows.iter().enumerate() {
                (row(mode, summary, highest, TOP + ROW * index as f64))
            }
            @for (line, text) in foot(view, &left_out).iter().enumerate() {
                text.foot x="20" y=(px(height - 30.0 + 16.0 * line as f64)) { (text) }
            }
        }
    };
    Some(picture.into_string())
}

fn title(view: &View, pairs: usize) -> String {
    let device =
        view.archive.machines.first().map_or("a GPU", |machine| match machine.device.kind.as_str() {
            "soft" => "the software GPU",
            _ => &machine.device.name,
        });
    format!("{} of a latency and a best-effort tenant on {device}", many(pairs, "pair"))
}

/// What the bars mean, and who has none.
fn foot(view: &View, left_out: &[(&str, Summary)]) -> [String; 2] {
    let machine = view.archive.machines.last();
    let day = machine.and_then(|machine| machine.at.split('T').next()).unwrap_or_default();
    let names: Vec<String> = left_out.iter().map(|(mode, _)| palette::label(mode).into_owned()).collect();
    let left_out = match names.as_slice() {
        [] => String::new(),
        names => format!(" Measured in a part of the pairs, and left out: {}.", names.join("; ")),
    };
    [
        "Latency from arrival, over all offered requests: median over the pairs, line to the worst. Best-effort: mean."
            .to_owned(),
        format!("{day}.{left_out}"),
    ]
}

fn row(mode: &str, summary: &Summary, highest: f64, top: f64) -> Markup {
    let along = |ratio: f64| PAID.0 + PAID.1 * (ratio.max(1.0).ln() / highest.ln().max(0.1)).min(1.0);
    let middle = top + 11.0;
    let bar = |from: f64, length: f64| {
        html! {
            rect.bar x=(px(from)) y=(px(top)) width=(px(length.max(1.5))) height="22" rx="2" {}
        }
    };
    let figure = |x: f64, text: String| html! { text.figure x=(px(x + 8.0)) y=(px(middle + 4.5)) { (text) } };
    let end = if summary.overloaded > 0 {
        PAID.0 + PAID.1
    } else {
        along(summary.over_alone.map_or(1.0, |ratio| ratio.worst))
    };
    let paid = |ratio: f64| {
        // What has no end is drawn as long as there is room.
        let middle_of_all = if ratio.is_finite() { along(ratio) } else { PAID.0 + PAID.1 };
        html! {
            (bar(PAID.0, middle_of_all - PAID.0))
            @if summary.compared > 1 && end > middle_of_all {
                path.worst d={ "M" (px(middle_of_all)) " " (px(middle)) "H" (px(end)) "M" (px(end)) " " (px(middle - 5.0)) "v10" } {}
            }
            (figure(end.max(middle_of_all), paid_in_words(ratio, summary)))
        }
    };
    let got = |share: f64| {
        let long = |share: f64| (share * GOT.1).min(GOT.1 * MOST);
        html! { (bar(GOT.0, long(share))) (figure(GOT.0 + long(share.max(1.0)), percent(share))) }
    };
    html! {
        g.{ (palette::class(mode)) } {
            (palette::mark(mode, 26.0, middle, 5.0))
            text.name x="40" y=(px(middle + 4.5)) { (palette::label(mode)) }
            @if let Some(ratio) = summary.median { (paid(ratio)) }
            @if let Some(share) = summary.of_ideal { (got(share.mean)) }
        }
    }
}

/// The median, and how many cases had no end.
fn paid_in_words(ratio: f64, summary: &Summary) -> String {
    let overloaded = || format!("{} of {} overloaded", count(summary.overloaded), count(summary.compared));
    match (ratio.is_finite(), summary.overloaded) {
        (true, 0) => times(ratio),
        (true, _) => format!("{}, {}", times(ratio), overloaded()),
        (false, _) => overloaded(),
    }
}

/// Colours by the reader's system; the same as those of the page.
fn style(modes: &[&str]) -> PreEscaped<String> {
    let colours = palette::colours(modes);
    let mut css = String::from(
        "text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;fill:#1b1f24}\
         .title{font-size:15.5px;font-weight:650}.head,.foot{fill:#57606a;font-size:12px}.name{font-size:13px}\
         .ours .name,.ours .figure{font-weight:700}.ground{fill:#fff;stroke:#dfe3e8}.one{stroke:#8a929c;fill:none}\
         .fl,.bar{fill:currentColor}.bar{fill-opacity:.55}.ours .bar{fill-opacity:1}.st,.worst{stroke:currentColor;\
         fill:none;stroke-width:1.6}",
    );
    for (slug, [light, _]) in &colours {
        css += &format!(".m-{slug}{{color:{light}}}");
    }
    css += "@media (prefers-color-scheme:dark){text{fill:#e4e8ed}.head,.foot{fill:#a7b0bb}\
            .ground{fill:#14171c;stroke:#313740}.one{stroke:#7f8894}";
    for (slug, [_, dark]) in &colours {
        css += &format!(".m-{slug}{{color:{dark}}}");
    }
    // Only our own constants went into it.
    PreEscaped(css + "}")
}
