//! `ebb policy diff`: one trace under two policies.

use anyhow::{Context as _, Result, bail, ensure};
use results::figures::ModeFigures;
use results::{Archive, Figures};
use sim::Card;
use sim::stage::{Stage, Way};

use super::arguments::DiffOptions;
use crate::arguments::Output;
use crate::sim::{choice, perform, show};

pub fn run(options: &DiffOptions, after: &str) -> Result<()> {
    let hand = choice::dials(&options.dials)?;
    let way = |text: &str| Way::parse(text, options.domain, hand).with_context(|| text.to_owned());
    let ways = [way(&options.before)?, way(after)?];
    ensure!(ways[0] != ways[1], "both are {}: there is nothing to compare", ways[0]);
    let archive = Archive::read(&options.trace)?;
    let mut stages = stages(&archive, &options.scenarios)?;
    let figures = perform(&mut stages, &ways, choice::processors(), None)?;
    match options.output {
        Output::Text => print!("{}", page(&figures, &ways.map(|way| way.to_string()))),
        Output::Json => println!("{}", show::json(&figures)),
    }
    Ok(())
}

/// The scenarios of a trace that can be replayed. One whose tenants were never alone is left out, and said so.
fn stages(archive: &Archive, wanted: &[String]) -> Result<Vec<Stage>> {
    for name in wanted {
        if !archive.scenarios.iter().any(|scenario| scenario.name == *name) {
            let known: Vec<&str> = archive.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
            bail!("the trace has no scenario called `{name}`; known are {}", known.join(", "));
        }
    }
    let mut stages = Vec::new();
    for scenario in &archive.scenarios {
        if wanted.is_empty() || wanted.contains(&scenario.name) {
            match Stage::of_archive(archive, &scenario.suite, &scenario.name, &Card::h200()) {
                Ok(stage) => stages.push(stage),
                Err(error) => eprintln!("left out: {error}"),
            }
        }
    }
    ensure!(
        !stages.is_empty(),
        "nothing in the trace can be replayed: it needs runs of every tenant alone (--mode alone)"
    );
    Ok(stages)
}

fn page(figures: &Figures, ways: &[String; 2]) -> String {
    let mut text = String::new();
    for scenario in &figures.scenarios {
        let of = |mode: &str| scenario.mode(mode);
        let (Some(before), Some(after)) = (of(&ways[0]), of(&ways[1])) else { continue };
        text +=
            &format!("{}/{}: {}\n", scenario.scenario.suite, scenario.scenario.name, scenario.scenario.title);
        let mut rows = vec![["tenant", "figure", &ways[0], &ways[1], "change"].map(str::to_owned).to_vec()];
        rows.extend(changes(before, after));
        text += &show::table(&rows, 2);
    }
    text
}

/// What changes for each tenant.
fn changes(before: &ModeFigures, after: &ModeFigures) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let row = |tenant: &str, figure: &str, cells: [String; 2], change: String| {
        let [one, other] = cells;
        vec![tenant.to_owned(), figure.to_owned(), one, other, change]
    };
    for one in &before.latency {
        let Some(other) = after.latency_of(&one.tenant) else { continue };
        let quantiles = [("p50", one.p50.value, other.p50.value), ("p99", one.p99.value, other.p99.value)];
        for (name, was, is) in quantiles {
            rows.push(row(
                &one.tenant,
                name,
                [show::milliseconds(was), show::milliseconds(is)],
                change(was, is),
            ));
        }
        if let (Some(was), Some(is)) = (one.attainment, other.attainment) {
            let points = format!("{:+.1} points", (is.value - was.value) * 100.0);
            rows.push(row(
                &one.tenant,
                "in time",
                [show::percent(was.value), show::percent(is.value)],
                points,
            ));
        }
    }
    for one in &before.best_effort {
        let Some(other) = after.best_effort_of(&one.tenant) else { continue };
        let (was, is) = (one.rate.value, other.rate.value);
        rows.push(row(&one.tenant, "iterations/s", [show::figure(was), show::figure(is)], change(was, is)));
    }
    rows
}

fn change(was: f64, is: f64) -> String {
    match (was.is_finite(), is.is_finite()) {
        (true, true) if was > 0.0 => format!("{:+.1}%", (is / was - 1.0) * 100.0),
        (true, false) => "into overload".to_owned(),
        (false, true) => "out of overload".to_owned(),
        _ => show::dash(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_as_shares_and_overload_in_words() {
        assert_eq!(change(2.0, 3.0), "+50.0%");
        assert_eq!(change(2.0, f64::INFINITY), "into overload");
        assert_eq!(change(f64::INFINITY, 2.0), "out of overload");
        assert_eq!(change(0.0, 2.0), "–");
    }

    #[test]
    fn a_scenario_that_was_not_recorded_is_told_the_known_ones() {
        let error = stages(&results::sample::archive(), &["unheard-of".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("known are disb-a, "), "{error}");
    }
}
