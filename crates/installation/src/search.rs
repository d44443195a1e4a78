//! Where the real `libcuda.so.1` may be, and the management library that comes with it.
//!
//! The shim asks this when a program first calls CUDA, with the program's locks held and from any thread; so
//! nothing here allocates, waits or reads a file. Whether a candidate exists, and whether it is the shim itself
//! ([`SHIM_MARK`]), is the caller's to find out: this only says where to look, in which order.
//!
//! What is not an absolute path is left out. A bare name would be looked up by the loader, which would answer with
//! the shim, and a relative one means another file after the next `chdir`.

use std::ffi::CStr;
use std::fmt;
use std::ops::ControlFlow;

use crate::cache;

/// The exported name by which a library is known to be ebb's own shim.
pub const SHIM_MARK: &str = "ebb_shim_version";

/// The name under which programs ask for the driver.
pub const DRIVER: &str = "libcuda.so.1";

/// The name under which programs ask for NVIDIA's management library (NVML).
pub const MANAGEMENT: &str = "libnvidia-ml.so.1";

/// As long as Linux lets a path be, its final zero byte included.
const LONGEST_PATH: usize = 4096;

/// Where drivers are put which the loader may not know about.
const USUAL_FOLDERS: [&str; 18] = [
    // Debian and Ubuntu; Debian keeps several drivers apart in `nvidia/current`.
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    // Jetson, from JetPack 6 and before.
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib/aarch64-linux-gnu/tegra",
    // Fedora, Red Hat, SUSE; Arch.
    "/usr/lib64",
    "/usr/lib",
    "/lib64",
    // Containers on Kubernetes device plugins which mount the driver as a folder.
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    // Windows' Linux subsystem.
    "/usr/lib/wsl/lib",
    // NixOS.
    "/run/opengl-driver/lib",
    // Nodes of Google's Kubernetes: Container-Optimized OS and Ubuntu.
    "/var/lib/nvidia/lib64",
    "/opt/nvidia/lib64",
    // NVIDIA's GPU operator, whose driver lives in a container of its own.
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
    "/run/nvidia/driver/usr/lib64",
];

/// What the search goes by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Surroundings<'a> {
    /// `EBB_DRIVER`: if it is set, nothing else counts.
    pub setting: Option<&'a [u8]>,
    /// `LD_LIBRARY_PATH`.
    pub library_path: Option<&'a [u8]>,
    /// The bytes of `/etc/ld.so.cache`; empty or damaged ones name no library.
    pub cache: &'a [u8],
}

/// Why a file is a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Setting,
    LibraryPath,
    LoaderCache,
    UsualFolder,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Setting => "EBB_DRIVER",
            Source::LibraryPath => "LD_LIBRARY_PATH",
            Source::LoaderCache => "the loader's cache",
            Source::UsualFolder => "the usual folders",
        })
    }
}

/// Shows `visit` the absolute path of every file that may be the driver, likeliest first, until it breaks off.
/// The same path may come twice.
pub fn each_candidate(
    surroundings: &Surroundings<'_>,
    visit: &mut dyn FnMut(Source, &CStr) -> ControlFlow<()>,
) {
    let _ = walk(surroundings, &mut Composer { buffer: [0; LONGEST_PATH], visit });
}

/// The same for another library of the driver, by its name. There is no setting for those.
pub fn each_candidate_for(
    library: &str,
    surroundings: &Surroundings<'_>,
    visit: &mut dyn FnMut(Source, &CStr) -> ControlFlow<()>,
) {
    let _ = places(library, surroundings, &mut Composer { buffer: [0; LONGEST_PATH], visit });
}

fn walk(surroundings: &Surroundings<'_>, composer: &mut Composer<'_>) -> ControlFlow<()> {
    match surroundings.setting.filter(|setting| !setting.is_empty()) {
        Some(setting) => composer.offer(Source::Setting, &[setting]),
        None => places(DRIVER, surroundings, composer),
    }
}

fn places(library: &str, surroundings: &Surroundings<'_>, composer: &mut Composer<'_>) -> ControlFlow<()> {
    let name = library.as_bytes();
    let library_path = surroundings.library_path.unwrap_or_default();
    for folder in library_path.split(|&byte| byte == b':' || byte == b';') {
        composer.offer(Source::LibraryPath, &[folder, b"/", name])?;
    }
    for path in cache::paths(surroundings.cache, name) {
        composer.offer(Source::LoaderCache, &[path])?;
    }
    for folder in USUAL_FOLDERS {
        composer.offer(Source::UsualFolder, &[folder.as_bytes(), b"/", name])?;
    }
    ControlFlow::Continue(())
}

/// Puts paths together in a fixed place.
struct Composer<'a> {
    buffer: [u8; LONGEST_PATH],
    visit: &'a mut dyn FnMut(Source, &CStr) -> ControlFlow<()>,
}

