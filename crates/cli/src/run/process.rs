//! Processes as `/proc` shows them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What identifies a process for as long as the machine is up, and who started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    /// In clock ticks since the machine started.
    pub began: u64,
}

/// When a process began, or `None` when there is none of this number.
pub fn began(pid: u32) -> Option<u64> {
    look(pid).map(|process| process.began)
}

/// How long ago a process began, or `None` when there is none of this number.
pub fn age(pid: u32) -> Option<Duration> {
    /// Clock ticks in a second, as Linux counts them for programs wherever CUDA runs.
    const TICKS: f64 = 100.0;
    let ticks = began(pid)?;
    let up = fs::read_to_string("/proc/uptime").ok()?;
    let up: f64 = up.split_ascii_whitespace().next()?.parse().ok()?;
    let since = up - ticks as f64 / TICKS;
    // The two clocks are read one after the other, and in hundredths.
    Some(Duration::from_secs_f64(since.max(0.0) + 0.05))
}

pub fn look(pid: u32) -> Option<Process> {
    parse(pid, &fs::read_to_string(place(pid, "stat")).ok()?)
}

/// Whether a process stands still, by a signal that stops.
pub fn stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(place(pid, "stat")).unwrap_or_default();
    stat.rfind(')').is_some_and(|at| stat[at + 1..].trim_start().starts_with('T'))
}

/// All processes that can be seen.
pub fn all() -> Vec<Process> {
    let entries = Path::new("/proc").read_dir().into_iter().flatten().flatten();
    entries.filter_map(|entry| look(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// The file a process runs.
pub fn executable(pid: u32) -> Option<PathBuf> {
    fs::read_link(place(pid, "exe")).ok()
}

/// How the process was called, words separated by spaces, cut where it gets long.
pub fn command_line(pid: u32) -> String {
    let bytes = fs::read(place(pid, "cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    model::text::on_one_line(text.trim_end_matches('\0')).chars().take(200).collect()
}

/// The files a process has mapped, each as often as it is mapped; nothing if they may not be seen.
pub fn mapped_files(pid: u32) -> Vec<PathBuf> {
    let maps = fs::read(place(pid, "maps")).unwrap_or_default();
    let text = String::from_utf8_lossy(&maps);
    let path = |line: &str| line.find('/').map(|at| line[at..].trim_end_matches(" (deleted)").into());
    text.lines().filter_map(path).collect()
}

fn place(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

/// The name of a program may hold anything, brackets too, so the fields are counted from the last bracket.
fn parse(pid: u32, stat: &str) -> Option<Process> {
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let began = fields.nth(17)?.parse().ok()?;
    Some(Process { pid, parent, began })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_program_names_do_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0\n";
        assert_eq!(parse(7, stat), Some(Process { pid: 7, parent: 3, began: 4711 }));
        assert_eq!(parse(7, "7 (short"), None);
    }

    #[test]
    fn this_process_is_among_all() {
        let own = look(std::process::id()).unwrap();
        assert!(all().contains(&own));
        let file = executable(own.pid).unwrap();
        assert!(mapped_files(own.pid).contains(&file));
        assert!(!command_line(own.pid).is_empty());
    }
}
