//! A stretch of a run to look at.
//!
//! The stretch is chosen by when requests were due, which is the same in every mode, and never by how they fared: so
//! pictures of two modes show the same moment, and none was picked for its looks. It is the stretch with the most
//! arrivals, because that is where ways of sharing differ.

use model::{Class, Nanos};

use crate::Archive;
use crate::iteration::{Checks, Verdict, finished};
use crate::record::{ALONE, Run, Scenario, TenantRun, nanos};

/// Some 50 ms, or as long as it takes for a handful of requests to arrive.
const LENGTH: Nanos = Nanos::from_millis(50);
const HANDFUL: f64 = 6.0;

/// From when to when, counted from the begin of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub from: Nanos,
    pub to: Nanos,
}

/// What one tenant did in a stretch.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    pub tenant: String,
    pub class: Class,
    pub spans: Vec<Span>,
}

/// A request or an iteration that touches the stretch; its ends may lie outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When the request was due; of an iteration, when it began.
    pub due: Nanos,
    pub start: Nanos,
    /// `None`: never finished.
    pub end: Option<Nanos>,
    pub right: bool,
}

/// The stretch of a scenario that is worth a look, for all its modes; `None` if nobody was offered anything.
pub fn stretch(archive: &Archive, scenario: &Scenario) -> Option<Stretch> {
    let runs = archive.runs.iter().filter(|run| run.is_of(&scenario.suite, &scenario.name));
    let run = runs.filter(|run| run.mode != ALONE).min_by_key(|run| run.repetition)?;
    let latency = run.tenants.iter().filter(|tenant| tenant.class == Class::Latency);
    let mut dues: Vec<u64> = latency.flat_map(arrivals).copied().collect();
    dues.retain(|due| (run.warmup_us..run.until_us).contains(due));
    dues.sort_unstable();
    let handful = HANDFUL * run.window_s() * 1e6 / dues.len().max(1) as f64;
    let length = (LENGTH.as_micros_f64() * scenario.slowdown.max(1.0)).max(handful) as u64;
    // A little before the first arrival, so that one sees what was interrupted.
    let lead = length / 20;
    let begin =
        dues.iter().copied().filter(|due| due.saturating_add(length) <= run.until_us.saturating_add(lead));
    let within = |from: u64| {
        dues.partition_point(|due| *due < from.saturating_add(length))
            - dues.partition_point(|due| *due < from)
    };
    let from = begin.rev().max_by_key(|due| within(due.saturating_sub(lead)))?.saturating_sub(lead);
    Some(Stretch { from: nanos(from), to: nanos(from.saturating_add(length)) })
}

/// What the tenants of a run did in a stretch.
pub fn tracks(run: &Run, stretch: Stretch, checks: &Checks) -> Vec<Track> {
    let of = |tenant: &TenantRun| {
        let spans = match tenant.class {
            Class::Latency => requests(tenant),
            Class::BestEffort => iterations(tenant, checks),
        };
        let touches = |span: &Span| span.due < stretch.to && span.end.is_none_or(|end| end >= stretch.from);
        let spans = spans.into_iter().filter(touches).collect();
        Track { tenant: tenant.name.clone(), class: tenant.class, spans }
    };
    run.tenants.iter().map(of).collect()
}

fn arrivals(tenant: &TenantRun) -> &[u64] {
    tenant.due_us.as_deref().unwrap_or(&tenant.start_us)
}

fn requests(tenant: &TenantRun) -> Vec<Span> {
    let at = |times: &[u64], index: usize| times.get(index).copied().map(nanos);
    let span = |(index, due): (usize, &u64)| {
        let due = nanos(*due);
        let end = at(&tenant.end_us, index);
        let right = end.is_some() && !tenant.wrong.contains(&index);
        Span { due, start: at(&tenant.start_us, index).unwrap_or(due), end, right }
    };
    arrivals(tenant).iter().enumerate().map(span).collect()
}

fn iterations(tenant: &TenantRun, checks: &Checks) -> Vec<Span> {
    let span = |iteration: crate::iteration::Iteration| {
        let start = nanos(iteration.from_us);
        let end = Some(nanos(iteration.to_us));
        Span { due: start, start, end, right: iteration.verdict == Verdict::Right }
    };
    finished(tenant, checks).into_iter().map(span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn every_mode_shows_the_same_moment_and_the_same_arrivals() {
        let archive = sample::archive();
        let checks = Checks::of(&archive);
        let scenario = archive.scenario("disb-a", "disb-a").unwrap();
        let stretch = stretch(&archive, scenario).unwrap();
        assert!(stretch.to - stretch.from >= LENGTH);
        let dues = |mode: &str| -> Vec<Nanos> {
            let run = archive.runs_of("disb-a", "disb-a", mode)[0];
            let tracks = tracks(run, stretch, &checks);
            assert_eq!(tracks.len(), 2);
            assert!(!tracks[1].spans.is_empty(), "the training is in the picture");
            let spans = tracks[0].spans.iter().map(|span| span.due);
            spans.filter(|due| (stretch.from..stretch.to).contains(due)).collect()
        };
        // At 100 requests/s, 60 ms have six on average; the busiest have more.
        assert!(dues("mps").len() > 6, "{:?}", dues("mps"));
        assert_eq!(dues("mps"), dues("ebb-isolated"));
    }

    #[test]
    fn a_rare_request_gets_a_longer_stretch() {
        let archive = sample::archive();
        let chat = archive.scenario("burst-llm", "chat").unwrap();
        let stretch = stretch(&archive, chat).unwrap();
        assert!(stretch.to - stretch.from > Nanos::from_millis(500), "{stretch:?}");
    }
}
