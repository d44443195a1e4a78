//! A fleet as it is written down.

use std::ops::Range;

use model::Nanos;
use scenario::{Mistake, Pace, Workload};
use serde::Deserialize;
use toml::Spanned;

use super::{Fleet, Group, Wants};
use crate::Error;

const SCHEMA: u32 = 1;
const MOST_TENANTS: u32 = 1_000_000;
const MOST_GROUPS: usize = 16;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    schema: Spanned<u32>,
    #[serde(default)]
    title: String,
    #[serde(default = "memory")]
    memory: Spanned<f64>,
    #[serde(default = "promises")]
    slo: Spanned<Vec<f64>>,
    #[serde(default = "seconds")]
    seconds: Spanned<f64>,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    latency: Vec<Service>,
    #[serde(default)]
    best_effort: Vec<Job>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Service {
    name: Spanned<String>,
    workload: Workload,
    count: Spanned<u32>,
    load: Option<Spanned<f64>>,
    rate: Option<Spanned<f64>>,
    #[serde(default)]
    memory: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    name: Spanned<String>,
    workload: Workload,
    count: Spanned<u32>,
    #[serde(default = "share")]
    share: Spanned<f64>,
    #[serde(default)]
    memory: f64,
}

fn spanned<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

fn memory() -> Spanned<f64> {
    spanned(141.0)
}

fn promises() -> Spanned<Vec<f64>> {
    spanned(vec![1.05, 1.2, 1.5, 2.0])
}

fn seconds() -> Spanned<f64> {
    spanned(4.0)
}

fn share() -> Spanned<f64> {
    spanned(0.5)
}

/// Reads a fleet; `origin` is what mistakes call the file.
pub fn parse(text: &str, origin: &str) -> Result<Fleet, Error> {
    let place = |span: Option<Range<usize>>| {
        let before = span.map_or(0, |span| span.start.min(text.len()));
        text.as_bytes()[..before].iter().filter(|byte| **byte == b'\n').count() + 1
    };
    let wrong = |line: usize, message: String| {
        Error::Stage(Mistake { file: origin.to_owned(), line, message }.to_string())
    };
    let file: File =
        toml::from_str(text).map_err(|error| wrong(place(error.span()), error.message().to_owned()))?;
    let mut mistakes = Vec::new();
    let fleet = file.judged(&mut |span, message| {
        mistakes.push(Mistake { file: origin.to_owned(), line: place(Some(span)), message });
    });
    if mistakes.is_empty() {
        Ok(fleet)
    } else {
        Err(Error::Stage(mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n")))
    }
}

impl File {
    /// What it means, with every mistake told.
    fn judged(self, wrong: &mut dyn FnMut(Range<usize>, String)) -> Fleet {
        let mut within = |what: &str, value: &Spanned<f64>, range: std::ops::RangeInclusive<f64>| {
            if !range.contains(value.as_ref()) {
                let (low, high) = (range.start(), range.end());
                wrong(value.span(), format!("{what} is {}, not between {low} and {high}", value.as_ref()));
            }
        };
        within("memory", &self.memory, 0.1..=1e5);
        within("seconds", &self.seconds, 0.1..=600.0);
        for job in &self.best_effort {
            within("share", &job.share, 0.001..=1.0);
        }
        for service in &self.latency {
            service.load.iter().for_each(|load| within("load", load, 0.001..=0.99));
            service.rate.iter().for_each(|rate| within("rate", rate, 0.001..=1e6));
        }
        if *self.schema.as_ref() != SCHEMA {
            wrong(
                self.schema.span(),
                format!("schema is {}, and {SCHEMA} is understood", self.schema.as_ref()),
            );
        }
        let promised = self.slo.as_ref();
        if promised.is_empty() || promised.iter().any(|multiple| !(1.0..=100.0).contains(multiple)) {
            wrong(
                self.slo.span(),
                "slo is a list of multiples of the p99 alone, each from 1 to 100".to_owned(),
            );
        }
        for service in self.latency.iter().filter(|service| service.load.is_some() == service.rate.is_some())
        {
            let name = service.name.as_ref();
            wrong(service.name.span(), format!("`{name}` wants either a load or a rate"));
        }
        self.counts(wrong);
        self.fleet()
    }

    fn counts(&self, wrong: &mut dyn FnMut(Range<usize>, String)) {
        let services = self.latency.iter().map(|service| (&service.name, &service.count));
        let named: Vec<_> =
            services.chain(self.best_effort.iter().map(|job| (&job.name, &job.count))).collect();
        for (place, (name, count)) in named.iter().enumerate() {
            if named[..place].iter().any(|(before, _)| before.as_ref() == name.as_ref()) {
                wrong(name.span(), format!("two groups are called `{}`", name.as_ref()));
            }
            if !(1..=MOST_TENANTS).contains(count.as_ref()) {
                wrong(count.span(), format!("count is {}, not between 1 and {MOST_TENANTS}", count.as_ref()));
            }
        }
        if named.is_empty() || named.len() > MOST_GROUPS {
            let span = named.last().map_or(0..0, |(name, _)| name.span());
            wrong(
                span,
                format!("a fleet has 1 to {MOST_GROUPS} groups of tenants, and here are {}", named.len()),
            );
        }
    }

    fn fleet(self) -> Fleet {
        let services = self.latency.into_iter().map(|service| {
            let rate = service.rate.map(|rate| Pace::Rate(rate.into_inner()));
            let pace = rate.or(service.load.map(|load| Pace::Load(load.into_inner())));
            Group {
                name: service.name.into_inner(),
                count: service.count.into_inner(),
                workload: service.workload,
                wants: Wants::Requests(pace.unwrap_or(Pace::Load(0.0))),
                memory_gib: service.memory,
            }
        });
        let jobs = self.best_effort.into_iter().map(|job| Group {
            name: job.name.into_inner(),
            count: job.count.into_inner(),
            workload: job.workload,
            wants: Wants::Share(job.share.into_inner()),
            memory_gib: job.memory,
        });
        Fleet {
            title: self.title,
            memory_gib: self.memory.into_inner(),
            promises: self.slo.into_inner(),
            watched: Nanos((self.seconds.into_inner() * 1e9) as u64),
            seed: self.seed,
            groups: services.chain(jobs).collect(),
        }
    }
}
