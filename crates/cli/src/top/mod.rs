//! `ebb top`: who shares the GPUs, live.
//!
//! The daemon is asked for its report again and again, as `ebb status` asks once, and two reports that follow each other
//! become rows with rates. Nothing is asked of tenants, and nothing of them depends on anybody looking: a view that dies, or a
//! daemon that does, changes nothing for them. A daemon that goes away is waited for.
//!
//! One thread owns the screen. Everything that happens comes to it as an event from threads that only wait: for a key, for
//! a signal, for the daemon's next report, for the answer to a change. So a daemon that is slow to answer does not make the
//! keys slow, and nothing needs a lock.
//!
//! * `daemon::scene`: two reports as rows; `history`: what was before them
//! * `desk`: what the person has chosen; `keys`: what keys do to it
//! * `columns`, `short`: what is in a cell; `view`: where the cells are
//! * `screen`: the terminal, taken and given back
//! * `once`: one frame for paper or for programs

pub mod arguments;
mod columns;
mod desk;
mod history;
mod keys;
mod once;
mod screen;
mod short;
#[cfg(test)]
mod tests;
mod view;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use ::model::Nanos;
use anyhow::{Context as _, Result, bail};
use crossterm::event::{Event as Input, KeyEvent};
use daemon::client;
use daemon::report::Report;
use rustix::process::{getppid, getsid};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::arguments::Output;
use crate::status;
use arguments::TopOptions;
use desk::{Change, Desk};
use keys::Demand;
use screen::Screen;
use view::Look;

/// The status for a command line that cannot be meant.
const USAGE: u8 = 2;

/// How wide a frame is where nothing says how wide it may be.
const WIDTH_OF_PAPER: u16 = 100;

/// What the loop hears of.
enum Event {
    Key(KeyEvent),
    /// The window has another size.
    Resized,
    Signal(i32),
    /// The daemon's report; nothing if there is none to be had.
    Report(Option<Box<Report>>),
    /// What came of a change.
    Changed(String),
    /// A thread is no more; what is said of it comes behind the screen.
    Broken(&'static str),
}

/// Why the loop ended.
enum End {
    Quit,
    Signal(i32),
}

pub fn run(options: &TopOptions) -> ExitCode {
    let refusal = if options.once { None } else { no_screen() };
    if let Some(refusal) = refusal {
        eprintln!("ebb: {refusal}; `ebb top --once` prints one frame");
        return ExitCode::from(USAGE);
    }
    let result = if options.once { print_once(options) } else { live(options.interval) };
    match result {
        Ok(End::Quit) => ExitCode::SUCCESS,
        Ok(End::Signal(signal)) => {
            // Whoever waits for us should see that a signal ended us; the status is for a signal that does not.
            let _ = emulate_default_handler(signal);
            ExitCode::from(u8::try_from(signal).unwrap_or(0).saturating_add(128))
        }
        Err(error) => {
            eprintln!("ebb: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Why nothing can be drawn here.
fn no_screen() -> Option<&'static str> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Some("`ebb top` needs a terminal");
    }
    let kind = std::env::var_os("TERM").unwrap_or_default();
    (kind.is_empty() || kind == "dumb").then_some("this terminal cannot be drawn on (TERM)")
}

fn print_once(options: &TopOptions) -> Result<End> {
    let mut desk = Desk::new();
    desk.take(Some(status::report()?));
    thread::sleep(options.interval.into());
    // If there is no second one, the first has what there is.
    if let Ok(report) = status::report() {
        desk.take(Some(report));
    }
    match options.output {
        Output::Text => print!("{}", once::text(&desk, paper_width())),
        Output::Json => println!("{}", once::json(&desk)),
    }
    Ok(End::Quit)
}

fn paper_width() -> u16 {
    let width =
        || crossterm::terminal::size().ok().map(|(columns, _)| columns).filter(|columns| *columns > 0);
    if io::stdout().is_terminal() { width().unwrap_or(WIDTH_OF_PAPER) } else { WIDTH_OF_PAPER }
}

fn live(interval: Nanos) -> Result<End> {
    // Where there is no daemon at the beginning, that is worth more than an empty screen.
    let first = status::report()?;
    let mut desk = Desk::new();
    desk.take(Some(first));
    let (sender, events) = mpsc::channel();
    watch_panics(sender.clone());
    watch_signals(sender.clone()).context("signals cannot be watched")?;
    let look =
        Look { colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()), live: true };
    let mut screen = Screen::take(look).context("the terminal cannot be drawn on")?;
    watch_keys(sender.clone());
    watch_daemon(sender.clone(), interval);
    loop {
        screen.draw(&desk).context("the terminal cannot be drawn on")?;
        match events.recv().context("nothing happens any more")? {
            Event::Key(key) => match keys::press(&mut desk, key) {
                Demand::Nothing => {}
                Demand::Quit => return Ok(End::Quit),
                Demand::Suspend => suspend(&mut screen)?,
                Demand::Change(change) => ask(sender.clone(), change),
            },
            Event::Resized => {}
            Event::Signal(SIGTSTP) => suspend(&mut screen)?,
            Event::Signal(SIGCONT) => screen.take_again().context("the terminal cannot be drawn on")?,
            Event::Signal(signal) => return Ok(End::Signal(signal)),
            Event::Report(report) => desk.take(report.map(|report| *report)),
            Event::Changed(message) => desk.message = Some(message),
            Event::Broken(what) => bail!("{what}"),
        }
    }
}

/// Stops, with the terminal given back for as long. Where no shell is there to let us go on, that would be for ever.
fn suspend(screen: &mut Screen) -> Result<()> {
    let shell = getppid().and_then(|parent| getsid(Some(parent)).ok());
    if shell.is_none() || shell != getsid(None).ok() {
        return Ok(());
    }
    screen::give_back();
    emulate_default_handler(SIGTSTP).context("cannot stop")?;
    screen.take_again().context("the terminal cannot be drawn on")
}

/// A panic is told on a terminal that can show it, and ends the loop wherever it happened.
fn watch_panics(sender: Sender<Event>) {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        screen::give_back();
        tell(panic);
        let _ = sender.send(Event::Broken("`ebb top` has failed; the message above says where"));
    }));
}

