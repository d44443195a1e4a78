//! `ebb lab list`: what there is to run, and how long it takes at least.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Result;
use model::Nanos;
use scenario::{Device, Mode, Scenario, Suite, least_time};

use super::arguments::ListOptions;

pub fn run(options: &ListOptions) -> Result<ExitCode> {
    let device = options.device;
    match &options.suite {
        Some(word) if options.workloads => workloads(&[Suite::find(word)?]),
        Some(word) => scenarios(&Suite::find(word)?, device),
        None if options.workloads => workloads(&built_in()?),
        None => suites(&built_in()?, device),
    }
    Ok(ExitCode::SUCCESS)
}

fn built_in() -> Result<Vec<Suite>> {
    Suite::names().map(|name| Ok(Suite::named(name)?)).collect()
}

fn suites(suites: &[Suite], device: Device) {
    println!("{:<10}  {:>9}  {:>8}  title", "suite", "scenarios", "at least");
    for suite in suites {
        let Suite { name, title, .. } = suite;
        let staged = on(suite, device);
        println!("{name:<10}  {:>9}  {:>8}  {title}", staged.len(), minutes(least_time(&staged)));
    }
    println!();
    println!("Minutes of runs on this device ({device}), in all modes that apply but rivals.");
    println!("`ebb lab list SUITE` shows a suite's scenarios.");
}

fn scenarios(suite: &Suite, device: Device) {
    println!("{}: {}", suite.name, suite.title);
    if let Some(about) = &suite.about {
        println!("{}", about.trim());
    }
    for scenario in on(suite, device) {
        println!("\n{}: {}", scenario.name, scenario.title);
        for tenant in &scenario.tenants {
            let class = tenant.class.to_string();
            println!("  {:<20}  {class:<11}  {}, {}", tenant.name, tenant.workload, tenant.arrival);
        }
        println!("  modes: {}", scenario.modes().iter().map(Mode::to_string).collect::<Vec<_>>().join(", "));
        let Scenario { duration, warmup, repetitions, .. } = &scenario;
        let each = if *repetitions == 1 { "once".to_owned() } else { format!("{repetitions} times") };
        let least = minutes(least_time(std::slice::from_ref(&scenario)));
        println!("  time: {duration} after {warmup} of warm-up, {each}; at least {least} in all");
    }
}

/// One to a line, for whoever goes through all of them.
fn workloads(suites: &[Suite]) {
    let tenants = suites.iter().flat_map(|suite| &suite.scenarios).flat_map(|scenario| &scenario.tenants);
    for workload in tenants.map(|tenant| tenant.workload.id()).collect::<BTreeSet<_>>() {
        println!("{workload}");
    }
}

fn on(suite: &Suite, device: Device) -> Vec<Scenario> {
    suite.scenarios.iter().map(|scenario| scenario.clone().for_device(device)).collect()
}

fn minutes(time: Nanos) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
