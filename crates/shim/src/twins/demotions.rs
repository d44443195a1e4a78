//! What was found out about kernels the hard way, in all runs of this user.
//!
//! A line each in a file to which lines are only added (`guard::demotion`). A line that makes no sense is passed over. Of several
//! about one kernel the strictest holds.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use guard::Verdict;
use guard::demotion::Demotion;
use installation::memory;

/// A longer file is cut to the newer half of its lines.
const LONGEST: u64 = 1 << 20;

#[derive(Default)]
pub struct Demotions {
    file: Option<PathBuf>,
    known: BTreeMap<(u128, String), Verdict>,
}

impl Demotions {
    /// What is remembered in a folder; without one, what this process finds out.
    pub fn open(folder: Option<&Path>) -> Demotions {
        let file = folder.map(|folder| folder.join(memory::DEMOTIONS));
        let mut demotions = Demotions { file, known: BTreeMap::new() };
        for line in demotions.text().lines().filter_map(Demotion::parse) {
            demotions.know(line.key, &line.name, line.verdict);
        }
        demotions
    }

    fn text(&self) -> String {
        let mut text = Vec::new();
        let file = self.file.as_ref().and_then(|file| File::open(file).ok());
        if let Some(file) = file {
            let _ = file.take(2 * LONGEST).read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    fn know(&mut self, key: u128, name: &str, verdict: Verdict) {
        let known = self.known.entry((key, name.to_owned())).or_insert(verdict);
        if matches!(known, Verdict::Guard(_)) {
            *known = verdict;
        }
    }

    /// What to think of a kernel that is, by itself, worth this verdict.
    pub fn judge(&self, key: u128, name: &str, verdict: Verdict) -> Verdict {
        let known = self.known.get(&(key, name.to_owned()));
        match (verdict, known) {
            (Verdict::Guard(_), Some(known)) => *known,
            _ => verdict,
        }
    }

    pub fn remember(&mut self, key: u128, name: &str, verdict: Verdict) {
        if verdict == Verdict::Guard(guard::Rule::Plain) {
            // Nothing to remember: that is what kernels are.
            return;
        }
        self.know(key, name, verdict);
        let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |age| age.as_secs());
        if let Some(line) = Demotion::new(key, verdict, seconds, name) {
            self.append(&format!("{line}\n"));
        }
    }

    /// In one write, so that lines of several processes do not mix.
    fn append(&self, line: &str) {
        let Some(path) = &self.file else { return };
        let file = File::options().append(true).create(true).mode(0o600).open(path);
        let Ok(mut file) = file else { return };
        let _ = file.write_all(line.as_bytes());
        if file.metadata().is_ok_and(|facts| facts.len() > LONGEST) && file.try_lock().is_ok() {
            self.shorten(path);
        }
    }

    /// Keeps the newer half. A line that somebody adds meanwhile may be lost, and is found out again.
    fn shorten(&self, path: &Path) {
        let text = self.text();
        let middle = text.len() - text.len() / 2;
        let newer = text.char_indices().find(|&(at, letter)| at >= middle && letter == '\n');
        let newer = newer.map_or("", |(at, _)| &text[at + 1..]);
        let attempt = path.with_extension("attempt");
        if fs::write(&attempt, newer).and_then(|()| fs::rename(&attempt, path)).is_err() {
            let _ = fs::remove_file(&attempt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use guard::{Reason, Rule};

    const PLAIN: Verdict = Verdict::Guard(Rule::Plain);
    const ORDERED: Verdict = Verdict::Guard(Rule::Ordered);
    const HANGS: Verdict = Verdict::Refuse(Reason::WaitsForOthers);

    #[test]
    fn what_one_process_finds_out_the_next_one_knows() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = Demotions::open(Some(folder.path()));
        assert_eq!(first.judge(7, "scan", PLAIN), PLAIN);
        first.remember(7, "scan", ORDERED);
        first.remember(7, "void add(int, int)", HANGS);
        let second = Demotions::open(Some(folder.path()));
        for process in [first, second] {
            assert_eq!(process.judge(7, "scan", PLAIN), ORDERED);
            assert_eq!(process.judge(7, "void add(int, int)", PLAIN), HANGS);
            assert_eq!(process.judge(8, "scan", PLAIN), PLAIN, "other code of that name is another kernel");
        }
    }

    #[test]
    fn the_strictest_line_holds() {
        let mut demotions = Demotions::open(None);
        demotions.remember(7, "scan", ORDERED);
        demotions.remember(7, "scan", HANGS);
        demotions.remember(7, "scan", ORDERED);
        assert_eq!(demotions.judge(7, "scan", PLAIN), HANGS);
        let refused = Verdict::Refuse(Reason::Nccl);
        assert_eq!(demotions.judge(7, "scan", refused), refused, "a refusal of its own stays");
    }

    #[test]
    fn lines_that_make_no_sense_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let key = format!("{:032x}", 7);
        let lines = [
            format!("{key} waits-for-others 17 good"),
            format!("{key} no-such-reason 17 bad"),
            format!("{key} ordered never bad"),
            format!("{key} ordered 17 "),
            "7 ordered 17 bad".to_owned(),
            "\u{fffd}".to_owned(),
            String::new(),
        ];
        fs::write(folder.path().join(memory::DEMOTIONS), lines.join("\n")).unwrap();
        let demotions = Demotions::open(Some(folder.path()));
        assert_eq!(demotions.known.len(), 1);
        assert_eq!(demotions.judge(7, "good", PLAIN), HANGS);
    }

    #[test]
    fn a_file_that_grows_too_long_keeps_its_newer_half() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(memory::DEMOTIONS);
        let old = format!("{:032x} ordered 17 old\n", 1).repeat(1 + (LONGEST as usize) / 48);
        fs::write(&path, old).unwrap();
        let mut demotions = Demotions::open(Some(folder.path()));
        demotions.remember(2, "new", HANGS);
        assert!(fs::metadata(&path).unwrap().len() <= LONGEST / 2 + 100);
        let next = Demotions::open(Some(folder.path()));
        assert_eq!((next.judge(2, "new", PLAIN), next.judge(1, "old", PLAIN)), (HANGS, ORDERED));
    }
}
