//! What a tenant measured, and how it travels to whoever started it: one line of words.

use std::fmt;
use std::str::FromStr;

use model::Nanos;

use crate::{Error, Quantiles};

/// The outcome of one tenant in one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Requests answered, or iterations finished.
    pub done: u64,
    /// Of those, the ones whose results were right.
    pub right: u64,
    /// How long the tenant worked.
    pub span: Nanos,
    /// How long the GPU was busy with it: the blocks' own time, without anything that launching them adds.
    pub busy: Nanos,
    /// The longest time in which nothing was finished.
    pub longest_pause: Nanos,
    /// Of each request, from its scheduled arrival; a tenant without requests has none. All of them, since what counts as in
    /// time is known when the tenant has been seen alone.
    pub latencies: Quantiles,
}

impl Report {
    /// Adds what the same tenant did in another round.
    pub fn add(&mut self, round: &Report) {
        self.done += round.done;
        self.right += round.right;
        self.span += round.span;
        self.busy += round.busy;
        self.longest_pause = self.longest_pause.max(round.longest_pause);
        let latencies = [self.latencies.samples(), round.latencies.samples()].concat();
        self.latencies = Quantiles::of(latencies);
    }

    /// Requests or iterations per second.
    pub fn rate(&self) -> f64 {
        if self.span == Nanos::ZERO { 0.0 } else { self.done as f64 / self.span.as_secs_f64() }
    }

    /// The share of the time for which the GPU was busy with it.
    pub fn busy_share(&self) -> f64 {
        if self.span == Nanos::ZERO { 0.0 } else { self.busy.as_secs_f64() / self.span.as_secs_f64() }
    }

    /// The latency that such a share of the requests kept; zero for a tenant without requests.
    pub fn latency(&self, share: f64) -> Nanos {
        self.latencies.at(share).unwrap_or_default()
    }

    pub fn p99(&self) -> Nanos {
        self.latency(0.99)
    }

    pub fn all_right(&self) -> bool {
        self.done > 0 && self.right == self.done
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { done, right, span, busy, longest_pause, latencies } = self;
        write!(f, "report {done} {right} {} {} {}", span.0, busy.0, longest_pause.0)?;
        latencies.samples().iter().try_for_each(|latency| write!(f, " {}", latency.0))
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
        let &[done, right, span, busy, longest_pause, ref latencies @ ..] = &numbers[..] else {
            return Err(refused());
        };
        let latencies = Quantiles::of(latencies.iter().copied().map(Nanos).collect());
        let [span, busy, longest_pause] = [span, busy, longest_pause].map(Nanos);
        Ok(Report { done, right, span, busy, longest_pause, latencies })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_the_journey() {
        let latencies = Quantiles::of([3, 1, 2].map(Nanos).to_vec());
        let (span, busy, longest_pause) = (Nanos(4), Nanos(1), Nanos(2));
        let report = Report { done: 7, right: 6, span, busy, longest_pause, latencies };
        assert_eq!(report.to_string().parse::<Report>().unwrap(), report);
        assert!(!report.all_right());
        assert_eq!((report.busy_share(), report.p99()), (0.25, Nanos(3)));
        let iterations = Report { latencies: Quantiles::default(), ..report };
        assert_eq!(iterations.to_string().parse::<Report>().unwrap(), iterations);
        assert_eq!(iterations.p99(), Nanos::ZERO);
    }

    #[test]
    fn rounds_are_added_up_with_all_their_requests() {
        let round = |nanos: u64| Report {
            done: 2,
            right: 1,
            span: Nanos(4),
            busy: Nanos(1),
            longest_pause: Nanos(nanos),
            latencies: Quantiles::of(vec![Nanos(nanos), Nanos(nanos + 1)]),
        };
        let mut sum = round(7);
        sum.add(&round(3));
        assert_eq!((sum.done, sum.right, sum.span, sum.busy), (4, 2, Nanos(8), Nanos(2)));
        assert_eq!(sum.longest_pause, Nanos(7));
        assert_eq!(sum.latencies.samples(), [3, 4, 7, 8].map(Nanos));
    }

    #[test]
    fn a_torn_line_is_refused() {
        assert!("report 1 2 3".parse::<Report>().is_err());
        assert!("report 1 2 3 4 5 x".parse::<Report>().is_err());
        assert!("repor".parse::<Report>().is_err());
    }
}
