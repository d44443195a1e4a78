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
            Ok(library) if !library.is_driver() => {
                self.refused.push((source, Error::NoDriver { path: path.to_owned() }));
            }
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

    /// A shared library that exports one function.
    fn library(path: &Path, function: &str) -> bool {
        let source = path.with_extension("c");
        fs::write(&source, format!("int {function}(void) {{ return 0; }}\n")).unwrap();
        let mut compiler = std::process::Command::new("cc");
        compiler.args(["-shared", "-nostdlib", "-o"]).arg(path).arg(&source);
        compiler.status().is_ok_and(|status| status.success())
    }

    #[test]
    fn files_that_cannot_be_a_driver_are_passed_over_and_reported() {
        let root = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            fs::create_dir(root.path().join(name)).unwrap();
            root.path().join(name).join(search::DRIVER)
        };
        let (text, shim, other, good) = (folder("text"), folder("shim"), folder("other"), folder("good"));
        fs::write(&text, "not a library").unwrap();
        let built =
            library(&shim, search::SHIM_MARK) && library(&other, "something") && library(&good, "cuInit");
        if !built {
            eprintln!("skipped: there is no C compiler");
            return;
        }
        let folders = ["text", "nowhere", "shim", "other", "good"];
        let folders: Vec<_> =
            folders.iter().map(|name| root.path().join(name).display().to_string()).collect();
        let library_path = folders.join(":");
        let surroundings =
            Surroundings { library_path: Some(library_path.as_bytes()), ..Surroundings::default() };
        let search = Search::new(&surroundings);
        let (source, found) = search.found.unwrap();
        assert_eq!((source, found.path), (Source::LibraryPath, good));
        assert_eq!(search.shims, [shim]);
        assert!(matches!(
            search.refused.as_slice(),
            [(Source::LibraryPath, Error::NotElf { .. }), (Source::LibraryPath, Error::NoDriver { .. })]
        ));
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
