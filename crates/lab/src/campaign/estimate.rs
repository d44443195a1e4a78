//! How long things take, by what was seen.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::modes::Way;

/// Between the order to run and its begin: the time for all workers to hear it.
pub const LEAD: Duration = Duration::from_millis(150);
const SHORTEST_DRAIN: Duration = Duration::from_millis(500);
const LONGEST_DRAIN: Duration = Duration::from_secs(1);

/// Before anything was seen: what a run costs beyond itself, and the start of workers that load a framework, or nothing.
const AROUND: Duration = Duration::from_millis(400);
const START_PYTHON: Duration = Duration::from_secs(25);
const START_PLAYER: Duration = Duration::from_secs(1);
/// For the end of workers and services.
pub const FAREWELL: Duration = Duration::from_secs(6);

/// How long a run waits for requests that have arrived and are not begun, given how long it offers them. Who is behind by
/// more than an eighth of the run does not keep up, and would only be further behind in a longer one; but a run may be so
/// short that this is a single answer of a language model.
pub fn drain(until: Duration) -> Duration {
    (until / 8).clamp(SHORTEST_DRAIN, LONGEST_DRAIN)
}

#[derive(Debug, Default)]
pub struct Estimates {
    runs: BTreeMap<(usize, Way), Duration>,
    starts: BTreeMap<bool, Duration>,
}

impl Estimates {
    /// Of one run with nobody to be started, given how long it offers requests.
    pub fn run(&self, entry: usize, way: Way, until: Duration) -> Duration {
        let seen = self.runs.get(&(entry, way)).copied();
        seen.unwrap_or(LEAD + until + drain(until) + AROUND)
    }

    /// Of the start of several workers at once.
    pub fn start(&self, python: bool) -> Duration {
        let unseen = if python { START_PYTHON } else { START_PLAYER };
        self.starts.get(&python).copied().unwrap_or(unseen)
    }

    /// Later runs are taken to last as long as the longest.
    pub fn saw_run(&mut self, entry: usize, way: Way, lasted: Duration) {
        let seen = self.runs.entry((entry, way)).or_default();
        *seen = lasted.max(*seen);
    }

    pub fn saw_start(&mut self, python: bool, lasted: Duration) {
        self.starts.insert(python, lasted);
    }
}

#[cfg(test)]
mod tests {
    use scenario::Mode;

    use super::*;

    #[test]
    fn what_was_seen_counts_more_than_what_was_thought() {
        let mut estimates = Estimates::default();
        let until = Duration::from_secs(3);
        assert!(estimates.run(0, Mode::Mps.into(), until) > until);
        estimates.saw_run(0, Mode::Mps.into(), Duration::from_secs(7));
        estimates.saw_run(0, Mode::Mps.into(), Duration::from_secs(5));
        assert_eq!(estimates.run(0, Mode::Mps.into(), until), Duration::from_secs(7));
        assert!(estimates.run(0, Mode::Timeslice.into(), until) < Duration::from_secs(7));
    }
}
