//! `ebb status` and `ebb ps`: who shares the GPUs.
//!
//! What is shown is the daemon's report. A process that runs without a board is not in it: `ebb run --report` tells of
//! those.
//!
//! * `page`: the report as a page
//! * `list`: its processes, one to a line

mod list;
mod page;
#[cfg(test)]
mod tests;

use anyhow::Result;
use daemon::report::Report;
use daemon::{Error, Place, client};

use crate::arguments::Output;

pub fn status(output: Output) -> Result<()> {
    let (_, report) = find()?;
    match output {
        Output::Text => print!("{}", page::text(&report)),
        Output::Json => println!("{}", report.json()),
    }
    Ok(())
}

pub fn ps(output: Output) -> Result<()> {
    let (_, report) = find()?;
    match output {
        Output::Text => print!("{}", list::text(&report)),
        Output::Json => println!("{}", list::json(&report)),
    }
    Ok(())
}

/// What the daemon that answers reports.
pub fn report() -> Result<Report> {
    Ok(find()?.1)
}

/// A report as it is printed.
pub fn page(report: &Report) -> String {
    page::text(report)
}

/// Where the daemon is that answers.
pub fn place() -> Result<Place> {
    Ok(find()?.0)
}

/// The first daemon that answers; the same that `ebb run` would choose.
pub fn find() -> Result<(Place, Report), Error> {
    let mut refusal = None;
    for place in Place::candidates()? {
        match client::report(&place) {
            Ok(report) => return Ok((place, report)),
            // That somebody forbids us to ask says more than that nobody is there.
            Err(error @ Error::NoDaemon { .. }) => refusal = refusal.or(Some(error)),
            Err(error) => refusal = Some(error),
        }
    }
    Err(refusal.expect("there is always a place to ask at"))
}
