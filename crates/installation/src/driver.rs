//! The driver behind the shim: the first candidate that can be one.

use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{ffi::OsStr, fs};

use crate::search::{self, Source, Surroundings};
use crate::{Error, Library};

/// The loader's cache.
pub const CACHE: &str = "/etc/ld.so.cache";

/// What came of looking.
#[derive(Debug, Default)]
pub struct Search {
    pub found: Option<(Source, Library)>,
    /// Files in the way that cannot be the driver. Those which simply are not there are listed only if they were
    /// asked for by name.
    pub refused: Vec<(Source, Error)>,
    /// Candidates that were the shim itself.
    pub shims: Vec<PathBuf>,
}

impl Search {
    /// Goes by this process's environment, except for `setting`, which stands for `EBB_DRIVER`.
    pub fn here(setting: Option<&OsStr>) -> Search {
        let library_path = std::env::var_os("LD_LIBRARY_PATH");
        let cache = fs::read(CACHE).unwrap_or_default();
        Search::new(&Surroundings {
            setting: setting.map(OsStr::as_bytes),
            library_path: library_path.as_deref().map(OsStr::as_bytes),
            cache: &cache,
        })
    }

    pub fn new(surroundings: &Surroundings<'_>) -> Search {
        let mut search = Search::default();
        search::each_candidate(surroundings, &mut |source, path| {
            search.consider(source, Path::new(OsStr::from_bytes(path.to_bytes())))
        });
        search
    }

    fn consider(&mut self, source: Source, path: &Path) -> ControlFlow<()> {
        match Library::read(path) {
            Ok(library) if library.is_shim() => self.shims.push(path.to_owned()),
            Ok(library) => {
                self.found = Some((source, library));
                return ControlFlow::Break(());
            }
            Err(Error::NoFile { .. }) if source != Source::Setting => {}
            Err(error) => self.refused.push((source, error)),
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_a_driver_are_passed_over_and_reported() {
        let Ok(cache) = fs::read(CACHE) else {
            eprintln!("skipped: this machine has no loader cache");
            return;
        };
        let Some(library) = crate::cache::paths(&cache, b"libc.so.6").next() else {
            eprintln!("skipped: no C library is known to the loader");
            return;
        };
        let (bad, good) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(bad.path().join(search::DRIVER), "not a library").unwrap();
        fs::copy(OsStr::from_bytes(library), good.path().join(search::DRIVER)).unwrap();
        let library_path = format!("/nowhere:{}:{}", bad.path().display(), good.path().display());
        let surroundings =
            Surroundings { library_path: Some(library_path.as_bytes()), ..Surroundings::default() };
        let search = Search::new(&surroundings);
        let (source, found) = search.found.unwrap();
        assert_eq!((source, found.path), (Source::LibraryPath, good.path().join(search::DRIVER)));
        assert!(matches!(search.refused.as_slice(), [(Source::LibraryPath, Error::NotElf { .. })]));
    }

    #[test]
    fn a_setting_that_leads_nowhere_is_reported() {
        let surroundings =
            Surroundings { setting: Some(b"/nowhere/libcuda.so.1"), ..Surroundings::default() };
        let search = Search::new(&surroundings);
        assert!(search.found.is_none());
        assert!(matches!(search.refused.as_slice(), [(Source::Setting, Error::NoFile { .. })]));
    }
}
