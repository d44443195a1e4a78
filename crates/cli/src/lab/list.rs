//! `ebb lab list`: what there is to run, and how long it takes at least.

use std::process::ExitCode;

use anyhow::Result;
use model::Nanos;
use scenario::{Device, Mode, Scenario, Suite};

use super::arguments::ListOptions;

pub fn run(options: &ListOptions) -> Result<ExitCode> {
    match &options.suite {
        None => suites(options.device)?,
        Some(word) => scenarios(Suite::find(word)?, options.device),
    }
    Ok(ExitCode::SUCCESS)
}

fn suites(device: Device) -> Result<()> {
    println!("{:<10}  {:>9}  {:>8}  title", "suite", "scenarios", "at least");
    for name in Suite::names() {
        let suite = Suite::named(name)?;
        let title = suite.title.clone();
        let staged = on(suite, device);
        let time = staged.iter().map(least).fold(Nanos::ZERO, |sum, time| sum + time);
        println!("{name:<10}  {:>9}  {:>8}  {title}", staged.len(), minutes(time));
    }
    println!(
        "\nTimes are those of the runs on this device ({device}), with all modes that apply but rivals."
    );
    println!("`ebb lab list SUITE` shows its scenarios.");
    Ok(())
}

fn scenarios(suite: Suite, device: Device) {
    println!("{}: {}", suite.name, suite.title);
    if let Some(about) = &suite.about {
        println!("{}", about.trim());
    }
    for scenario in on(suite, device) {
        println!("\n{}: {}", scenario.name, scenario.title);
        for tenant in &scenario.tenants {
            println!("  {:<22} {:<11} {}, {}", tenant.name, tenant.class, tenant.workload, tenant.arrival);
        }
        let modes = scenario.modes();
        println!("  modes  {}", modes.iter().map(Mode::to_string).collect::<Vec<_>>().join(" "));
        let Scenario { duration, warmup, repetitions, .. } = &scenario;
        let each = if *repetitions == 1 { "once".to_owned() } else { format!("{repetitions} times") };
        println!("  time   {duration} after {warmup}, {each}: at least {}", minutes(least(&scenario)));
    }
}

fn on(suite: Suite, device: Device) -> Vec<Scenario> {
    suite.scenarios.into_iter().map(|scenario| scenario.for_device(device)).collect()
}

/// Without rivals, which few have, and what does not exist yet.
fn least(scenario: &Scenario) -> Nanos {
    let modes: Vec<_> =
        scenario.modes().into_iter().filter(|mode| !mode.is_rival() && *mode != Mode::EbbShared).collect();
    scenario.least_time(&modes)
}

fn minutes(time: Nanos) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
