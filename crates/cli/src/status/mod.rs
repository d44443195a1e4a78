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

use std::time::{Duration, Instant};

use anyhow::Result;
use daemon::report::Report;
use daemon::{Error, Place, client};

use model::Nanos;

use crate::arguments::Output;
use crate::users::UserNames;

/// How long the daemon may take to look who else is on the GPUs. Without the answer, the report is shown as it is.
const TO_LOOK: Duration = Duration::from_millis(1_000);
/// What it found so long ago is good enough: it does not look again before that.
const FRESH: Nanos = Nanos::from_millis(2_500);

pub fn status(output: Output) -> Result<()> {
    let (place, mut report) = find()?;
    let begin = Instant::now();
    // Who else is on the GPUs is looked up when somebody asks, and the next one who asks is told.
    while is_stale(&report) && begin.elapsed() < TO_LOOK {
        std::thread::sleep(Duration::from_millis(20));
        report = client::report(&place)?;
    }
    match output {
        Output::Text => print!("{}", page::text(&report, &UserNames::of(&report))),
        Output::Json => println!("{}", report.json()),
    }
    Ok(())
}

fn is_stale(report: &Report) -> bool {
    let seated = report.gpus.iter().any(|gpu| !gpu.processes.is_empty());
    seated && report.daemon.survey_age_ns.is_none_or(|age| Nanos(age) > FRESH)
}

pub fn ps(output: Output) -> Result<()> {
    let (_, report) = find()?;
    match output {
        Output::Text => print!("{}", list::text(&report, &UserNames::of(&report))),
        Output::Json => println!("{}", list::json(&report)),
    }
    Ok(())
}

/// What the daemon that answers reports.
pub fn report() -> Result<Report> {
    Ok(find()?.1)
}

/// A report as it is printed, with these names.
pub fn page(report: &Report, names: &UserNames) -> String {
    page::text(report, names)
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