/// From here on whoever cannot send has outlived the loop, and ends.
fn watch_signals(sender: Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGCONT])?;
    thread::spawn(move || {
        let _ = signals.forever().try_for_each(|signal| sender.send(Event::Signal(signal)));
    });
    Ok(())
}

fn watch_keys(sender: Sender<Event>) {
    thread::spawn(move || {
        loop {
            let event = match crossterm::event::read() {
                Ok(Input::Key(key)) if key.is_press() => Event::Key(key),
                Ok(Input::Resize(..)) => Event::Resized,
                Ok(_) => continue,
                Err(_) => Event::Broken("the keyboard is gone"),
            };
            if sender.send(event).is_err() {
                return;
            }
        }
    });
}

fn watch_daemon(sender: Sender<Event>, interval: Nanos) {
    let interval = Duration::from(interval);
    thread::spawn(move || {
        loop {
            thread::sleep(interval);
            let report = status::report().ok().map(Box::new);
            if sender.send(Event::Report(report)).is_err() {
                return;
            }
        }
    });
}

/// Asks the daemon for a change, and tells what came of it.
fn ask(sender: Sender<Event>, change: Change) {
    thread::spawn(move || {
        let result = status::place().and_then(|place| Ok(client::change(&place, &change.request())?));
        let message = match result {
            Ok(_) => format!("{}d {}", change.verb(), change.name),
            Err(error) => format!("{} was not {}d: {error:#}", change.name, change.verb()),
        };
        let _ = sender.send(Event::Changed(message));
    });
}

#[cfg(test)]
mod panics {
    use super::*;

    #[test]
    fn one_in_any_thread_ends_the_loop() {
        let (sender, events) = mpsc::channel();
        watch_panics(sender);
        assert!(thread::spawn(|| panic!("as a test wants it")).join().is_err());
        assert!(matches!(events.recv().unwrap(), Event::Broken(_)));
    }
}