impl Composer<'_> {
    fn offer(&mut self, source: Source, parts: &[&[u8]]) -> ControlFlow<()> {
        // An empty first part stands for the current folder, which is as relative as any other.
        let absolute = parts.first().is_some_and(|part| part.first() == Some(&b'/'));
        let path = self.compose(parts).filter(|_| absolute);
        let path = path.and_then(|length| CStr::from_bytes_with_nul(self.buffer.get(..length)?).ok());
        path.map_or(ControlFlow::Continue(()), |path| (self.visit)(source, path))
    }

    /// Fills the buffer with the parts and a zero byte, and gives the length, if there is room.
    fn compose(&mut self, parts: &[&[u8]]) -> Option<usize> {
        let mut length = 0usize;
        for part in parts.iter().copied().chain([[0].as_slice()]) {
            let end = length.checked_add(part.len())?;
            self.buffer.get_mut(length..end)?.copy_from_slice(part);
            length = end;
        }
        Some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tests::{OURS, made};
    use proptest::prelude::*;

    fn candidates(surroundings: &Surroundings<'_>) -> Vec<(Source, String)> {
        let mut found = Vec::new();
        each_candidate(surroundings, &mut |source, path| {
            found.push((source, path.to_string_lossy().into_owned()));
            ControlFlow::Continue(())
        });
        found
    }

    fn of(source: Source, surroundings: &Surroundings<'_>) -> Vec<String> {
        candidates(surroundings)
            .into_iter()
            .filter(|(from, _)| *from == source)
            .map(|(_, path)| path)
            .collect()
    }

    #[test]
    fn the_setting_is_the_only_candidate() {
        let cache = made(&[(OURS, DRIVER, "/cached/libcuda.so.1")]);
        let surroundings =
            Surroundings { setting: Some(b"/set/driver.so"), library_path: Some(b"/a"), cache: &cache };
        assert_eq!(candidates(&surroundings), [(Source::Setting, "/set/driver.so".to_owned())]);
    }

    #[test]
    fn a_setting_which_the_loader_would_look_up_is_left_out() {
        let surroundings = Surroundings { setting: Some(b"libcuda.so.1"), ..Surroundings::default() };
        assert!(candidates(&surroundings).is_empty());
    }

    #[test]
    fn an_empty_setting_is_none() {
        let surroundings = Surroundings { setting: Some(b""), ..Surroundings::default() };
        assert_eq!(candidates(&surroundings).len(), USUAL_FOLDERS.len());
    }

    #[test]
    fn the_library_path_comes_before_the_cache_and_that_before_the_usual_folders() {
        let cache = made(&[(OURS, DRIVER, "/cached/libcuda.so.1")]);
        let surroundings = Surroundings { setting: None, library_path: Some(b"/a:/b;/c"), cache: &cache };
        let found = candidates(&surroundings);
        let paths: Vec<_> = found.iter().take(5).map(|(_, path)| path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "/a/libcuda.so.1",
                "/b/libcuda.so.1",
                "/c/libcuda.so.1",
                "/cached/libcuda.so.1",
                "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
            ]
        );
    }

    #[test]
    fn other_libraries_are_looked_for_in_the_same_places_whatever_the_setting() {
        let cache =
            made(&[(OURS, DRIVER, "/cached/libcuda.so.1"), (OURS, MANAGEMENT, "/cached/libnvidia-ml.so.1")]);
        let surroundings =
            Surroundings { setting: Some(b"/set/driver.so"), library_path: Some(b"/a"), cache: &cache };
        let mut found = Vec::new();
        each_candidate_for(MANAGEMENT, &surroundings, &mut |_, path| {
            found.push(path.to_string_lossy().into_owned());
            ControlFlow::Continue(())
        });
        assert_eq!(found[..2], ["/a/libnvidia-ml.so.1", "/cached/libnvidia-ml.so.1"]);
        assert!(found.iter().all(|path| path.ends_with("/libnvidia-ml.so.1")));
        assert_eq!(found.len(), 2 + USUAL_FOLDERS.len());
    }

    #[test]
    fn relative_folders_are_left_out() {
        let surroundings = Surroundings { library_path: Some(b":lib:/a:;./b"), ..Surroundings::default() };
        assert_eq!(of(Source::LibraryPath, &surroundings), ["/a/libcuda.so.1"]);
    }

    #[test]
    fn a_path_too_long_to_open_is_left_out() {
        let room = LONGEST_PATH - "/libcuda.so.1".len() - 1;
        let longest = format!("/{}", "a".repeat(room - 1));
        let too_long = format!("{longest}a");
        for (folder, count) in [(longest, 1), (too_long, 0)] {
            let surroundings =
                Surroundings { library_path: Some(folder.as_bytes()), ..Surroundings::default() };
            assert_eq!(of(Source::LibraryPath, &surroundings).len(), count);
        }
    }

    #[test]
    fn the_visitor_may_break_off() {
        let mut seen = 0;
        each_candidate(&Surroundings::default(), &mut |_, _| {
            seen += 1;
            ControlFlow::Break(())
        });
        assert_eq!(seen, 1);
    }

    proptest! {
        #[test]
        fn every_candidate_is_absolute_whatever_the_surroundings(
            setting in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..64)),
            library_path in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..256)),
            cache in proptest::collection::vec(any::<u8>(), 0..256),
        ) {
            let surroundings = Surroundings {
                setting: setting.as_deref(),
                library_path: library_path.as_deref(),
                cache: &cache,
            };
            each_candidate(&surroundings, &mut |_, path| {
                assert_eq!(path.to_bytes().first(), Some(&b'/'));
                ControlFlow::Continue(())
            });
        }
    }
}
