//! `ebb policy check`: every mistake in a configuration.

use anyhow::{Result, bail};
use daemon::Loaded;

use super::arguments::CheckOptions;
use super::target;
use crate::arguments::Output;

pub fn run(options: &CheckOptions) -> Result<()> {
    let sources = target::named(options.what.as_deref(), options.machine)?;
    match Loaded::check(&sources) {
        Ok(loaded) => {
            match options.output {
                Output::Json => target::tell(&[], Output::Json),
                Output::Text if loaded.files.is_empty() => println!("there is no file, and so no mistake"),
                Output::Text => loaded.files.iter().for_each(|file| println!("{}: right", file.display())),
            }
            Ok(())
        }
        Err(mistakes) => {
            target::tell(&mistakes, options.output);
            bail!("the configuration has {}", target::count(&mistakes))
        }
    }
}
