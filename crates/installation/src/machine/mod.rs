//! The machine: kernel module, device nodes, MPS, container, other preloads.
//!
//! Everything is found under a root folder, which is `/` except where a test has made up a machine.

mod container;
mod devices;
mod mps;
mod preloads;

use std::fs;
use std::path::{Path, PathBuf};

pub use container::Container;
pub use devices::{Devices, Node};
pub use mps::Mps;
pub use preloads::{Origin, OtherPreload};

/// A machine, real or made up.
#[derive(Clone, Debug)]
pub struct Machine {
    root: PathBuf,
}

impl Machine {
    pub fn here() -> Machine {
        Machine::at(Path::new("/"))
    }

    pub fn at(root: &Path) -> Machine {
        Machine { root: root.to_owned() }
    }

    fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The version of NVIDIA's kernel module, if it is loaded.
    pub fn kernel_module(&self) -> Option<String> {
        let text = fs::read_to_string(self.place("/proc/driver/nvidia/version")).ok()?;
        let line = text.lines().find(|line| line.starts_with("NVRM version:"))?;
        line.split_whitespace().find(|word| is_driver_version(word)).map(str::to_owned)
    }
}

/// `580.159.04` or `580.95`: numbers with points, the first of three digits.
pub(crate) fn is_driver_version(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = text.split('.');
    parts.next().is_some_and(|major| major.len() == 3 && digits(major))
        && text.contains('.')
        && parts.all(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of these files.
    pub fn made(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::at(root.path());
        for (path, content) in files {
            let path = machine.place(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        (root, machine)
    }

    #[test]
    fn the_kernel_module_says_its_version_in_either_edition() {
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.288.01  Tue Nov 11 19:00:01 UTC 2025\n\
                      GCC version:  gcc version 12.2.0\n";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n";
        for (text, version) in [(closed, "535.288.01"), (open, "580.159.04")] {
            let (_root, machine) = made(&[("/proc/driver/nvidia/version", text)]);
            assert_eq!(machine.kernel_module().as_deref(), Some(version));
        }
        assert_eq!(made(&[]).1.kernel_module(), None);
        assert_eq!(made(&[("/proc/driver/nvidia/version", "nonsense")]).1.kernel_module(), None);
    }

    #[test]
    fn versions_of_drivers_are_told_from_other_numbers() {
        assert!(is_driver_version("580.159.04") && is_driver_version("390.157"));
        for other in ["1", "1.1", "580", "580.", "580..1", "12.2.0", "19:00:01", "x86_64", ""] {
            assert!(!is_driver_version(other), "{other}");
        }
    }
}
