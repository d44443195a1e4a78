//! `ebb sim sweep`: many policies, loads and dials, side by side.

use anyhow::{Context as _, Result, bail};
use scenario::{Arrival, Pace, Process, Scenario};
use sim::stage::{Stage, Way, set};
use sim::{Card, Hand};

use super::arguments::SweepOptions;
use super::{choice, perform, show};
use crate::arguments::Output;

const PAGE: &str = "report.html";

pub fn run(options: &SweepOptions) -> Result<()> {
    let mut ways: Vec<Way> = Vec::new();
    for hand in combinations(&options.dials)? {
        for way in choice::ways(&options.how.policies, options.how.domain, hand)? {
            // Who has no dials is the same for all of their values.
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
    }
    let mut stages = staged(options)?;
    let out = options.how.out.as_deref();
    let figures = perform(&mut stages, &ways, choice::threads(&options.how), out)?;
    if let Some(folder) = out {
        let archive = results::Archive::read(&[folder])?;
        let page = folder.join(PAGE);
        std::fs::write(&page, report::html(&archive, &results::Figures::of(&archive)))
            .with_context(|| format!("cannot write {}", page.display()))?;
        eprintln!("report: {}", page.display());
    }
    match options.output {
        Output::Text => print!("{}", show::modes(&figures)),
        Output::Json => println!("{}", show::json(&figures)),
    }
    Ok(())
}

fn staged(options: &SweepOptions) -> Result<Vec<Stage>> {
    let card = Card::h200();
    let mut stages = Vec::new();
    for (suite, scenario) in choice::scenarios(&options.scenarios, &options.how)? {
        if options.loads.is_empty() {
            stages.push(choice::staged(&suite, &scenario, &options.how, &card)?);
        }
        for &load in &options.loads {
            stages.push(choice::staged(&suite, &loaded(&scenario, load)?, &options.how, &card)?);
        }
    }
    Ok(stages)
}

/// The scenario with its latency tenants at another load, under a name that says so.
fn loaded(scenario: &Scenario, load: f64) -> Result<Scenario> {
    let mut changed = scenario.clone();
    let mut any = false;
    for tenant in &mut changed.tenants {
        if tenant.is_latency() && tenant.arrival.process != Process::Closed {
            tenant.arrival = Arrival { process: tenant.arrival.process.clone(), pace: Pace::Load(load) };
            any = true;
        }
    }
    if !any {
        bail!("{} has no latency tenant whose load could be changed", scenario.name);
    }
    changed.name = format!("{} at load {load}", scenario.name);
    changed.title = format!("{}, load {load}", scenario.title);
    Ok(changed)
}

/// Every value of every dial with every value of every other.
fn combinations(settings: &[String]) -> Result<Vec<Hand>> {
    let mut all = vec![Hand::default()];
    for setting in settings {
        let Some((dial, values)) = setting.split_once('=') else {
            bail!("--set {setting}: this is not DIAL=VALUE")
        };
        let mut more = Vec::new();
        for hand in &all {
            for value in values.split(',') {
                let mut hand = *hand;
                set(&mut hand, &format!("{dial}={value}"))
                    .map_err(anyhow::Error::msg)
                    .with_context(|| format!("--set {setting}"))?;
                more.push(hand);
            }
        }
        all = more;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use model::Nanos;

    use super::*;

    #[test]
    fn dials_are_combined() {
        let settings = ["quiet=50us,100us".to_owned(), "beside=0us,20us,40us".to_owned()];
        let all = combinations(&settings).unwrap();
        assert_eq!(all.len(), 6);
        assert!(
            all.iter().any(|hand| hand.quiet == Some(Nanos::from_micros(50))
                && hand.beside == Some(Nanos::from_micros(40)))
        );
        let error = format!("{:#}", combinations(&["quiet".to_owned()]).unwrap_err());
        assert!(error.contains("not DIAL=VALUE"), "{error}");
    }

    #[test]
    fn a_load_is_in_the_name_and_only_open_arrivals_have_one() {
        let suite = scenario::Suite::named("tally").unwrap();
        let changed = loaded(&suite.scenarios[0], 0.3).unwrap();
        assert!(changed.name.ends_with(" at load 0.3"));
        assert_eq!(changed.tenants[0].arrival.pace, Pace::Load(0.3));
        let closed = scenario::Suite::named("disb-b").unwrap();
        assert!(loaded(&closed.scenarios[0], 0.3).is_err());
    }
}
