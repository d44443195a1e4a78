//! What was decided about tenants, out of what they write down.
//!
//! A best-effort tenant may be stopped and let go on hundreds of times a second, and nobody reads hundreds of lines a second.
//! So what happened to a tenant for one reason between two looks is one line, with how often it happened. At the first look it
//! is one line for each second that is still remembered.

use std::collections::{BTreeMap, BTreeSet};

use daemon::picture::{Picture, reason};
use daemon::report::Process;
use model::Nanos;
use serde::Serialize;
use telemetry::{Event, What};

use crate::shelf::{Shelf, everybody};

/// What is older is not told to whoever has just come.
const REMEMBERED: Nanos = Nanos::from_millis(60_000);
const SECOND: u64 = 1_000_000_000;

/// What happened to a tenant, once or more often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// When it happened last.
    pub unix_ms: u64,
    pub tenant: String,
    pub name: String,
    /// `run`, `stop`, `turn`, `left`, `late`, `seat`, `lost`.
    pub kind: &'static str,
    pub words: String,
    pub count: u64,
    /// The longest of the times that belong to it.
    pub longest_ns: Option<u64>,
}

/// Reads logs again and again.
#[derive(Debug, Default)]
pub struct Chronicle {
    /// Those whose logs have been read before.
    begun: BTreeSet<u32>,
}

impl Chronicle {
    /// What has happened since the last time, in order.
    pub fn read(&mut self, picture: &Picture, shelf: &mut Shelf) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut seen = BTreeSet::new();
        for process in everybody(&picture.report).filter(|process| seen.insert(process.pid)) {
            let follower = shelf.of(process.pid).and_then(|slot| slot.follower.as_mut());
            let Some(follower) = follower else { continue };
            let first = self.begun.insert(process.pid);
            lines.extend(together(process, &follower.course(), picture, first));
        }
        self.begun.retain(|pid| seen.contains(pid));
        lines.sort_by_key(|line| line.unix_ms);
        lines
    }
}

/// What happens together is one line.
fn together(process: &Process, events: &[Event], picture: &Picture, first: bool) -> Vec<Line> {
    let mut lines: BTreeMap<(u64, &'static str, String), Line> = BTreeMap::new();
    for event in events.iter().filter(|event| event.time + REMEMBERED >= picture.at) {
        let Some((kind, words, span)) = told(&event.what) else { continue };
        let second = if first { event.time.0 / SECOND } else { 0 };
        let ago = picture.at.since(event.time);
        let unix_ms = picture.unix_ns.saturating_sub(ago.0) / 1_000_000;
        let line = lines.entry((second, kind, words.clone())).or_insert_with(|| Line {
            unix_ms,
            tenant: process.tenant.clone(),
            name: process.name.clone(),
            kind,
            words,
            count: 0,
            longest_ns: None,
        });
        line.count += 1;
        line.unix_ms = line.unix_ms.max(unix_ms);
        line.longest_ns = line.longest_ns.max(span.map(|Nanos(nanos)| nanos));
    }
    lines.into_values().collect()
}

/// Of what kind something is, in which words, and how long it took.
fn told(what: &What) -> Option<(&'static str, String, Option<Nanos>)> {
    let told = |kind, words: &str, span| Some((kind, words.to_owned(), span));
    match *what {
        What::Decided { why, runs, .. } => {
            let (_, sentence) = reason(why)?;
            told(if runs { "run" } else { "stop" }, sentence, None)
        }
        What::Held { waited } => told("turn", "it was given its turn, having waited", Some(waited)),
        What::Stopped { rung, took } => {
            Some(("left", format!("it has left the GPU, by {}", rung.name()), Some(took)))
        }
        What::Request { late: true, lasted, .. } => {
            told("late", "a request took longer than its objective", Some(lasted))
        }
        What::Seated { class, domain } => {
            Some(("seat", format!("it has a seat, as {class}, in the {domain} domain"), None))
        }
        What::Left => told("lost", "it has lost its daemon and works by the board alone", None),
        _ => None,
    }
}
