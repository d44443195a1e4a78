//! `ebb policy apply`: a file becomes part of the configuration in force, or nothing changes.
//!
//! It is judged together with the files that are there, by the rules by which the daemon judges; then it is put into
//! place as one, and the daemon asked to read. Should that fail all the same, what was there before is put back.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use daemon::{APPLIED, Loaded, Mistake, Sources, client};

use super::arguments::ApplyOptions;
use super::target;
use crate::arguments::Output;
use crate::json::Json;

pub fn run(options: &ApplyOptions) -> Result<()> {
    let (place, report, sources) = target::of_daemon()?;
    let text = read(&options.file)?;
    if let Err(mistakes) = judged(&sources, &options.file, &text) {
        target::tell(&mistakes, options.output);
        bail!("{}, so nothing was changed", target::count(&mistakes));
    }
    client::may_administer(&place)?;
    let folder = sources.folder().context("the daemon's configuration has no folder")?;
    let file = folder.join(APPLIED);
    let before = match fs::read(&file) {
        Ok(before) => Some(before),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    put(folder, &file, text.as_bytes())
        .with_context(|| format!("cannot write {}, so nothing was changed", file.display()))?;
    let reloaded = client::reload(&place).map_err(|error| {
        let back = match &before {
            Some(before) => put(folder, &file, before),
            None => fs::remove_file(&file),
        };
        // What is in force has not changed; but it should be seen to be what the files say.
        let _ = client::reload(&place);
        let said = match back {
            Ok(()) => "the daemon did not take it, and everything is as it was".to_owned(),
            Err(_) => format!("the daemon did not take it; remove {}", file.display()),
        };
        anyhow!(error).context(said)
    })?;
    // The daemon may have noticed the file by itself before we asked.
    let changed = reloaded.config_generation != report.daemon.config_generation;
    say(options.output, &file, reloaded.config_generation, changed);
    Ok(())
}

fn say(output: Output, file: &Path, generation: u64, changed: bool) {
    match output {
        Output::Text if changed => {
            println!("configuration {generation} is in force, with {}", file.display())
        }
        Output::Text => println!("configuration {generation} stays in force: this changes nothing"),
        Output::Json => println!(
            "{}",
            Json::object([
                ("config_generation", Json::Number(generation.into())),
                ("changed", Json::Bool(changed)),
                ("file", file.display().to_string().into()),
            ])
        ),
    }
}

pub fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// What would be in force. Mistakes of the new text are told under the name that it still has.
pub fn judged(sources: &Sources, file: &Path, text: &str) -> Result<Loaded, Vec<Mistake>> {
    let applied: Option<PathBuf> = sources.folder().map(|folder| folder.join(APPLIED));
    let rename = |mistake: Mistake| match applied.as_ref() == Some(&mistake.file) {
        true => Mistake { file: file.to_owned(), ..mistake },
        false => mistake,
    };
    Loaded::check_with(sources, APPLIED, text).map_err(|mistakes| mistakes.into_iter().map(rename).collect())
}

/// Puts a file into place as one: who reads finds the old one or the new one. Its name does not end in `.toml` until then.
fn put(folder: &Path, file: &Path, text: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    let fresh = folder.join(format!(".{APPLIED}.{}", std::process::id()));
    let write = || -> io::Result<()> {
        let mut written = OpenOptions::new().create_new(true).write(true).mode(0o644).open(&fresh)?;
        written.write_all(text)?;
        written.sync_all()?;
        fs::rename(&fresh, file)
    };
    write().inspect_err(|_| drop(fs::remove_file(&fresh)))
}
