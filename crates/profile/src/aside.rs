//! Files that could not be read, set aside for whoever wants to know why.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use crate::store::{Limits, Rotten};

/// Behind the name a file had; a number follows, the highest is the latest.
const ENDING: &str = ".corrupt-";

/// What became of a file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Where it was.
    pub path: PathBuf,
    pub reason: Rotten,
    /// Where it is now; `None` if it could not be moved.
    pub aside: Option<PathBuf>,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the profile {} cannot be used ({}) and is learned anew",
            self.path.display(),
            self.reason
        )?;
        match &self.aside {
            Some(aside) => write!(f, "; the old one is now {}", aside.display()),
            None => write!(f, "; the old one could not be moved"),
        }
    }
}

/// Renames a file so that nobody takes it for a profile, and removes the earliest of those that were.
pub(crate) fn set_aside(folder: &Path, path: &Path, limits: Limits, reason: Rotten) -> Trouble {
    let all = || fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let highest = all().filter_map(|other| number(&other)).max().unwrap_or(0);
    let next = highest.saturating_add(1);
    let mut name = path.as_os_str().to_owned();
    name.push(format!("{ENDING}{next}"));
    let aside = PathBuf::from(name);
    let moved = fs::rename(path, &aside).is_ok();
    if moved {
        shorten(&aside, limits.file);
    }
    for (number, other) in all().filter_map(|other| Some((number(&other)?, other))) {
        if next - number >= limits.aside {
            let _ = fs::remove_file(other);
        }
    }
    Trouble { path: path.to_owned(), reason, aside: moved.then_some(aside) }
}

/// What is longer than any profile is not worth its room.
fn shorten(path: &Path, longest: u64) {
    let file = OpenOptions::new().write(true).open(path);
    if let Ok(file) = file
        && file.metadata().is_ok_and(|facts| facts.len() > longest)
    {
        let _ = file.set_len(longest);
    }
}

/// The number of a file that was set aside.
pub(crate) fn number(path: &Path) -> Option<u64> {
    let (before, number) = path.file_name()?.to_str()?.rsplit_once(ENDING)?;
    before.ends_with(crate::platform::ENDING).then(|| number.parse().ok()).flatten()
}
