//! `ebb demo`: the main job on the software GPU, small enough for any laptop.
//!
//! A latency tenant answers requests, a best-effort tenant computes without end: first each alone, then both as a
//! stock driver shares a GPU, then both under ebb, and then with a second best-effort tenant. Then another pair, in the shared
//! domain: requests that are bound by their launches, and best-effort work in their gaps, in rounds with the requests alone. Every
//! figure is measured in this run. The tenants are processes like any other with the shim in front of their driver, and their ledgers must
//! show it.
//!
//! * `stage`: the private folder of a demo, and how its tenants are started
//! * `table`: what is said in the end; `bars`: what ebb promises, and whether this run kept it

mod bars;
mod stage;
mod table;

use std::io::{self, BufReader};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use lab::Scene::{self, Bursts, LaunchBound};
use lab::{Experiment, Job, Report};
use model::Class::{self, BestEffort, Latency};

use crate::arguments::{DemoOptions, Output, TenantOptions};
use stage::{Sharing, Stage};
use table::{Row, Table};

/// The lines of the table: their names, what the tenants are like, who runs, and what stands between them and the driver.
const PHASES: [(&str, Scene, &[Class], Sharing); 8] = [
    ("latency alone", Bursts, &[Latency], Sharing::Driver),
    ("best-effort alone", Bursts, &[BestEffort], Sharing::Driver),
    ("together, time-sliced", Bursts, &[Latency, BestEffort], Sharing::Driver),
    (bars::TOGETHER, Bursts, &[Latency, BestEffort], Sharing::Ebb),
    ("two best-effort, ebb", Bursts, &[Latency, BestEffort, BestEffort], Sharing::Ebb),
    (bars::LAUNCH_BOUND, LaunchBound, &[Latency], Sharing::Driver),
    ("short blocks alone", LaunchBound, &[BestEffort], Sharing::Driver),
    (bars::IN_GAPS, LaunchBound, &[Latency, BestEffort], Sharing::Ebb),
];

/// Two lines are held against each other to a few hundredths, and a machine is not the same from one minute to the next. So they are
/// measured in turn, in so many rounds, each so many hundredths of a phase long.
const IN_TURN: [&str; 2] = [bars::LAUNCH_BOUND, bars::IN_GAPS];
const ROUNDS: usize = 3;
const ROUND: u32 = 75;
/// In a shorter one there may be no moment at which everybody is seen to have come.
const SHORTEST_ROUND: Duration = Duration::from_secs(1);

/// All phases in the order in which they are run: indices of lines.
fn programme() -> Vec<usize> {
    let again = PHASES.iter().enumerate().filter(|(_, (name, ..))| IN_TURN.contains(name));
    let again: Vec<usize> = again.map(|(line, _)| line).collect();
    (0..PHASES.len()).chain((1..ROUNDS).flat_map(|_| again.clone())).collect()
}

pub fn run(options: &DemoOptions) -> Result<()> {
    let stage = Stage::set(options)?;
    let span = Duration::from_secs_f64(options.seconds);
    let programme = programme();
    let bar = bar(programme.len() as u64 * 100);
    let mut rows: Vec<Row> = Vec::new();
    for (index, line) in programme.into_iter().enumerate() {
        let (name, scene, classes, sharing) = PHASES[line];
        bar.set_message(name);
        let base = index as u64 * 100;
        let round = (span * ROUND / 100).max(SHORTEST_ROUND);
        let span = if IN_TURN.contains(&name) { round } else { span };
        let experiment = Experiment { span, seed: options.seed };
        let objective = table::objective(&rows, scene);
        let actor = |(number, &class)| stage.actor(scene, class, number, sharing, objective);
        let actors: Vec<_> = classes.iter().enumerate().map(actor).collect();
        let mut seats = Vec::new();
        let outcome = experiment.run(&actors, &mut |percent| {
            bar.set_position(base + percent);
            // In the middle, where everybody has come and nobody has gone.
            if sharing == Sharing::Ebb && percent >= 50 && seats.len() < actors.len() {
                seats = stage.seats(scene);
            }
        })?;
        bar.set_position(base + 100);
        match rows.get_mut(line) {
            Some(row) => row.add(outcome, seats),
            None => rows.push(Row::new(name, scene, sharing, outcome, seats)),
        }
    }
    bar.finish_and_clear();
    let table = Table::new(rows, stage.readings(), stage.card(Bursts));
    match options.output {
        Output::Text => print!("{table}"),
        Output::Json => println!("{}", table.json()),
    }
    ensure!(table.reports().all(Report::all_right), "some results were wrong, see the table");
    table.check_attachment()?;
    table.check_seats()
}

/// The hidden verb: one tenant, talking to the demo that started it.
pub fn tenant(options: &TenantOptions) -> Result<()> {
    let span = Duration::from_secs_f64(options.seconds);
    let job = Job { class: options.class, scene: options.scene, span, seed: options.seed };
    lab::serve(&options.driver, job, BufReader::new(io::stdin()), &mut io::stdout())?;
    Ok(())
}

/// The other hidden verb, for tests.
pub fn digest(driver: &Path, steps: u32) -> Result<()> {
    println!("{:016x}", lab::digest(driver, steps)?);
    Ok(())
}

fn bar(length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:24} [{bar:40}] {percent:>3}%  {elapsed}");
    let bar = ProgressBar::new(length);
    bar.set_style(style.expect("the template is valid").progress_chars("=> "));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
