//! The figures of every scenario in every mode.
//!
//! [`Figures::of`] is where a report and a comparison begin: it walks the archive once and computes all that is said
//! about it. Quantiles pool the requests of all repetitions. Ratios to the run alone use only repetitions that both have,
//! and runs of the same length. Where something needed is missing, a figure is `None`, never a guess.

pub(crate) mod best_effort;
pub(crate) mod latency;
mod together;

pub use best_effort::BestEffort;
pub use latency::{Latency, Told};
pub use together::Together;

use model::Class;

use crate::Archive;
use crate::iteration::Checks;
use crate::mode::Name;
use crate::passage;
use crate::record::{ALONE, LATENCY_ONLY, Scenario};

/// Modes in the order in which tables show them, each followed by its policies; others follow by name.
pub const ORDER: [&str; 12] = [
    ALONE,
    LATENCY_ONLY,
    "timeslice",
    "mps",
    "mps-priority",
    "streams",
    "xsched",
    "xsched-timeslice",
    "hami",
    "nvshare",
    "ebb-isolated",
    "ebb-shared",
];

/// Why a mode is missing of which the archive says nothing.
pub const NOT_RUN: &str = "not run";

/// Everything that is said about an archive.
#[derive(Clone, Debug)]
pub struct Figures {
    pub scenarios: Vec<ScenarioFigures>,
    /// What could not be said, and why.
    pub remarks: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct ScenarioFigures {
    pub scenario: Scenario,
    /// Every mode that was wanted or measured, in the order of [`ORDER`].
    pub modes: Vec<ModeFigures>,
}

#[derive(Clone, Debug)]
pub struct ModeFigures {
    pub mode: String,
    /// How many repetitions were measured.
    pub repetitions: usize,
    /// Empty when nothing was measured, and in modes without such tenants.
    pub latency: Vec<Latency>,
    pub best_effort: Vec<BestEffort>,
    pub together: Together,
    /// Why runs are missing, if some are.
    pub missing: Vec<String>,
}

impl Figures {
    pub fn of(archive: &Archive) -> Figures {
        let checks = Checks::of(archive);
        let mut remarks = archive.remarks.clone();
        let scenarios = archive
            .scenarios
            .iter()
            .map(|scenario| {
                let view = View { archive, scenario, checks: &checks };
                let modes = modes(archive, scenario);
                let modes = modes.iter().map(|mode| view.figures(mode, &mut remarks)).collect();
                ScenarioFigures { scenario: scenario.clone(), modes }
            })
            .collect();
        Figures { scenarios, remarks }
    }

    pub fn scenario(&self, suite: &str, name: &str) -> Option<&ScenarioFigures> {
        self.scenarios.iter().find(|figures| figures.scenario.suite == suite && figures.scenario.name == name)
    }
}

impl ScenarioFigures {
    pub fn mode(&self, mode: &str) -> Option<&ModeFigures> {
        self.modes.iter().find(|figures| figures.mode == mode)
    }
}

impl ModeFigures {
    pub fn is_measured(&self) -> bool {
        self.repetitions > 0
    }

    pub fn latency_of(&self, tenant: &str) -> Option<&Latency> {
        self.latency.iter().find(|figures| figures.tenant == tenant)
    }

    pub fn best_effort_of(&self, tenant: &str) -> Option<&BestEffort> {
        self.best_effort.iter().find(|figures| figures.tenant == tenant)
    }
}

fn modes(archive: &Archive, scenario: &Scenario) -> Vec<String> {
    let measured = archive.runs.iter().filter(|run| run.is_of(&scenario.suite, &scenario.name));
    let mut modes: Vec<String> =
        measured.map(|run| run.mode.clone()).chain(scenario.modes.iter().cloned()).collect();
    modes.sort_by(|a, b| Name::of(a).rank().cmp(&Name::of(b).rank()));
    modes.dedup();
    modes
}

/// One scenario of an archive, with what its figures are computed from.
#[derive(Clone, Copy)]
struct View<'a> {
    archive: &'a Archive,
    scenario: &'a Scenario,
    checks: &'a Checks,
}

impl View<'_> {
    /// The stream of draws for the repetitions of this scenario.
    fn name(&self) -> String {
        format!("{}/{}", self.scenario.suite, self.scenario.name)
    }

    fn figures(&self, mode: &str, remarks: &mut Vec<String>) -> ModeFigures {
        let (mut latency, mut best_effort) = (Vec::new(), Vec::new());
        let mut repetitions = 0;
        for tenant in &self.scenario.tenants {
            let passages = passage::of(self.archive, self.scenario, mode, &tenant.name);
            if passages.is_empty() {
                continue;
            }
            repetitions = repetitions.max(passages.len());
            let alone = passage::alone(self.archive, self.scenario, &tenant.name, &passages);
            if alone.is_empty() {
                let others = passage::of(self.archive, self.scenario, ALONE, &tenant.name);
                let why = if others.is_empty() {
                    "no run of it alone"
                } else {
                    "only runs of another length alone"
                };
                remarks.push(format!(
                    "{}, {mode}, {}: {why}, so nothing to compare with",
                    self.name(),
                    tenant.name
                ));
            }
            match tenant.class {
                Class::Latency => latency.extend(latency::figures(&self.name(), tenant, &passages, &alone)),
                Class::BestEffort => {
                    best_effort.push(best_effort::figures(
                        &self.name(),
                        tenant,
                        self.checks,
                        &passages,
                        &alone,
                    ));
                }
            }
        }
        let together = together::figures(self, mode, &latency, &best_effort);
        ModeFigures {
            mode: mode.to_owned(),
            repetitions,
            latency: latency.into_iter().map(|(figures, _)| figures).collect(),
            best_effort: best_effort.into_iter().map(|(figures, _)| figures).collect(),
            together,
            missing: self.missing(mode, repetitions),
        }
    }

    fn missing(&self, mode: &str, repetitions: usize) -> Vec<String> {
        let (suite, name) = (&self.scenario.suite, &self.scenario.name);
        let mut missing = Vec::new();
        for failure in &self.archive.failures {
            if (&failure.suite, &failure.scenario, failure.mode.as_str()) == (suite, name, mode) {
                let whose = failure.tenant.as_ref().map(|tenant| format!("{tenant}: ")).unwrap_or_default();
                missing.push(format!("repetition {}: {whose}{}", failure.repetition, failure.reason));
            }
        }
        if repetitions == 0 && missing.is_empty() {
            let absent = self.archive.absent.iter().find(|absent| {
                absent.mode == mode
                    && absent.suite.as_ref().is_none_or(|of| of == suite)
                    && absent.scenario.as_ref().is_none_or(|of| of == name)
            });
            missing.push(absent.map_or_else(|| NOT_RUN.to_owned(), |absent| absent.reason.clone()));
        }
        missing
    }
}
