//! The driver as it is, and nobody else's service in between.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Absence, Environment};

/// What a process under ebb finds about itself: the lab may be started by one, its workers are not part of it.
const OF_EBB: [&str; 14] = [
    "EBB_SOCKET",
    "EBB_MACHINE_SOCKET",
    "EBB_TENANT",
    "EBB_NAME",
    "EBB_CLASS",
    "EBB_WEIGHT",
    "EBB_PRIORITY",
    "EBB_SLO_P99",
    "EBB_ON_DAEMON_LOSS",
    "EBB_RUN",
    "EBB_DRIVER",
    "EBB_DISABLE",
    "EBB_SOFTGPU",
    "CUDA_MPS_CLIENT_PRIORITY",
];

pub struct Plain {
    /// A folder in which no MPS daemon listens.
    nobody: PathBuf,
}

impl Plain {
    pub fn new(folder: &Path) -> Result<Plain, Absence> {
        let nobody = folder.join("no-mps");
        fs::create_dir_all(&nobody).map_err(|error| Absence(format!("{}: {error}", nobody.display())))?;
        Ok(Plain { nobody })
    }

    pub fn environment(&self) -> Environment {
        let mut environment: Environment = OF_EBB.iter().map(|name| (name.into(), None)).collect();
        // A daemon of the machine would make every process its client, and time-slicing something else.
        environment.push(("CUDA_MPS_PIPE_DIRECTORY".into(), Some(self.nobody.clone().into())));
        environment
    }
}
