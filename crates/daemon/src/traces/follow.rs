//! Following what a process writes down.

use std::fs;
use std::path::{Path, PathBuf};

use telemetry::{EventReader, Reading};
use trace::Source;

use crate::Error;

/// How event logs are called.
const ENDING: &str = "events";

/// Somebody who reads the event log of a process.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    owner: Option<u32>,
    reader: EventReader,
    source: Source,
}

impl Follower {
    /// The log must be a file of this user's, where one is given.
    pub fn open(path: &Path, owner: Option<u32>) -> Result<Follower, Error> {
        let reader = EventReader::open_of(path, owner).map_err(Error::Events)?;
        let source = Source { pid: reader.pid, name: reader.name.clone(), ..Source::default() };
        Ok(Follower { path: path.to_owned(), owner, reader, source })
    }

    /// The log that a process has mapped, as its `/proc` shows it: through its own root, since it may live in a container.
    pub fn of_process(pid: u32, owner: u32) -> Option<Follower> {
        let maps = fs::read(format!("/proc/{pid}/maps")).ok()?;
        let text = String::from_utf8_lossy(&maps);
        let path = |line: &str| line.find('/').map(|at| line[at..].to_owned());
        let mut logs = text.lines().filter_map(path).filter(|path| is_log(Path::new(path)));
        let path = logs.next_back()?;
        let rooted = PathBuf::from(format!("/proc/{pid}/root{path}"));
        let followed = Follower::open(&rooted, Some(owner)).ok()?;
        Some(Follower { source: Source { pid, ..followed.source }, ..followed })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn pid(&self) -> u32 {
        self.source.pid
    }

    /// Takes what has come.
    pub fn poll(&mut self) {
        let polled = self.reader.poll();
        self.source.events.extend(polled.events);
        self.source.lost += polled.lost;
    }

    /// What has come besides launches. It is handed over, not kept.
    pub fn course(&mut self) -> Vec<telemetry::Event> {
        self.reader.poll_course().events
    }

    /// What the process has counted.
    pub fn ledger(&self) -> Option<Reading> {
        Reading::open_of(&self.path.with_extension("ledger"), self.owner).ok()
    }

    /// How much was read, and how much was lost.
    pub fn counts(&self) -> (usize, u64) {
        (self.source.events.len(), self.source.lost)
    }

    /// All that was read, with the names that are known by now.
    pub fn finish(mut self) -> Source {
        let posts = (0..u8::try_from(telemetry::POSTS).unwrap_or(u8::MAX)).filter_map(|post| {
            let gpu = self.reader.gpu(post)?;
            Some((post, gpu))
        });
        self.source.gpus = posts.collect();
        if let Some(ledger) = self.ledger() {
            let kernels = ledger.kernels.into_iter();
            self.source.kernels = kernels.map(|kernel| (kernel.index, kernel.name)).collect();
            if self.source.name.is_empty() {
                self.source.name = ledger.program;
            }
        }
        self.source
    }
}

/// Whether a file is called as an event log is.
pub fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == ENDING)
}
