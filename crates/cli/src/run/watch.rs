//! Who reaches the driver round ebb.
//!
//! A process under `ebb run` that maps the driver but not the shim uses the GPU unseen: its environment was
//! cleaned, it is statically linked, it searches for the driver in its own way. The ledgers cannot tell of it, so
//! the command's descendants are looked at every so often, seldom enough to cost nothing. A process that lives
//! for less than the time between two looks may be missed.
//!
//! The same look finds who reaches the driver *through* ebb. Such a process should leave a ledger; where none does, something kept
//! them from it, and the report must not say that CUDA was never used.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::process::{self, Process};

const FIRST_LOOK: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A process that has the driver and not the shim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bypass {
    pub pid: u32,
    pub program: String,
    pub library: PathBuf,
}

/// A process that has the shim and the driver behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedProcess {
    pub pid: u32,
    pub program: String,
}

/// Who was seen with a driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverUsers {
    pub round: Vec<Bypass>,
    pub attached: Vec<AttachedProcess>,
}

/// The files by which attached and unattached processes are told apart, as `/proc` calls them: after all links.
#[derive(Clone, Debug)]
pub struct Signs {
    pub shim: PathBuf,
    pub driver: Option<PathBuf>,
}

/// A thread that looks now and then.
pub struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<DriverUsers>,
}

impl Watch {
    /// Watches the descendants of a process, itself included.
    pub fn start(root: u32, signs: Signs) -> std::io::Result<Watch> {
        let (stop, stopped) = mpsc::channel();
        let look = move || {
            let mut tree = Tree::new(root, signs);
            let mut pause = FIRST_LOOK;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                tree.look();
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            tree.found
        };
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(look)?;
        Ok(Watch { stop, thread })
    }

    /// Those who were seen.
    pub fn finish(self) -> DriverUsers {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

/// What is known of the command's processes.
struct Tree {
    root: u32,
    signs: Signs,
    /// Everyone who ever belonged to the tree, since an orphan's parent no longer says so. The program, once the
    /// process needs no further look; a process that becomes another program needs one again.
    members: HashMap<(u32, u64), Option<PathBuf>>,
    found: DriverUsers,
}

impl Tree {
    fn new(root: u32, signs: Signs) -> Tree {
        Tree { root, signs, members: HashMap::new(), found: DriverUsers::default() }
    }

    fn look(&mut self) {
        let present = self.present(&process::all());
        self.members.retain(|key, _| present.contains(key));
        for (pid, began) in present {
            let program = process::executable(pid);
            let settled = self.members.entry((pid, began)).or_default();
            if program.is_none() || *settled == program {
                continue;
            }
            match judge(&process::mapped_files(pid), &self.signs) {
                Verdict::Neither | Verdict::Prepared => continue,
                Verdict::Attached => {
                    self.found.attached.push(AttachedProcess { pid, program: process::command_line(pid) });
                }
                Verdict::Round(library) => {
                    self.found.round.push(Bypass { pid, program: process::command_line(pid), library });
                }
            }
            *settled = program;
        }
    }

    /// The members of the tree that live now.
    fn present(&self, all: &[Process]) -> HashSet<(u32, u64)> {
        let mut children: HashMap<u32, Vec<&Process>> = HashMap::new();
        for process in all {
            children.entry(process.parent).or_default().push(process);
        }
        let member = |process: &&Process| {
            process.pid == self.root || self.members.contains_key(&(process.pid, process.began))
        };
        let mut open: Vec<&Process> = all.iter().filter(member).collect();
        let mut present = HashSet::new();
        while let Some(process) = open.pop() {
            if present.insert((process.pid, process.began)) {
                open.extend(children.get(&process.pid).into_iter().flatten());
            }
        }
        present
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The shim is there, and no driver so far.
    Prepared,
    Attached,
    Round(PathBuf),
    /// No driver so far.
    Neither,
}

fn judge(mapped: &[PathBuf], signs: &Signs) -> Verdict {
    let is_driver = |file: &&PathBuf| {
        Some(*file) == signs.driver.as_ref() || **file != signs.shim && called_as_a_driver(file)
    };
    match (mapped.contains(&signs.shim), mapped.iter().find(is_driver)) {
        (true, Some(_)) => Verdict::Attached,
        (true, None) => Verdict::Prepared,
        (false, Some(file)) => Verdict::Round(file.clone()),
        (false, None) => Verdict::Neither,
    }
}

fn called_as_a_driver(file: &Path) -> bool {
    file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("libcuda.so"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs() -> Signs {
        Signs { shim: "/ebb/libshim.so".into(), driver: Some("/soft/libsoftcuda.so".into()) }
    }

    fn judged(files: &[&str]) -> Verdict {
        judge(&files.iter().map(PathBuf::from).collect::<Vec<_>>(), &signs())
    }

    #[test]
    fn the_shim_in_front_of_a_driver_is_attachment_and_a_driver_alone_is_not() {
        assert_eq!(judged(&["/bin/sh", "/lib/libc.so.6"]), Verdict::Neither);
        assert_eq!(judged(&["/lib/libcuda.so.580.1", "/ebb/libshim.so"]), Verdict::Attached);
        assert_eq!(judged(&["/bin/sh", "/ebb/libshim.so"]), Verdict::Prepared);
        assert_eq!(judged(&["/lib/libcuda.so.580.1"]), Verdict::Round("/lib/libcuda.so.580.1".into()));
        assert_eq!(judged(&["/soft/libsoftcuda.so"]), Verdict::Round("/soft/libsoftcuda.so".into()));
        assert_eq!(judged(&["/lib/libcudart.so.13"]), Verdict::Neither);
    }

    #[test]
    fn orphans_of_the_tree_stay_members() {
        let process = |pid, parent| Process { pid, parent, began: 1 };
        let mut tree = Tree::new(10, signs());
        let before = [process(1, 0), process(10, 1), process(11, 10), process(12, 11), process(20, 1)];
        for key in tree.present(&before) {
            tree.members.insert(key, None);
        }
        assert_eq!(tree.members.len(), 3);
        let after = [process(1, 0), process(12, 1), process(13, 12), process(20, 1)];
        assert_eq!(tree.present(&after), HashSet::from([(12, 1), (13, 1)]));
    }
}
