//! An archive as the pages want it: suites of scenarios in the order of the files, each with the figures that
//! [`results`] derives. Nothing is computed here but order, names and addresses.

use model::Class;
use results::figures::{ModeFigures, NOT_RUN, ScenarioFigures};
use results::mode::Name;
use results::record::{self, ALONE, LATENCY_ONLY};
use results::stop::{Stops, stops};
use results::{Archive, Estimate, Figures};

use crate::numbers::{count, many};
use crate::palette;

/// Everything that is shown.
pub struct View<'a> {
    pub archive: &'a Archive,
    pub figures: &'a Figures,
    pub suites: Vec<Suite<'a>>,
}

pub struct Suite<'a> {
    pub name: &'a str,
    pub scenarios: Vec<Scenario<'a>>,
}

#[derive(Clone, Copy)]
pub struct Scenario<'a> {
    pub archive: &'a Archive,
    pub record: &'a record::Scenario,
    figures: &'a ScenarioFigures,
}

impl<'a> View<'a> {
    pub fn new(archive: &'a Archive, figures: &'a Figures) -> Self {
        let mut suites: Vec<Suite> = Vec::new();
        for figures in &figures.scenarios {
            let record = &figures.scenario;
            let scenario = Scenario { archive, record, figures };
            match suites.iter_mut().find(|suite| suite.name == record.suite) {
                Some(suite) => suite.scenarios.push(scenario),
                None => suites.push(Suite { name: &record.suite, scenarios: vec![scenario] }),
            }
        }
        Self { archive, figures, suites }
    }

    pub fn scenarios(&self) -> impl Iterator<Item = &Scenario<'a>> {
        self.suites.iter().flat_map(|suite| &suite.scenarios)
    }

    /// Every mode that is spoken of, measured or not.
    pub fn named(&self) -> Vec<&'a str> {
        let wanted = self.figures.scenarios.iter().flat_map(|scenario| &scenario.modes);
        let absent = self.archive.absent.iter().map(|absent| absent.mode.as_str());
        wanted.map(|mode| mode.mode.as_str()).chain(absent).collect()
    }

    /// Runs that were wanted and neither made nor tried, scenario by scenario: a campaign that was ended early.
    pub fn left_undone(&self) -> Vec<String> {
        let of = |scenario: &Scenario<'a>| {
            let undone: Vec<String> = scenario.undone().collect();
            let place = format!("{}/{}", scenario.record.suite, scenario.record.name);
            (!undone.is_empty()).then(|| format!("{place}: {}", undone.join("; ")))
        };
        self.scenarios().filter_map(of).collect()
    }
}

impl<'a> Scenario<'a> {
    /// The modes that were measured, in their fixed order.
    pub fn modes(&self) -> impl Iterator<Item = &'a ModeFigures> + use<'a> {
        self.figures.modes.iter().filter(|mode| mode.is_measured())
    }

