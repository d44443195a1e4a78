//! `ebb trace`: who ran when, who was stopped for whom, and which requests were late.
//!
//! Tenants write down what happens to them in files beside their ledgers, which remember some thousands of events each.
//! `ebb trace` reads them while they are written, or takes what is there, and writes a file that can be looked at.
//!
//! * `logs`: the event logs that there are
//! * `watch`: reading them for a while

mod logs;
mod watch;

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use daemon::traces::clocks;
use model::Nanos;
use trace::{Source, chrome, perfetto};

use crate::arguments::{TraceFormat, TraceOptions};
use crate::run::report;
use crate::stdio;
use watch::{Stop, Watch};

const NOTHING: &str = "nothing was written down: no process under `ebb run` uses a GPU here, or they run with EBB_EVENTS=0 or \
                       without a daemon; `ebb status` shows who shares a GPU";

pub fn run(options: &TraceOptions) -> Result<()> {
    let target = options.out.clone().unwrap_or_else(|| usual_name(options.output).into());
    // Before anything is watched: a file that cannot be written should be known before, not after.
    let target = Target::open(target)?;
    let stop = Stop::catch()?;
    let begin = board_clock();
    let (mut watch, since) = match options.last {
        Some(last) => (Watch::once()?, begin.since(last)),
        None => (Watch::until(begin + options.duration, &stop)?, begin),
    };
    let (events, lost) = watch.counts();
    let sources = watch.finish(since);
    if sources.is_empty() {
        bail!(NOTHING);
    }
    let processes = sources.len();
    let story = trace::assemble(sources.into_iter().map(readable).collect(), since);
    let bytes = match options.output {
        TraceFormat::Perfetto => perfetto::write(&story, clocks()),
        TraceFormat::Chrome => chrome::write(&story).into_bytes(),
    };
    let place = target.write(&bytes)?;
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let processes = if processes == 1 { "1 process".to_owned() } else { format!("{processes} processes") };
    eprintln!("{} of {processes}{place}", plural(events, "event"));
    if lost > 0 {
        eprintln!(
            "ebb: {lost} events were overwritten before they could be read; a shorter or quieter stretch loses fewer"
        );
    }
    Ok(())
}

/// Names of kernels as people know them.
fn readable(mut source: Source) -> Source {
    source.kernels.values_mut().for_each(|name| *name = report::readable(name));
    source
}

fn usual_name(format: TraceFormat) -> &'static str {
    match format {
        TraceFormat::Perfetto => "ebb.pftrace",
        TraceFormat::Chrome => "ebb.json",
    }
}

/// The clock by which events are written down.
fn board_clock() -> Nanos {
    clocks().monotonic
}

/// Where the trace goes. A file appears when it is complete.
enum Target {
    Output,
    File { path: PathBuf, partial: PathBuf, file: File },
}

impl Target {
    fn open(path: PathBuf) -> Result<Target> {
        if path == Path::new("-") {
            return Ok(Target::Output);
        }
        let mut partial = path.clone().into_os_string();
        partial.push(format!(".partial-{}", std::process::id()));
        let partial = PathBuf::from(partial);
        if path.is_dir() {
            bail!("{} is a folder; name a file with --out", path.display());
        }
        let file = File::create(&partial).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Target::File { path, partial, file })
    }

    /// Says where it is.
    fn write(mut self, bytes: &[u8]) -> Result<String> {
        match &mut self {
            Target::Output => {
                stdio::put_bytes(bytes);
                Ok(String::new())
            }
            Target::File { path, partial, file } => {
                let written = file.write_all(bytes).and_then(|()| std::fs::rename(&*partial, &*path));
                written.with_context(|| format!("cannot write {}", path.display()))?;
                Ok(format!(" in {}; open it at https://ui.perfetto.dev", path.display()))
            }
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Target::File { partial, .. } = self {
            // Gone already, if it has become the file.
            let _ = std::fs::remove_file(partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_when_it_is_complete_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pftrace");
        drop(Target::open(path.clone()).unwrap());
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
        let said = Target::open(path.clone()).unwrap().write(b"bytes").unwrap();
        assert!(said.contains("x.pftrace"));
        assert_eq!(std::fs::read(&path).unwrap(), b"bytes");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
        assert!(Target::open(folder.path().to_owned()).is_err());
        assert!(Target::open(folder.path().join("no/such/folder")).is_err());
    }
}
