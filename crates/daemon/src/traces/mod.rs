//! What happened when a request was late, written down before it is forgotten.
//!
//! Tenants keep the last thousands of their events in memory files beside their ledgers (`telemetry`). Where the
//! configuration says `[trace] on_miss = true`, the daemon looks at those of a GPU when a latency tenant there has missed
//! its objective, and writes the last seconds as a Perfetto trace into a folder of its own. It keeps nothing itself, and
//! reads only what belongs to the user whose process it is.
//!
//! To read the logs of a machine takes longer than anybody who wants a seat should wait, so that it is done by a thread that
//! ends with it. There is never more than one.

mod follow;

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use model::Nanos;
use rustix::time::{ClockId, clock_gettime};
use trace::Source;
use trace::perfetto::{self, Clocks};

pub use follow::{Follower, is_log};

/// How often a trace is written at most, and how many are kept.
const EVERY: Nanos = Nanos::from_millis(60_000);
const KEPT: usize = 16;

/// A process whose log is to be read, and whose it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub pid: u32,
    pub user: u32,
}

/// Writes traces into a folder, now and then.
#[derive(Debug)]
pub struct Traces {
    folder: PathBuf,
    last: Option<Nanos>,
    at_work: Option<JoinHandle<String>>,
}

impl Traces {
    /// The folder is made when it is needed.
    pub fn new(folder: PathBuf) -> Traces {
        Traces { folder, last: None, at_work: None }
    }

    /// Somebody was late: has a trace written of what these processes did for so long, unless there was one less than a minute
    /// ago.
    pub fn missed(&mut self, members: Vec<Member>, span: Nanos, now: Nanos) {
        let busy = self.at_work.is_some() || self.last.is_some_and(|last| now.since(last) < EVERY);
        if busy {
            return;
        }
        self.last = Some(now);
        let folder = self.folder.clone();
        let work = move || match write(&folder, &members, span, now) {
            Ok(path) => format!("a request was late; what happened is in {}", path.display()),
            Err(error) => format!("a request was late, and no trace could be written: {error}"),
        };
        // Without a thread there is no trace; the next miss tries again in a minute.
        self.at_work = thread::Builder::new().name("ebb-trace".to_owned()).spawn(work).ok();
    }

    /// What became of the trace that was being written.
    pub fn news(&mut self) -> Option<String> {
        let done = self.at_work.take_if(|thread| thread.is_finished())?;
        Some(done.join().unwrap_or_else(|_| "a trace could not be written".to_owned()))
    }
}

fn write(folder: &Path, members: &[Member], span: Nanos, now: Nanos) -> io::Result<PathBuf> {
    let mut followers: Vec<Follower> =
        members.iter().filter_map(|member| Follower::of_process(member.pid, member.user)).collect();
    followers.iter_mut().for_each(Follower::poll);
    let sources: Vec<Source> = followers.into_iter().map(Follower::finish).collect();
    if sources.iter().all(|source| source.events.is_empty()) {
        return Err(io::Error::other("the processes have written nothing down, or it may not be read"));
    }
    let story = trace::assemble(sources, now.since(span));
    keep(folder, &perfetto::write(&story, clocks()))
}

/// Writes a file that is there whole or not at all, and removes the oldest.
fn keep(folder: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let millis = clocks().real.0 / 1_000_000;
    let path = folder.join(format!("miss-{millis}.pftrace"));
    let partial = folder.join(".miss.partial");
    let _ = fs::remove_file(&partial);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
    file.write_all(bytes)?;
    fs::rename(&partial, &path)?;
    let mut kept: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    kept.retain(|path| path.extension().is_some_and(|ending| ending == "pftrace"));
    // The time in their names has as many digits in all of them.
    kept.sort();
    let surplus = kept.len().saturating_sub(KEPT);
    kept.iter().take(surplus).for_each(|path| _ = fs::remove_file(path));
    Ok(path)
}

/// The clocks of this machine now.
pub fn clocks() -> Clocks {
    let read = |clock| {
        let now = clock_gettime(clock);
        Nanos(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
    };
    Clocks {
        monotonic: read(ClockId::Monotonic),
        boot: read(ClockId::Boottime),
        real: read(ClockId::Realtime),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::MetadataExt as _;

    use telemetry::{Event, EventLog, Stem, What};

    use super::*;

    fn wait(traces: &mut Traces) -> String {
        loop {
            if let Some(news) = traces.news() {
                return news;
            }
            thread::yield_now();
        }
    }

    #[test]
    fn a_miss_is_written_down_once_a_minute_from_what_the_processes_have_mapped() {
        let folder = tempfile::tempdir().unwrap();
        let name = CString::new(folder.path().as_os_str().as_bytes()).unwrap();
        let log = EventLog::create(&name, Stem::now(), 7, b"server").unwrap();
        let now = board::now();
        let request = What::Request {
            lasted: Nanos(5),
            late: true,
            objective: Some(Nanos(1)),
            slowdown_permille: None,
        };
        log.write(&Event { time: now, post: 0, what: request });
        let own = Member { pid: std::process::id(), user: rustix::process::geteuid().as_raw() };

        let mut traces = Traces::new(folder.path().join("traces"));
        let second = Nanos::from_millis(1_000);
        traces.missed(vec![own], second, now);
        let said = wait(&mut traces);
        assert!(said.contains("miss-"), "{said}");
        traces.missed(vec![own], second, now + second);
        assert!(traces.news().is_none(), "a minute has not passed");
        let files: Vec<_> = fs::read_dir(folder.path().join("traces")).unwrap().flatten().collect();
        assert_eq!(files.len(), 1);
        let bytes = fs::read(files[0].path()).unwrap();
        assert!(bytes.windows(12).any(|window| window == b"late request"));
        assert_eq!(files[0].metadata().unwrap().mode() & 0o777, 0o600);

        let foreign = Member { user: own.user + 1, ..own };
        traces.missed(vec![foreign], second, now + EVERY);
        assert!(wait(&mut traces).contains("no trace could be written"), "what is not theirs is not read");
    }

    #[test]
    fn the_oldest_go() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..20 {
            fs::write(folder.path().join(format!("miss-17632224000{number:02}.pftrace")), "").unwrap();
        }
        let path = keep(folder.path(), b"new").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), KEPT);
        assert_eq!(fs::read(path).unwrap(), b"new");
        assert!(!folder.path().join("miss-1763222400000.pftrace").exists());
    }
}
