//! `ebb lab list`: what there is to run, and how long it takes at least.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use model::Nanos;
use scenario::{Device, Mode, Scenario, Suite, least_time};

use super::arguments::ListOptions;
use crate::stdio;

pub fn run(options: &ListOptions) -> Result<ExitCode> {
    let suites = match &options.suite {
        Some(word) => vec![Suite::find(word)?],
        None => Suite::names().map(Suite::named).collect::<Result<_, _>>()?,
    };
    let mut out = Vec::new();
    match &suites[..] {
        suites if options.workloads => workloads(&mut out, suites),
        [suite] if options.suite.is_some() => scenarios(&mut out, suite, options.device),
        suites => table(&mut out, suites, options.device),
    }?;
    stdio::put_bytes(&out);
    Ok(ExitCode::SUCCESS)
}

fn table(out: &mut impl Write, suites: &[Suite], device: Device) -> io::Result<()> {
    writeln!(out, "{:<10}  {:>9}  {:>8}  title", "suite", "scenarios", "at least")?;
    for suite in suites {
        let Suite { name, title, .. } = suite;
        let staged = on(suite, device);
        writeln!(out, "{name:<10}  {:>9}  {:>8}  {title}", staged.len(), minutes(least_time(&staged)))?;
    }
    writeln!(out, "\nMinutes of runs on this device ({device}), in all modes that apply but rivals.")?;
    writeln!(out, "`ebb lab list SUITE` shows a suite's scenarios.")
}

fn scenarios(out: &mut impl Write, suite: &Suite, device: Device) -> io::Result<()> {
    writeln!(out, "{}: {}", suite.name, suite.title)?;
    if let Some(about) = &suite.about {
        writeln!(out, "{}", about.trim())?;
    }
    on(suite, device).iter().try_for_each(|scenario| one(out, scenario))
}

fn one(out: &mut impl Write, scenario: &Scenario) -> io::Result<()> {
    let Scenario { name, title, duration, warmup, repetitions, .. } = scenario;
    writeln!(out, "\n{name}: {title}")?;
    for tenant in &scenario.tenants {
        let class = tenant.class.to_string();
        writeln!(out, "  {:<20}  {class:<11}  {}, {}", tenant.name, tenant.workload, tenant.arrival)?;
    }
    let modes: Vec<_> = scenario.modes().iter().map(Mode::to_string).collect();
    writeln!(out, "  modes: {}", modes.join(", "))?;
    let each = if *repetitions == 1 { "once".to_owned() } else { format!("{repetitions} times") };
    let least = minutes(least_time(std::slice::from_ref(scenario)));
    writeln!(out, "  time: {duration} after {warmup} of warm-up, {each}; at least {least} in all")
}

/// One to a line, for whoever goes through all of them.
fn workloads(out: &mut impl Write, suites: &[Suite]) -> io::Result<()> {
    let tenants = suites.iter().flat_map(|suite| &suite.scenarios).flat_map(|scenario| &scenario.tenants);
    let mut all = tenants.map(|tenant| tenant.workload.id()).collect::<BTreeSet<_>>().into_iter();
    all.try_for_each(|workload| writeln!(out, "{workload}"))
}

fn on(suite: &Suite, device: Device) -> Vec<Scenario> {
    suite.scenarios.iter().map(|scenario| scenario.clone().for_device(device)).collect()
}

fn minutes(time: Nanos) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
