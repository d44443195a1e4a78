//! Arrivals as a scenario file has them.

use model::Nanos;
use serde::Deserialize;

use super::{Arrival, Pace, Process, Trace};
use crate::only::only;
use crate::span;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    process: String,
    rate: Option<f64>,
    load: Option<f64>,
    cv: Option<f64>,
    size: Option<u32>,
    #[serde(default, with = "span::optional")]
    spacing: Option<Nanos>,
    file: Option<String>,
}

/// Requests per second.
pub(super) const FASTEST: f64 = 100_000.0;
const HIGHEST_LOAD: f64 = 1.5;
const HIGHEST_CV: f64 = 10.0;
/// As regular as a clock; the numbers of a gamma distribution cannot be drawn much below.
const LOWEST_CV: f64 = 0.01;
const LARGEST_BURST: u32 = 10_000;
const WIDEST_SPACING: Nanos = Nanos::from_millis(60_000);

impl Keys {
    /// `open` gives the text of a file beside the scenario. `paced` says that something else gives the pace.
    pub fn judge(
        &self,
        open: &dyn Fn(&str) -> Result<String, String>,
        paced: bool,
    ) -> Result<Arrival, String> {
        let process = self.process(open)?;
        let pace = self.pace(&process, paced)?;
        Ok(Arrival { process, pace })
    }

    fn process(&self, open: &dyn Fn(&str) -> Result<String, String>) -> Result<Process, String> {
        match self.process.as_str() {
            "closed" => self.only(&[]).map(|()| Process::Closed),
            "uniform" => self.only(&["rate", "load"]).map(|()| Process::Uniform),
            "poisson" => self.only(&["rate", "load"]).map(|()| Process::Poisson),
            "gamma" => {
                self.only(&["rate", "load", "cv"])?;
                let cv = above_zero("cv", self.cv, HIGHEST_CV)?;
                if cv < LOWEST_CV {
                    return Err(format!("a cv of {cv} is below {LOWEST_CV}; uniform arrivals are regular"));
                }
                Ok(Process::Gamma { cv })
            }
            "bursts" => {
                self.only(&["rate", "load", "size", "spacing"])?;
                let size = self.size.ok_or("`size` is missing: how many requests are in a burst")?;
                let spacing =
                    self.spacing.ok_or("`spacing` is missing: the time between two requests of a burst")?;
                if !(2..=LARGEST_BURST).contains(&size) {
                    return Err(format!("a burst of {size} is not between 2 and {LARGEST_BURST}"));
                }
                if spacing > WIDEST_SPACING {
                    return Err(format!("a spacing of {spacing} is above {WIDEST_SPACING}"));
                }
                Ok(Process::Bursts { size, spacing })
            }
            "trace" => {
                self.only(&["rate", "load", "file"])?;
                let file = self.file.as_ref().ok_or("`file` is missing: the trace, beside this file")?;
                let trace = Trace::read(file, &open(file)?)?;
                Ok(Process::Trace(trace))
            }
            unknown => Err(format!(
                "`{unknown}` is no arrival process; known are closed, uniform, poisson, gamma, bursts, trace"
            )),
        }
    }

    fn pace(&self, process: &Process, paced: bool) -> Result<Pace, String> {
        match (self.rate, self.load) {
            (None, None) if paced || matches!(process, Process::Closed | Process::Trace(_)) => Ok(Pace::Own),
            (None, None) => {
                Err("one of `rate` (requests/s) and `load` (of the tenant's own capacity) is missing".into())
            }
            (Some(_), Some(_)) => Err("`rate` and `load` exclude each other".to_owned()),
            (Some(_), None) if paced => Err("`rate` and `loads` exclude each other".to_owned()),
            (None, Some(_)) if paced => Err("`load` and `loads` exclude each other".to_owned()),
            (Some(rate), None) => Ok(Pace::Rate(above_zero("rate", Some(rate), FASTEST)?)),
            (None, Some(load)) => Ok(Pace::Load(load_of(load)?)),
        }
    }

    fn only(&self, allowed: &[&str]) -> Result<(), String> {
        let given = [
            ("rate", self.rate.is_some()),
            ("load", self.load.is_some()),
            ("cv", self.cv.is_some()),
            ("size", self.size.is_some()),
            ("spacing", self.spacing.is_some()),
            ("file", self.file.is_some()),
        ];
        let whom = if self.process == "closed" { "a closed loop" } else { &self.process };
        only(allowed, &given, whom, "process")
    }
}

/// A load above one is an experiment about overload, far above it a slip of the hand.
pub(crate) fn load_of(load: f64) -> Result<f64, String> {
    if load > 0.0 && load < HIGHEST_LOAD {
        return Ok(load);
    }
    Err(format!(
        "a load of {load} is impossible; it is a share of the tenant's own capacity, above 0 and below {HIGHEST_LOAD}"
    ))
}

fn above_zero(key: &str, value: Option<f64>, most: f64) -> Result<f64, String> {
    let value = value.ok_or_else(|| format!("`{key}` is missing"))?;
    let fits = value > 0.0 && value <= most;
    fits.then_some(value).ok_or_else(|| format!("{key} is {value}, not above 0 and at most {most}"))
}
