//! Which scenarios are run, for their device and with what the user changes about them.

use anyhow::{Result, bail, ensure};
use lab::campaign::Entry;
use lab::modes::Way;
use model::Nanos;
use scenario::{Mode, Scenario, Suite};

use super::super::arguments::RunOptions;

pub fn entries(options: &RunOptions) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    for word in &options.suites {
        let suite = Suite::find(word)?;
        for scenario in suite.scenarios {
            let known =
                entries.iter().any(|entry| entry.suite == suite.name && entry.scenario.name == scenario.name);
            ensure!(!known, "two of these are called {}/{}", suite.name, scenario.name);
            entries.push(entry(suite.name.clone(), scenario, options));
        }
    }
    for name in &options.scenarios {
        if !entries.iter().any(|entry| entry.scenario.name == *name) {
            let known: Vec<&str> = entries.iter().map(|entry| entry.scenario.name.as_str()).collect();
            bail!("there is no scenario called `{name}` here; known are {}", known.join(", "));
        }
    }
    for mode in &options.modes {
        let refusals = entries.iter().filter(|entry| entry.chosen).map(|entry| entry.scenario.applies(*mode));
        if let Some(Err(reason)) = refusals.min_by_key(Result::is_err) {
            bail!("the mode {mode} applies to none of these scenarios: {reason}");
        }
    }
    let ebb = entries.iter().filter(|entry| entry.chosen).flat_map(|entry| &entry.modes);
    if (!options.policies.is_empty() || options.slo.is_some())
        && !ebb.into_iter().any(|way| way.mode.is_ebb())
    {
        bail!("--policy and --slo are about ebb-isolated and ebb-shared, and neither is to be run");
    }
    Ok(entries)
}

fn entry(suite: String, scenario: Scenario, options: &RunOptions) -> Entry {
    let mut scenario = scenario.for_device(options.device);
    if let Some(repetitions) = options.repetitions {
        scenario.repetitions = repetitions;
    }
    if let Some(seconds) = options.seconds {
        scenario.duration = Nanos((seconds * 1e9).round() as u64);
    }
    if let Some(seed) = options.seed {
        scenario.seed = seed;
    }
    let applies = |mode: &Mode| scenario.applies(*mode).is_ok();
    let modes: Vec<Mode> = match options.modes.as_slice() {
        [] => scenario.modes(),
        wanted => wanted.iter().copied().filter(applies).collect(),
    };
    let chosen = options.scenarios.is_empty() || options.scenarios.contains(&scenario.name);
    let modes = Way::all(&modes, &options.policies, options.slo);
    Entry { suite, scenario, modes, chosen }
}
