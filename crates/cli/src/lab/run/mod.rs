//! `ebb lab run`: from the words on the command line to a campaign, and from its events to a person.
//!
//! * `entries`: which scenarios, changed as the user wants
//! * `site`: what they run on, looked at before anything starts
//! * `show`: what is seen meanwhile, and in the end

mod entries;
mod show;
mod site;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use lab::campaign::{Campaign, Order, Outcome, Patience};
use lab::crew::Stop;
use scenario::Device;

use super::arguments::RunOptions;
use crate::run::folder::RunFolder;
use show::Show;

const CREW_GPU: u32 = 40;
const CREW_SOFT: u32 = 100;

/// What shells call the end by a signal.
const BY_SIGNAL: usize = 128;

pub fn run(options: &RunOptions) -> Result<ExitCode> {
    let entries = entries::entries(options)?;
    let ground = site::look(options, &entries)?;
    let stop = catch_signals()?;
    let folder = RunFolder::create()?;
    let logs = options.out.join("logs");
    let order = Order {
        entries,
        out: options.out.clone(),
        logs: logs.clone(),
        site: ground.site(folder.path(), options)?,
        python: options.python.clone(),
        budget: options.budget,
        crew: options.crew.unwrap_or(if options.device == Device::Soft { CREW_SOFT } else { CREW_GPU })
            as usize,
        patience: Patience { grace: Duration::from_secs_f64(options.grace), ..Patience::default() },
        device: ground.device,
        build: site::build(),
        // What can be typed elsewhere, not where this program lies here.
        command: std::iter::once("ebb".to_owned()).chain(std::env::args().skip(1)).collect(),
    };
    let mut show = Show::new();
    let outcome = {
        let mut watch = |event: &lab::campaign::Event<'_>| show.see(event);
        Campaign::prepare(order, stop, &mut watch)?.run()?
    };
    drop(show);
    if outcome.failed == 0 && !options.keep_logs {
        // Whatever cannot be removed does no harm there.
        let _ = std::fs::remove_dir_all(&logs);
    }
    close(options, &outcome)
}

/// What is said in the end, and the status.
fn close(options: &RunOptions, outcome: &Outcome) -> Result<ExitCode> {
    show::table(&options.out)?;
    let Outcome { made, failed, left, stopped } = outcome;
    let mut words = format!("{made} runs made");
    if *failed > 0 {
        words += &format!(
            ", {failed} failed (their reasons are in the results, logs in {})",
            options.out.join("logs").display()
        );
    }
    if *left > 0 {
        words += &format!(", {left} left to do: the same command goes on with them");
    }
    println!("{words}.\nResults: {}", options.out.join(results::FILE).display());
    if let Some(signal) = stopped {
        return Ok(ExitCode::from(u8::try_from(BY_SIGNAL + signal).unwrap_or(u8::MAX)));
    }
    if *failed > 0 && *made == 0 && *left == 0 {
        bail!("no run succeeded");
    }
    Ok(ExitCode::SUCCESS)
}

/// From here on a signal is a wish that the campaign looks at; its workers are in groups of their own and hear nothing
/// of what a terminal sends.
fn catch_signals() -> Result<Stop> {
    let stop = Stop::default();
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        let number = usize::try_from(signal).context("signals have positive numbers")?;
        signal_hook::flag::register_usize(signal, stop.word(), number).context("cannot catch signals")?;
    }
    Ok(stop)
}
