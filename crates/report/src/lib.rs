//! Results as pages for people: [`html`], one file that needs nothing else; [`markdown`], a summary for repositories
//! and mails; [`picture`], the headline as an SVG; [`summary`], a few lines for a terminal.
//!
//! The crate is text in and text out. It derives no figure of its own: what a p99 is, [`results`] says. What it
//! adds is judgement about what to show first, and the promise that what is missing is shown as well. Names come
//! from files of other people, so all text is escaped where it is written, by the macro that writes it.
//!
//! * `view`: an archive in the order of the page; `summary`: many scenarios in one line; `overview`: all modes and
//!   policies of a suite, and the better domain; `choice`: which one that is; `bars`: the design's table
//! * `page`: the HTML file; `charts`: its pictures, from plain numbers
//! * `palette`: how each mode looks; `numbers`: how numbers read

#![forbid(unsafe_code)]

mod bars;
mod charts;
mod choice;
mod markdown;
mod numbers;
mod overview;
mod page;
mod palette;
mod picture;
mod summary;
mod view;

use results::{Archive, Figures};

use view::View;

/// The report as one HTML file.
pub fn html(archive: &Archive, figures: &Figures) -> String {
    page::page(&View::new(archive, figures))
}

/// The headline, the bars and a table for each scenario.
pub fn markdown(archive: &Archive, figures: &Figures) -> String {
    markdown::markdown(&View::new(archive, figures))
}

/// What each mode and policy costs and gives over all scenarios of a suite, for a terminal.
pub fn summary(archive: &Archive, figures: &Figures) -> String {
    overview::text(&View::new(archive, figures))
}

/// The headline as an SVG; none where no pair of a latency and a best-effort tenant was measured.
pub fn picture(archive: &Archive, figures: &Figures) -> Option<String> {
    picture::picture(&View::new(archive, figures))
}
