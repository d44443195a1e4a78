//! The page: one file that needs nothing else.
//!
//! Style and script are inside, fonts are the reader's own. It is complete without the script, which only adds
//! sorting, quicker tips and a button to open all. What is long is folded; what is missing is not.
//!
//! * [`head`]: what was measured where, by which commands, and what is missing
//! * [`headline`]: the table of suites and modes, our bars, the scatter
//! * [`suite`]: a section for each suite, with [`pairs`] and [`stops`] where it has them
//! * [`scenario`]: one scenario, with its [`tables`] and [`tails`]; [`rows`]: cells of tables

mod head;
mod headline;
mod pairs;
mod rows;
mod scenario;
mod stops;
mod suite;
mod tables;
mod tails;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::palette;
use crate::view::{View, anchor, modes_of};

const STYLE: &str = include_str!("../style.css");
const SCRIPT: &str = include_str!("../script.js");

/// The whole file.
pub fn page(view: &View) -> String {
    let title = head::title(view);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content={ "ebb " (env!("CARGO_PKG_VERSION")) };
                // An icon of its own, or browsers ask a server that is not there.
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) (palette::style(&view.named())) }
            }
            body {
                header { h1 { (title) } (head::lead(view)) }
                (contents(view))
                main {
                    (headline::cards(view))
                    (legend(view))
                    (headline::section(view))
                    (head::missing(view))
                    @for one in &view.suites { (suite::section(one)) }
                    (head::setup(view))
                    (method())
                }
                footer {
                    "Written by " code { "ebb lab report" } " " (env!("CARGO_PKG_VERSION"))
                    "; every figure is derived from the raw times in the result files."
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn contents(view: &View) -> Markup {
    html! {
        nav.contents aria-label="Contents" {
            h2 { "Contents" }
            ol {
                li { a href="#headline" { "Headline" } }
                li { a href="#bars" { "Our bars" } }
                li { a href="#trade" { "Latency against throughput" } }
                @if head::something_is_missing(view) { li { a href="#missing" { "What is missing" } } }
                @for suite in &view.suites {
                    li { a href={ "#" (anchor(&["suite", suite.name])) } { "Suite " (suite.name) } }
                }
                li { a href="#setup" { "Machine and commands" } }
                li { a href="#method" { "How to read it" } }
            }
        }
    }
}

/// Every mode with its mark; each can be taken out of all tables and charts.
fn legend(view: &View) -> Markup {
    let modes = modes_of(view.scenarios());
    html! {
        div.legend role="group" aria-label="Modes shown" {
            span { "Show" }
            @for mode in modes {
                label title=(palette::of(mode).about) {
                    input type="checkbox" checked id={ "show-" (palette::slug(mode)) };
                    (palette::tag(mode))
                }
            }
        }
    }
}

/// What the words mean. Whoever doubts a figure looks here first.
const WORDS: [(&str, &str); 9] = [
    (
        "latency",
        "From scheduled arrival to completion. A request that waits because the one before it was late has waited. \
         Service time, which begins when the request is taken up, stands beside it and hides exactly that.",
    ),
    (
        "quantiles",
        "Nearest rank over all offered requests of all repetitions. One that was never served counts as infinitely \
         slow; where that reaches the quantile, the figure is “overload”.",
    ),
    (
        "within SLO",
        "Share of all offered requests that were finished, right and in time. Late, dropped and wrong ones all miss it.",
    ),
    (
        "over alone",
        "p99 from arrival divided by the same tenant's p99 alone, with the same requests at the same times, in the \
         same repetitions.",
    ),
    (
        "best-effort",
        "Iterations finished within the counted time whose result is that of the same iteration alone, bit for bit. \
         Wrong ones and ones that nobody could check are not counted.",
    ),
    (
        "ideal",
        "The share of the GPU's time that best-effort work could have had: all that the latency tenants, alone, leave \
         idle, or all that the best-effort tenants can use, if that is less. What it had is each one's part of its \
         rate alone, times the share for which it keeps the GPU busy alone. Busy is counted by what was served within the \
         counted time, whenever it was due; what was served across an end of it counts with the part inside. Where \
         contexts run at the same time, more than the ideal is possible.",
    ),
    (
        "GPU busy",
        "GPU time of all that was served within the counted time, by its length alone; above 100% for the same reason.",
    ),
    (
        "intervals",
        "95%, by bootstrap: repetitions are drawn first, then stretches of requests within them. What belongs to one \
         repetition stays together in ratios. One repetition knows nothing about the difference between two runs.",
    ),
    ("warm-up", "What is due before its end counts nowhere but in how busy the GPU is afterwards."),
];

fn method() -> Markup {
    html! {
        section id="method" {
            h2 { "How to read it" }
            dl.facts { @for (word, meaning) in WORDS { dt { (word) } dd { (meaning) } } }
        }
    }
}
