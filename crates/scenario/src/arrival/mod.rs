//! When requests come.
//!
//! A tenant's arrivals depend on the seed, its name and the repetition, and on nothing else: the same requests are offered
//! at the same times in every mode, however late the answers are. That is what makes lateness visible.

mod draw;
mod keys;
#[cfg(test)]
mod real;
#[cfg(test)]
mod tests;
mod trace;

use std::fmt;

use model::Nanos;
use serde::Serialize;

use crate::span::{self, stretched, written};
pub use draw::{Draw, stream_seed};
pub(crate) use keys::{Keys, load_of};
pub use trace::Trace;

/// The arrivals of a latency tenant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Arrival {
    pub process: Process,
    pub pace: Pace,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Process {
    /// The next request comes when the last is answered.
    Closed,
    /// At equal distances, from a moment within the first of them that the seed decides: two such tenants do not
    /// coincide for a whole run.
    Uniform,
    Poisson,
    /// Gaps are gamma-distributed; `cv` is their deviation over their mean: 1 is Poisson, more is burstier.
    Gamma {
        cv: f64,
    },
    /// Groups of `size` requests `spacing` apart; the groups come as a Poisson process.
    Bursts {
        size: u32,
        #[serde(serialize_with = "span::serialize")]
        spacing: Nanos,
    },
    Trace(Trace),
}

/// How many requests come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// As many as are answered (a closed loop), or as the trace has.
    Own,
    /// Requests per second.
    Rate(f64),
    /// A share of what the tenant can answer by itself on this device.
    Load(f64),
}

impl Arrival {
    pub(crate) fn closed() -> Arrival {
        Arrival { process: Process::Closed, pace: Pace::Own }
    }

    /// Whether the tenant's own capacity must be known first.
    pub fn needs_capacity(&self) -> bool {
        matches!(self.pace, Pace::Load(_))
    }

    /// Requests per second on a device on which the tenant alone answers `capacity` of them; none in a closed loop.
    pub fn rate(&self, capacity: f64) -> Option<f64> {
        match (self.pace, &self.process) {
            (Pace::Rate(rate), _) => Some(rate),
            (Pace::Load(load), _) => Some(load * capacity),
            (Pace::Own, Process::Trace(trace)) => Some(trace.rate()),
            (Pace::Own, _) => None,
        }
    }

    /// When requests are due, in order, all before `until`; none in a closed loop. `seed` comes from [`stream_seed`].
    pub fn due(&self, seed: u64, rate: Option<f64>, until: Nanos) -> Option<Vec<Nanos>> {
        let rate = rate.filter(|rate| *rate > 0.0)?;
        let mut draw = Draw::new(seed);
        let due = match &self.process {
            Process::Closed => return None,
            Process::Uniform => {
                let first = draw.uniform();
                accumulated(first, rate, until, || 1.0)
            }
            Process::Poisson => {
                let first = draw.exponential();
                accumulated(first, rate, until, || draw.exponential())
            }
            Process::Gamma { cv } => {
                // A process that begins with an arrival offers too much at first, the more so the burstier it is; this
                // one begins so long before the run that it has forgotten it.
                let before = -(20.0 + 20.0 * cv * cv);
                accumulated(before, rate, until, || draw.gamma(*cv))
            }
            Process::Bursts { size, spacing } => bursts(&mut draw, *size, *spacing, rate, until),
            Process::Trace(trace) => trace.due(rate, until),
        };
        Some(due)
    }

    /// The same on a device on which everything takes `factor` times as long. A load is a share of what that device can
    /// do, and stays.
    pub(crate) fn slowed(self, factor: f64) -> Arrival {
        let Arrival { process, pace } = self;
        let pace = match (pace, &process) {
            (Pace::Rate(rate), _) => Pace::Rate(rate / factor),
            (Pace::Own, Process::Trace(trace)) if factor != 1.0 => Pace::Rate(trace.rate() / factor),
            (pace, _) => pace,
        };
        let process = match process {
            Process::Bursts { size, spacing } => {
                Process::Bursts { size, spacing: stretched(spacing, factor) }
            }
            process => process,
        };
        Arrival { process, pace }
    }

    /// The same at another pace.
    pub(crate) fn at(&self, pace: Pace) -> Arrival {
        Arrival { process: self.process.clone(), pace }
    }
}

/// Arrivals from `first` on, given in mean gaps, until the end.
fn accumulated(first: f64, rate: f64, until: Nanos, mut gap: impl FnMut() -> f64) -> Vec<Nanos> {
    let end = until.as_secs_f64() * rate;
    let mut due = Vec::new();
    let mut at = first;
    while at < end {
        if at >= 0.0 {
            due.push(Nanos((at / rate * 1e9) as u64));
        }
        at += gap();
    }
    // The last one may have been rounded onto the end.
    due.retain(|due| *due < until);
    due
}

fn bursts(draw: &mut Draw, size: u32, spacing: Nanos, rate: f64, until: Nanos) -> Vec<Nanos> {
    // A burst that began before the run may reach into it.
    let lead = Nanos(spacing.0.saturating_mul(u64::from(size)));
    let first = draw.exponential();
    let begins = accumulated(first, rate / f64::from(size), lead + until, || draw.exponential());
    let inside = begins.into_iter().flat_map(|begin| {
        // Of a burst that began long before, only what reaches in: there may be very many that do not.
        let missed = lead.0.saturating_sub(begin.0).checked_div(spacing.0).unwrap_or(0);
        let dues =
            (missed..u64::from(size)).map(move |number| begin + Nanos(spacing.0.saturating_mul(number)));
        dues.skip_while(move |due| *due < lead)
            .take_while(move |due| *due < lead + until)
            .map(move |due| due - lead)
    });
    let mut due: Vec<Nanos> = inside.collect();
    due.sort_unstable();
    due
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.process {
            Process::Closed => f.write_str("closed loop")?,
            Process::Uniform => f.write_str("uniform")?,
            Process::Poisson => f.write_str("poisson")?,
            Process::Gamma { cv } => write!(f, "gamma (cv {cv})")?,
            Process::Bursts { size, spacing } => write!(f, "bursts of {size} {} apart", written(*spacing))?,
            Process::Trace(trace) => write!(f, "trace {}", trace.file)?,
        }
        match self.pace {
            Pace::Own => Ok(()),
            Pace::Rate(rate) => write!(f, " {}/s", (rate * 1e3).round() / 1e3),
            Pace::Load(load) => write!(f, " at load {load}"),
        }
    }
}
