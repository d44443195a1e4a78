//! What a tenant measured, and how it travels to whoever started it: one line of words.

use std::fmt;
use std::str::FromStr;

use model::Nanos;

use crate::Error;

/// The outcome of one tenant in one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Requests answered, or iterations finished.
    pub done: u64,
    /// Of those, the ones whose results were right.
    pub right: u64,
    /// Latency from scheduled arrival; zero for a tenant without requests.
    pub p50: Nanos,
    pub p99: Nanos,
    pub max: Nanos,
    /// How long the tenant worked.
    pub span: Nanos,
    /// How long the GPU was busy with it: the blocks' own time, without anything that launching them adds.
    pub busy: Nanos,
}

impl Report {
    /// Requests or iterations per second.
    pub fn rate(&self) -> f64 {
        if self.span == Nanos::ZERO { 0.0 } else { self.done as f64 / self.span.as_secs_f64() }
    }

    /// The share of the time for which the GPU was busy with it.
    pub fn busy_share(&self) -> f64 {
        if self.span == Nanos::ZERO { 0.0 } else { self.busy.as_secs_f64() / self.span.as_secs_f64() }
    }

    pub fn all_right(&self) -> bool {
        self.done > 0 && self.right == self.done
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { done, right, p50, p99, max, span, busy } = self;
        write!(f, "report {done} {right} {} {} {} {} {}", p50.0, p99.0, max.0, span.0, busy.0)
    }
}

impl FromStr for Report {
    type Err = Error;

    fn from_str(line: &str) -> Result<Report, Error> {
        let refused = || Error::Protocol(line.to_owned());
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some("report") {
            return Err(refused());
        }
        let numbers: Vec<u64> = words.map(str::parse).collect::<Result<_, _>>().map_err(|_| refused())?;
        let [done, right, times @ ..] = &numbers[..] else { return Err(refused()) };
        let &[p50, p99, max, span, busy] = times else { return Err(refused()) };
        let [p50, p99, max, span, busy] = [p50, p99, max, span, busy].map(Nanos);
        Ok(Report { done: *done, right: *right, p50, p99, max, span, busy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_the_journey() {
        let [p50, p99, max, span, busy] = [1, 2, 3, 4, 1].map(Nanos);
        let report = Report { done: 7, right: 6, p50, p99, max, span, busy };
        assert_eq!(report.to_string().parse::<Report>().unwrap(), report);
        assert!(!report.all_right());
        assert_eq!(report.busy_share(), 0.25);
    }

    #[test]
    fn a_torn_line_is_refused() {
        assert!("report 1 2 3".parse::<Report>().is_err());
        assert!("repor".parse::<Report>().is_err());
    }
}
