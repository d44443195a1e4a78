//! Who else is preloaded.
//!
//! Two libraries that stand in for the driver can sit on each other, but their authors rarely tried; so the known
//! ones are called by name.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::Machine;

/// Stand-ins for the CUDA driver, by the beginning of their file's name.
const INTERPOSERS: [(&str, &str); 6] = [
    ("libvgpu.so", "HAMi"),
    ("libnvshare.so", "nvshare"),
    ("libshimcuda.so", "XSched"),
    ("libhalcuda.so", "XSched"),
    ("libcuda-control.so", "vcuda of GaiaGPU"),
    ("libgemhook.so", "KubeShare"),
];

/// Who asked for a preload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Environment,
    System,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Environment => "LD_PRELOAD",
            Origin::System => "/etc/ld.so.preload",
        })
    }
}

/// A library which is loaded into programs beside ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherPreload {
    pub path: PathBuf,
    pub origin: Origin,
    /// The product it belongs to, if it is known to stand in for the driver.
    pub interposer: Option<&'static str>,
}

impl Machine {
    /// `setting` is the value of `LD_PRELOAD`.
    pub fn preloads(&self, setting: Option<&OsStr>) -> Vec<OtherPreload> {
        let setting = setting.unwrap_or_default().to_string_lossy().into_owned();
        let system = fs::read(self.place("/etc/ld.so.preload")).unwrap_or_default();
        let system = String::from_utf8_lossy(&system);
        // What follows a # is a comment in the file, but not in the environment.
        let system = system.lines().filter_map(|line| line.split('#').next()).flat_map(names);
        let setting = names(&setting).map(|name| (name, Origin::Environment));
        setting.chain(system.map(|name| (name, Origin::System))).map(other).collect()
    }
}

/// The loader takes spaces and colons alike.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', '\t', '\n', ':']).filter(|name| !name.is_empty())
}

fn other((name, origin): (&str, Origin)) -> OtherPreload {
    let path = PathBuf::from(name);
    let file = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
    let interposer =
        INTERPOSERS.iter().find(|(known, _)| file.starts_with(known)).map(|(_, product)| *product);
    OtherPreload { path, origin, interposer }
}

#[cfg(test)]
mod tests {
    use super::super::tests::made;
    use super::*;

    #[test]
    fn preloads_come_from_the_environment_and_from_the_system() {
        let text = "# all programs\n/usr/lib/libjemalloc.so.2 /opt/vgpu/libvgpu.so # cards\n";
        let (_root, machine) = made(&[("/etc/ld.so.preload", text)]);
        let found = machine.preloads(Some(OsStr::new("/a/libnvshare.so.1: /b/libother.so")));
        let found: Vec<_> =
            found.iter().map(|one| (one.path.to_str().unwrap(), one.origin, one.interposer)).collect();
        assert_eq!(
            found,
            [
                ("/a/libnvshare.so.1", Origin::Environment, Some("nvshare")),
                ("/b/libother.so", Origin::Environment, None),
                ("/usr/lib/libjemalloc.so.2", Origin::System, None),
                ("/opt/vgpu/libvgpu.so", Origin::System, Some("HAMi")),
            ]
        );
    }

    #[test]
    fn without_preloads_there_are_none() {
        assert!(made(&[]).1.preloads(None).is_empty());
        assert!(made(&[]).1.preloads(Some(OsStr::new(""))).is_empty());
    }
}
