//! Whose configuration is meant: that of the daemon that answers, or of one that would.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use daemon::report::Report;
use daemon::{Mistake, Place, Scope, Sources, configuration_place};

use crate::arguments::Output;
use crate::json::Json;
use crate::status;

/// The daemon that answers, and where its configuration is written.
pub fn of_daemon() -> Result<(Place, Report, Sources)> {
    let (place, report) = status::find()?;
    let file = report.daemon.configuration.as_ref().context("the daemon has no place for a configuration")?;
    let scope = if report.daemon.scope == "machine" { Scope::Machine } else { Scope::User };
    // The folder is its own, or it would not be there.
    let user = std::fs::metadata(place.folder()).map_or(0, |facts| facts.uid());
    let sources = Sources::beside(Path::new(file), false, scope, user);
    Ok((place, report, sources))
}

/// What is to be looked at, with no daemon needed.
pub fn named(what: Option<&Path>, machine: bool) -> Result<Sources> {
    let scope = if machine { Scope::Machine } else { Scope::User };
    let user = rustix::process::geteuid().as_raw();
    match what {
        Some(folder) if folder.is_dir() => Ok(Sources::within(folder, scope, user)),
        Some(file) => Ok(Sources::only(file, scope, user)),
        None if machine => usual(scope, user),
        None => of_daemon().map(|(_, _, sources)| sources).or_else(|_| usual(scope, user)),
    }
}

fn usual(scope: Scope, user: u32) -> Result<Sources> {
    let file = configuration_place(scope).context("there is no home folder to look into")?;
    Ok(Sources::beside(&file, false, scope, user))
}

/// Mistakes, one to a line, where results go.
pub fn tell(mistakes: &[Mistake], output: Output) {
    match output {
        Output::Text => mistakes.iter().for_each(|mistake| println!("{mistake}")),
        Output::Json => println!("{}", json(mistakes)),
    }
}

fn json(mistakes: &[Mistake]) -> Json {
    let one = |mistake: &Mistake| {
        Json::object([
            ("file", mistake.file.display().to_string().into()),
            ("line", mistake.line.map_or(Json::Null, |line| Json::Number(line as i128))),
            ("message", mistake.message.as_str().into()),
        ])
    };
    Json::object([
        ("ok", Json::Bool(mistakes.is_empty())),
        ("mistakes", Json::List(mistakes.iter().map(one).collect())),
    ])
}

/// "a mistake" or "3 mistakes".
pub fn count(mistakes: &[Mistake]) -> String {
    match mistakes.len() {
        1 => "a mistake".to_owned(),
        many => format!("{many} mistakes"),
    }
}