    /// The modes in which something is missing, with why.
    pub fn missing(&self) -> impl Iterator<Item = (&'a str, &'a [String])> + use<'a> {
        let missing = self.figures.modes.iter().filter(|mode| !mode.missing.is_empty());
        missing.map(|mode| (mode.mode.as_str(), mode.missing.as_slice()))
    }

    fn undone(&self) -> impl Iterator<Item = String> + use<'a> {
        let wanted = self.record.repetitions as usize;
        let undone = self.figures.modes.iter().filter(move |mode| {
            // What failed or could not be had is said with its reason.
            mode.repetitions < wanted && mode.missing.iter().all(|reason| reason == NOT_RUN)
        });
        undone.map(move |mode| match mode.repetitions {
            0 => palette::label(&mode.mode).into_owned(),
            made => format!("{} ({made} of {wanted} repetitions)", palette::label(&mode.mode)),
        })
    }

    pub fn mode(&self, name: &str) -> Option<&'a ModeFigures> {
        self.figures.mode(name).filter(|mode| mode.is_measured())
    }

    pub fn tenants(&self, class: Class) -> impl Iterator<Item = &'a record::Tenant> + use<'a> {
        self.record.tenants.iter().filter(move |tenant| tenant.class == class)
    }

    /// The two tenants of a scenario that is one latency tenant beside one best-effort tenant.
    pub fn pair(&self) -> Option<(&'a record::Tenant, &'a record::Tenant)> {
        match self.record.tenants.as_slice() {
            [one, other] if one.class == Class::Latency && other.class == Class::BestEffort => {
                Some((one, other))
            }
            [one, other] if one.class == Class::BestEffort && other.class == Class::Latency => {
                Some((other, one))
            }
            _ => None,
        }
    }

    /// The load of its latency tenant, of that tenant's capacity alone.
    pub fn load(&self) -> Option<f64> {
        let tenant = self.tenants(Class::Latency).next()?;
        let said = tenant.arrival.split("load ").nth(1).and_then(|rest| rest.split_whitespace().next());
        let said = said.and_then(|number| number.trim_end_matches([',', ')']).parse::<f64>().ok());
        said.or_else(|| Some(tenant.rate? / self.archive.calibration(&tenant.workload)?.per_s))
    }

    /// How many best-effort iterations were finished in the counted time of a mode.
    pub fn iterations(&self, mode: &str) -> usize {
        let runs = self.archive.runs_of(&self.record.suite, &self.record.name, mode);
        let finished = |run: &&record::Run| -> usize {
            let best_effort = run.tenants.iter().filter(|tenant| tenant.class == Class::BestEffort);
            let ends = best_effort.flat_map(|tenant| &tenant.end_us);
            ends.filter(|end| (run.warmup_us..run.until_us).contains(end)).count()
        };
        runs.iter().map(finished).sum()
    }

    /// Whether its latency tenant is bare kernels: an instrument, made to show one cost at a time.
    pub fn is_instrument(&self) -> bool {
        self.tenants(Class::Latency).all(|tenant| tenant.workload.starts_with("burst-"))
    }

    /// How long the bursts of an instrument waited for the GPU.
    pub fn stops(&self, mode: &str) -> Option<Stops> {
        let tenant = self.tenants(Class::Latency).next().filter(|_| self.is_instrument())?;
        stops(self.archive, self.record, mode, &tenant.name)
    }

    /// The address of its section within the page.
    pub fn anchor(&self) -> String {
        anchor(&[&self.record.suite, &self.record.name])
    }
}

/// A fragment identifier out of names that may hold anything.
pub fn anchor(names: &[&str]) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    names.iter().map(|name| name.chars().map(plain).collect::<String>()).collect::<Vec<_>>().join("--")
}

/// Whether both classes share the GPU in a mode: alone and latency-only are what sharing is measured by.
pub fn shares(mode: &str) -> bool {
    !matches!(mode, ALONE | LATENCY_ONLY)
}

/// p99 over alone, of the latency tenant that fared worst; infinite in overload.
pub fn overhead(mode: &ModeFigures) -> Option<Estimate> {
    mode.together.worst_overhead
}

/// All that was offered to the latency tenants.
pub fn offered(mode: &ModeFigures) -> usize {
    mode.latency.iter().map(|tenant| tenant.offered).sum()
}

/// How many samples a figure rests on.
pub fn samples_of(requests: usize, mode: &ModeFigures) -> String {
    format!("n = {} in {}", count(requests), many(mode.repetitions, "repetition"))
}

/// The same, of all latency tenants together.
pub fn samples(mode: &ModeFigures) -> String {
    match offered(mode) {
        0 => many(mode.repetitions, "repetition"),
        requests => samples_of(requests, mode),
    }
}

/// The modes of several scenarios, each once, in their fixed order.
pub fn modes_of<'s, 'a: 's>(scenarios: impl IntoIterator<Item = &'s Scenario<'a>>) -> Vec<&'a str> {
    let mut modes: Vec<&str> = Vec::new();
    for mode in scenarios.into_iter().flat_map(Scenario::modes) {
        if !modes.contains(&mode.mode.as_str()) {
            modes.push(&mode.mode);
        }
    }
    modes.sort_by_key(|mode| Name::of(mode).rank());
    modes
}
