//! What a command finds in its environment under ebb.
//!
//! The loader reads two variables: `LD_PRELOAD` puts the shim into every process, so that its name is taken when
//! somebody asks for a driver, and `LD_LIBRARY_PATH` answers those who search. Where there is a limit of memory the library
//! in front of NVML is put beside it in the same way. Both variables belong to the user too, so they are added to and never
//! replaced.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use installation::runtime;

/// A variable and its value.
pub type Setting = (&'static str, OsString);

/// The settings that put libraries of ours in front of whatever the command asks for under their names. They are loaded in this
/// order, and searched for in it.
pub fn preloading(libraries: &[&Path]) -> Result<Vec<Setting>> {
    let understood = libraries.iter().map(|library| match loader_understands(library) {
        true => Ok((*library).to_owned()),
        false => link(library),
    });
    let libraries: Vec<PathBuf> = understood.collect::<Result<_>>()?;
    let (mut preload, mut library_path) =
        (std::env::var_os("LD_PRELOAD"), std::env::var_os("LD_LIBRARY_PATH"));
    for library in &libraries {
        preload = Some(appended(preload, library));
    }
    for library in libraries.iter().rev() {
        let folder = library.parent().context("the library lies in no folder")?;
        library_path = Some(prepended(library_path, folder));
    }
    let settings = [("LD_PRELOAD", preload), ("LD_LIBRARY_PATH", library_path)];
    Ok(settings.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}

/// Colons, semicolons and spaces separate paths in the loader's variables, with no way to quote them, and a dollar
/// begins one of its own words.
fn loader_understands(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| b":; $\t\n".contains(byte))
}

/// A link to a library at a path the loader understands, and the name without a version beside it. It stays: the
/// command's processes start others for as long as they please.
fn link(library: &Path) -> Result<PathBuf> {
    let runtime = runtime::folder()?;
    let hash = library.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let name = library.file_name().context("the library has no name")?;
    let folder = runtime.join(format!("shim-{hash:016x}"));
    let path = folder.join(name);
    anyhow::ensure!(
        loader_understands(&path),
        "neither {} nor {} can be preloaded, because of the spaces or colons in their names; name a runtime folder \
         without them with EBB_RUNTIME_DIR",
        library.display(),
        path.display()
    );
    let make = || {
        fs::create_dir_all(&folder)?;
        put_link(&path, library)?;
        put_link(&path.with_extension(""), Path::new(name))
    };
    make().with_context(|| format!("cannot make the link {}", path.display()))?;
    Ok(path)
}

/// Two runs at once make the same link, so finding it made is as good as making it.
fn put_link(path: &Path, to: &Path) -> io::Result<()> {
    if fs::read_link(path).is_ok_and(|old| old == to) {
        return Ok(());
    }
    match std::os::unix::fs::symlink(to, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The old preloads, then ours, once.
fn appended(old: Option<OsString>, shim: &Path) -> OsString {
    let old = old.unwrap_or_default();
    let mut entries = old.as_bytes().split(|byte| b": \t\n".contains(byte)).filter(|entry| !entry.is_empty());
    if entries.any(|entry| same_file(Path::new(OsStr::from_bytes(entry)), shim)) {
        return old;
    }
    let shim = shim.as_os_str().as_bytes();
    let joined = if old.is_empty() { shim.to_vec() } else { [old.as_bytes(), b":", shim].concat() };
    OsString::from_vec(joined)
}

/// Ours, then the old folders without ours.
fn prepended(old: Option<OsString>, folder: &Path) -> OsString {
    let old = old.unwrap_or_default();
    let ours = folder.as_os_str().as_bytes();
    if old.is_empty() {
        return folder.as_os_str().to_owned();
    }
    // An empty entry means the current folder, so every entry that was there stays.
    let others = old.as_bytes().split(|byte| b":;".contains(byte)).filter(|entry| *entry != ours);
    OsString::from_vec([ours].into_iter().chain(others).collect::<Vec<_>>().join(&b':'))
}

/// Links to one file are one file: a nested run may name it by another.
fn same_file(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preload(old: Option<&str>) -> String {
        appended(old.map(OsString::from), Path::new("/e/libcuda.so.1")).into_string().unwrap()
    }

    fn folders(old: Option<&str>) -> String {
        prepended(old.map(OsString::from), Path::new("/e")).into_string().unwrap()
    }

    #[test]
    fn a_preload_is_added_behind_what_is_there() {
        assert_eq!(preload(None), "/e/libcuda.so.1");
        assert_eq!(preload(Some("")), "/e/libcuda.so.1");
        assert_eq!(preload(Some("liba.so libb.so")), "liba.so libb.so:/e/libcuda.so.1");
    }

    #[test]
    fn a_preload_is_added_once() {
        for old in ["/e/libcuda.so.1", "liba.so:/e/libcuda.so.1", "/e/libcuda.so.1 liba.so"] {
            assert_eq!(preload(Some(old)), old);
        }
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("libcuda.so.1"), folder.path().join("link"));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &other).unwrap();
        assert_eq!(appended(Some(other.clone().into()), &file), other.into_os_string());
    }

    #[test]
    fn our_folder_comes_first_and_once() {
        assert_eq!(folders(None), "/e");
        assert_eq!(folders(Some("")), "/e");
        assert_eq!(folders(Some("/a::/b")), "/e:/a::/b");
        assert_eq!(folders(Some("/a:/e;/b")), "/e:/a:/b");
    }

    #[test]
    fn paths_with_separators_need_a_link() {
        assert!(loader_understands(Path::new("/opt/ebb-1.0/libcuda.so.1")));
        for path in ["/a b/libcuda.so.1", "/a:b/libcuda.so.1", "/a;b/l", "/$LIB/l"] {
            assert!(!loader_understands(Path::new(path)), "{path}");
        }
    }
}
