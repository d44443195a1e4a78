//! `ebb sim`: scenarios, played on a GPU that exists only as numbers.
//!
//! * `choice`: which scenarios, changed as the user wants, and which ways of sharing
//! * `show`: what came of it, for people and for programs
//! * `sweep`, `fleet`: the commands of those names

pub mod arguments;
pub mod choice;
mod fleet;
pub mod show;
mod sweep;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use results::record::{Build, Host, Machine, SCHEMA};
use results::{Archive, Figures, Record, Writer};
use sim::Card;
use sim::stage::{self, Performance, Stage, Way};

use crate::arguments::Output;
use arguments::{PlayOptions, SimOptions, SimVerb};

pub fn run(options: &SimOptions) -> Result<()> {
    match &options.verb {
        Some(SimVerb::Sweep(options)) => sweep::run(options),
        Some(SimVerb::Fleet(options)) => fleet::run(options),
        None => play(&options.play),
    }
}

fn play(options: &PlayOptions) -> Result<()> {
    let hand = choice::dials(&options.dials)?;
    let ways = choice::ways(&options.how.policies, options.how.domain, hand)?;
    let mut stages = choice::stages(&options.scenarios, &options.how, &Card::h200())?;
    let figures = perform(&mut stages, &ways, choice::threads(&options.how), options.how.out.as_deref())?;
    match options.output {
        Output::Text => print!("{}", show::tenants(&figures)),
        Output::Json => println!("{}", show::json(&figures)),
    }
    Ok(())
}

/// Plays everything, keeps the results where a folder is named, and says on standard error how fast that was.
pub fn perform(stages: &mut [Stage], ways: &[Way], threads: usize, out: Option<&Path>) -> Result<Figures> {
    let bar = show::bar(stage::worlds(stages, ways));
    let began = Instant::now();
    let performance = stage::play(stages, ways, threads, &|| bar.inc(1))?;
    bar.finish_and_clear();
    let took = began.elapsed();
    eprintln!("{}", show::pace(performance.simulated, took));
    let card = stages.first().map_or_else(Card::h200, |stage| stage.card.clone());
    let archive = written(performance, &card, out)?;
    Ok(Figures::of(&archive))
}

/// The results as an archive, and in a folder.
fn written(performance: Performance, card: &Card, out: Option<&Path>) -> Result<Archive> {
    let mut records = vec![Record::Machine(machine(card))];
    records.extend(performance.records);
    if let Some(folder) = out {
        let mut writer = Writer::open(folder)?;
        records.iter().try_for_each(|record| writer.append(record))?;
        let path = writer.path().to_owned();
        writer.finish()?;
        eprintln!("results: {}", path.display());
        return Archive::read(&[folder]).with_context(|| format!("in {}", folder.display()));
    }
    Ok(Archive::of(records))
}

/// What simulated results say of where they are from: nothing about this machine, since nothing depends on it.
fn machine(card: &Card) -> Machine {
    Machine {
        schema: SCHEMA,
        at: String::new(),
        ebb: Build { version: env!("CARGO_PKG_VERSION").to_owned(), commit: None, dirty: false },
        host: Host { cpu: "simulated".to_owned(), ..Host::default() },
        device: stage::device(card),
        libraries: std::collections::BTreeMap::new(),
        command: std::iter::once("ebb".to_owned()).chain(std::env::args().skip(1)).collect(),
    }
}
