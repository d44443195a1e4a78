//! `ebb profile`: what is known of kernels, from all runs.
//!
//! * `kept`: what there is, read
//! * `choice`: which kernel is meant
//! * `text`, `json`, `csv`: for people, for programs, and for tables

pub mod arguments;
mod choice;
mod csv;
mod json;
pub mod kept;
#[cfg(test)]
mod tests;
mod text;

use std::io::{self, IsTerminal as _, Write as _};
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};
use installation::memory;
use model::Nanos;
use profile::Store;

use crate::arguments::Output;
use arguments::{ClearOptions, ExportOptions, Form, ListOptions, ProfileVerb, ShowOptions};
use kept::Kept;

pub fn run(verb: &ProfileVerb) -> Result<()> {
    let Some(store) = Store::of_this_user() else {
        bail!("no profiles are kept: {} is off, or no folder for caches is known", memory::PROFILES_VARIABLE);
    };
    match verb {
        ProfileVerb::List(options) => list(&store, options),
        ProfileVerb::Show(options) => show(&store, options),
        ProfileVerb::Export(options) => export(&store, options),
        ProfileVerb::Clear(options) => clear(&store, options),
    }
}

fn list(store: &Store, options: &ListOptions) -> Result<()> {
    let kept = read(store, options.platforms.gpu.as_deref())?;
    match options.output {
        Output::Text => print!("{}", text::list(&kept, now())),
        Output::Json => println!("{}", json::list(&kept)),
    }
    Ok(())
}

fn show(store: &Store, options: &ShowOptions) -> Result<()> {
    let kept = choice::choose(read(store, options.platforms.gpu.as_deref())?, &options.kernel)?;
    match options.output {
        Output::Text => print!("{}", text::show(&kept, now())),
        Output::Json => println!("{}", json::all(&kept)),
    }
    Ok(())
}

fn export(store: &Store, options: &ExportOptions) -> Result<()> {
    let kept = read(store, options.platforms.gpu.as_deref())?;
    match options.output {
        Form::Json => println!("{}", json::all(&kept)),
        Form::Csv => print!("{}", csv::all(&kept)),
    }
    Ok(())
}

fn clear(store: &Store, options: &ClearOptions) -> Result<()> {
    if !options.yes && !agreed(store)? {
        bail!("nothing was thrown away");
    }
    let folder = store.folder().display();
    let count = store.clear().with_context(|| format!("cannot empty {folder}"))?;
    println!("{count} {} thrown away in {folder}", if count == 1 { "profile" } else { "profiles" });
    Ok(())
}

/// Asks, where there is somebody to answer.
fn agreed(store: &Store) -> Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("nobody is there to be asked; say --yes to throw away all that is known of kernels");
    }
    eprint!("Throw away all that is known of kernels, in {}? [y/N] ", store.folder().display());
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// All profiles, and on standard error what is wrong with some.
fn read(store: &Store, gpu: Option<&str>) -> Result<Kept> {
    let kept = Kept::read(store, gpu)?;
    for remark in &kept.remarks {
        eprintln!("ebb: {remark}");
    }
    Ok(kept)
}

fn now() -> Nanos {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(Nanos::ZERO, Nanos::from)
}
