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

/// What is behind this in a line is nothing that anybody could want to read.
pub const LONGEST_LINE: usize = 4096;

/// No more is read at one look; what is behind it, at the next.
const MOST: u64 = 64 << 10;

/// A file that grows, read to its end again and again.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    read: u64,
    lines: LineCollector,
}

impl Tail {
    pub fn new(path: &Path) -> Tail {
        Tail { path: path.to_owned(), read: 0, lines: LineCollector::default() }
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
        self.lines.take(&bytes)
    }
}

/// Makes lines of bytes that come in pieces.
#[derive(Clone, Debug, Default)]
pub struct LineCollector {
    /// The beginning of a line whose end has not come yet, as far as it is kept.
    begun: Vec<u8>,
}

impl LineCollector {
    /// The lines that these bytes complete, as people may see them. The rest of a line that is too long is passed over.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (part, whole) = piece.strip_suffix(b"\n").map_or((piece, false), |part| (part, true));
            let room = LONGEST_LINE - self.begun.len();
            self.begun.extend_from_slice(&part[..part.len().min(room)]);
            if whole {
                let line = std::mem::take(&mut self.begun);
                lines.push(model::text::printable_bytes(line.strip_suffix(b"\r").unwrap_or(&line)));
            }
        }
        lines
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
    fn a_line_without_end_is_cut_and_what_comes_behind_it_is_whole() {
        let mut lines = LineCollector::default();
        for _ in 0..100 {
            assert_eq!(lines.take(&[b'x'; 1000]), Vec::<String>::new());
        }
        assert_eq!(lines.take(b"y\nnext\n"), ["x".repeat(LONGEST_LINE), "next".to_owned()]);
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
