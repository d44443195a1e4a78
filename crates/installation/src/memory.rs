//! The memory folders: what is kept from one run to the next, so that it need not be found out again.
//!
//! For rewritten kernels: `EBB_GUARD_CACHE` if set, else `$XDG_CACHE_HOME/ebb/guard`, else `~/.cache/ebb/guard`. For what kernels
//! were seen to take, in the same way, `EBB_PROFILES` and `ebb/profiles`. All of it may be thrown away at any time. A variable
//! that is `off` keeps nothing.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The variable that names the folder.
pub const VARIABLE: &str = "EBB_GUARD_CACHE";
/// The variable that names the folder of profiles.
pub const PROFILES_VARIABLE: &str = "EBB_PROFILES";

/// In the folder: kernels that were found not to be what they seemed, a line each.
pub const DEMOTIONS: &str = "demotions";
/// How the names of rewritten images in the folder end.
pub const TWIN: &str = "twin";

/// The folder of this user; `None` where nothing is to be kept, or where nobody says where.
pub fn folder() -> Option<PathBuf> {
    wanted(VARIABLE, "ebb/guard", |name| std::env::var_os(name))
}

/// The folder of this user's profiles; `None` where nothing is to be kept, or where nobody says where.
pub fn profiles() -> Option<PathBuf> {
    wanted(PROFILES_VARIABLE, "ebb/profiles", |name| std::env::var_os(name))
}

fn wanted(named: &str, usual: &str, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    match set(named) {
        Some(off) if off == "off" => return None,
        Some(folder) => return Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute()),
        None => {}
    }
    let base = set("XDG_CACHE_HOME").map(PathBuf::from).filter(|base| base.is_absolute());
    let base = base.or_else(|| set("HOME").map(|home| Path::new(&home).join(".cache")));
    base.filter(|base| base.is_absolute()).map(|base| base.join(usual))
}

/// Makes the folder if it is missing. One that somebody else could write to is refused: what lies in it is run.
pub fn prepare(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let facts = fs::metadata(folder)?;
    let own = facts.uid() == rustix::process::geteuid().as_raw() && facts.mode() & 0o022 == 0;
    if own { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Throws away all that is kept; how many things that were.
pub fn forget(folder: &Path) -> io::Result<usize> {
    let mut forgotten = 0;
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        // The folder may have been named by a user, and hold what is not ours.
        let ours = path.extension().is_some_and(|end| end == TWIN)
            || path.file_name().is_some_and(|name| name == DEMOTIONS);
        if ours && fs::remove_file(&path).is_ok() {
            forgotten += 1;
        }
    }
    Ok(forgotten)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn with(set: &'static [(&str, &str)]) -> Option<PathBuf> {
        wanted(VARIABLE, "ebb/guard", |name| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_folder_is_where_caches_are_unless_it_is_named() {
        assert_eq!(with(&[("HOME", "/h")]), Some("/h/.cache/ebb/guard".into()));
        assert_eq!(with(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")]), Some("/c/ebb/guard".into()));
        assert_eq!(
            with(&[("HOME", "/h"), ("XDG_CACHE_HOME", "relative")]),
            Some("/h/.cache/ebb/guard".into())
        );
        assert_eq!(with(&[("HOME", "/h"), (VARIABLE, "/here")]), Some("/here".into()));
        assert_eq!(with(&[("HOME", "/h"), (VARIABLE, "off")]), None);
        assert_eq!(with(&[]), None);
    }

    #[test]
    fn only_what_is_ours_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.twin", "b.twin", DEMOTIONS, "thesis.tex"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(forget(folder.path()).unwrap(), 3);
        assert!(folder.path().join("thesis.tex").exists());
        assert_eq!(forget(&folder.path().join("nowhere")).unwrap(), 0);
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("deep/er");
        prepare(&own).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(prepare(&own).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
