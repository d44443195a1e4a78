//! What the service writes about itself, as far as it concerns its clients.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// Something happened that clients will feel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client's kernel failed in a way that the server cannot keep from the others; the server's own words.
    Fault(String),
    /// A server ended, and its clients with it; the control daemon's own words.
    ServerGone(String),
    /// The control daemon is no more.
    ControlGone,
}

/// No more is read at one look; what is behind it, at the next.
const MOST: u64 = 64 << 10;

/// A file that grows, read to its end again and again.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    read: u64,
    /// The beginning of a line whose end is not written yet.
    begun: Vec<u8>,
}

impl Tail {
    pub fn new(path: &Path) -> Tail {
        Tail { path: path.to_owned(), read: 0, begun: Vec::new() }
    }

    /// The lines that were completed since the last look. A file that is not there has none.
    pub fn lines(&mut self) -> Vec<String> {
        let Ok(mut file) = File::open(&self.path) else { return Vec::new() };
        let length = file.metadata().map_or(0, |facts| facts.len());
        if length < self.read {
            *self = Tail::new(&self.path);
        }
        let mut bytes = Vec::new();
        let more =
            file.seek(SeekFrom::Start(self.read)).and_then(|_| file.take(MOST).read_to_end(&mut bytes));
        self.read += more.unwrap_or(0) as u64;
        self.begun.extend_from_slice(&bytes);
        let Some(end) = self.begun.iter().rposition(|byte| *byte == b'\n') else {
            // A line without end is nothing that anybody could want to read.
            self.begun.truncate(MOST as usize);
            return Vec::new();
        };
        let whole: Vec<u8> = self.begun.drain(..=end).collect();
        String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect()
    }
}

/// What a line of the server's log means: "Client process 7 encountered a fatal GPU error", and the like.
pub fn of_server(line: &str) -> Option<Event> {
    line.to_lowercase().contains("fatal").then(|| Event::Fault(words(line)))
}

/// What a line of the control daemon's log means. A server that has nothing to do may end well.
pub fn of_control(line: &str) -> Option<Event> {
    let (_, status) = line.split_once(" exited with status ")?;
    (status.trim() != "0").then(|| Event::ServerGone(words(line)))
}

/// A line without the time and the name of who wrote it, which stand in brackets.
fn words(line: &str) -> String {
    let bare = line.trim();
    match bare.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((_, said)) => said.trim().to_owned(),
        None => bare.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn lines_are_read_once_and_when_they_are_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut tail = Tail::new(&path);
        assert_eq!(tail.lines(), Vec::<String>::new());
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(tail.lines(), ["one"]);
        file.write_all(b"o\nthree\n").unwrap();
        assert_eq!(tail.lines(), ["two", "three"]);
        assert_eq!(tail.lines(), Vec::<String>::new());
        std::fs::write(&path, "anew\n").unwrap();
        assert_eq!(tail.lines(), ["anew"], "a shorter file is another one");
    }

    #[test]
    fn a_fault_and_the_end_of_a_server_are_told_from_everyday_lines() {
        let fault = "[2026-11-15 10:00:00.000 Server 41] Client process 71 encountered a fatal GPU error.";
        assert_eq!(
            of_server(fault),
            Some(Event::Fault("Client process 71 encountered a fatal GPU error.".to_owned()))
        );
        assert_eq!(of_server("[2026-11-15 10:00:00.000 Server 41] Received new client request"), None);
        let gone = "[2026-11-15 10:00:00.000 Control 40] Server 41 exited with status 1";
        assert_eq!(of_control(gone), Some(Event::ServerGone("Server 41 exited with status 1".to_owned())));
        assert_eq!(of_control("[2026-11-15 10:00:00.000 Control 40] Server 41 exited with status 0"), None);
        assert_eq!(of_control("[2026-11-15 10:00:00.000 Control 40] NEW CLIENT 71 from user 0"), None);
    }
}
