//! HAMi-core: a preloaded library that keeps a process below a share of the GPU.
//!
//! It asks NVML every 120 milliseconds how busy the process keeps the GPU, and lets launches wait while that is more than
//! the process's share. The best-effort tenant is given half the GPU, the latency tenant no limit. Priorities between
//! tenants are not the library's: HAMi's monitor of a Kubernetes node has them, and there is none here.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use model::Class;
use serde_json::Value;

use super::super::{Environment, Surroundings};
use super::{Parts, preload, remark, set};

pub const PARTS: Parts = Parts { product: "HAMi-core", libraries: &["libvgpu.so"], programs: &[] };

const REMARKS: &[&str] = &[
    "best-effort tenants are limited to half the GPU, latency tenants are not",
    "graphs and cooperative launches are not limited",
    "a process takes for itself whoever appears on the GPU while its own context is made, so its workers were started \
     one by one",
];

/// In per cent of the GPU's time.
const SHARE: &str = "50";

pub struct Hami {
    library: PathBuf,
    folder: PathBuf,
    /// How many workers have been started.
    regions: Cell<u32>,
}

impl Hami {
    pub fn new(path: &Path, folder: &Path) -> Hami {
        Hami { library: path.join(PARTS.libraries[0]), folder: folder.to_owned(), regions: Cell::new(0) }
    }
}

impl Surroundings for Hami {
    /// Processes that share a file share their limit, as in one container; each worker is a container of its own.
    fn command(&self, _class: Class, _name: &str, words: Vec<OsString>) -> Vec<OsString> {
        let number = self.regions.get();
        self.regions.set(number + 1);
        let mut region = OsString::from("CUDA_DEVICE_MEMORY_SHARED_CACHE=");
        region.push(self.folder.join(format!("region-{number}")));
        [OsString::from("/usr/bin/env"), region].into_iter().chain(words).collect()
    }

    fn environment(&self, class: Class) -> Environment {
        let mut environment = preload(&self.library);
        // Where the library looks for itself; its own guess is where HAMi's containers have it.
        environment.push(set("CUDA_REDIRECT", &self.library));
        if class == Class::BestEffort {
            environment.push(set("CUDA_DEVICE_SM_LIMIT", SHARE));
            environment.push(set("GPU_CORE_UTILIZATION_POLICY", "force"));
        }
        environment
    }

    /// Two that start together are mistaken for each other, and then the limit follows the wrong one.
    fn starts_alone(&self) -> bool {
        true
    }

    fn status(&self) -> Option<Value> {
        Some(remark(PARTS.product, REMARKS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hami() -> Hami {
        Hami::new("/build".as_ref(), "/folder".as_ref())
    }

    #[test]
    fn only_best_effort_tenants_are_limited() {
        let has = |class, name: &str| hami().environment(class).iter().any(|(variable, _)| variable == name);
        for class in [Class::Latency, Class::BestEffort] {
            assert!(has(class, "LD_PRELOAD") && has(class, "CUDA_REDIRECT"));
            assert_eq!(has(class, "CUDA_DEVICE_SM_LIMIT"), class == Class::BestEffort);
        }
        let (_, preload) = hami().environment(Class::Latency).swap_remove(0);
        assert!(preload.unwrap().to_str().unwrap().starts_with("/build/libvgpu.so"));
    }

    #[test]
    fn no_two_workers_share_a_limit() {
        let hami = hami();
        let dressed = || hami.command(Class::Latency, "tenant", vec!["worker".into(), "spec".into()]);
        let (first, second) = (dressed(), dressed());
        assert_ne!(first[1], second[1]);
        assert_eq!(first[1], "CUDA_DEVICE_MEMORY_SHARED_CACHE=/folder/region-0");
        assert_eq!(first[2..], ["worker", "spec"]);
    }
}
