//! NVIDIA's Multi-Process Service: does one run?

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use super::Machine;

/// The kernel keeps the first 15 bytes of `nvidia-cuda-mps-control` and `nvidia-cuda-mps-server`.
const PROCESS: &str = "nvidia-cuda-mps";

const DEFAULT_PIPES: &str = "/tmp/nvidia-mps";

/// What was seen of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mps {
    /// Its processes, as far as they can be seen: not those outside a container.
    pub processes: Vec<u32>,
    /// The folder of its pipes, if it holds that of a control daemon; one that was killed leaves it behind.
    pub pipes: Option<PathBuf>,
}

impl Machine {
    /// `pipes` is the value of `CUDA_MPS_PIPE_DIRECTORY`.
    pub fn mps(&self, pipes: Option<&OsStr>) -> Mps {
        let folder = match pipes.filter(|value| !value.is_empty()) {
            Some(folder) => PathBuf::from(folder),
            None => self.place(DEFAULT_PIPES),
        };
        let pipes = folder.join("control").exists().then_some(folder);
        let mut processes: Vec<u32> = self
            .place("/proc")
            .read_dir()
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let pid = entry.file_name().to_str()?.parse().ok()?;
                let name = fs::read_to_string(entry.path().join("comm")).ok()?;
                (name.trim_end() == PROCESS).then_some(pid)
            })
            .collect();
        processes.sort_unstable();
        Mps { processes, pipes }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::made;
    use super::*;

    #[test]
    fn a_service_is_known_by_its_processes_and_its_pipe() {
        let (root, machine) = made(&[
            ("/proc/71/comm", "nvidia-cuda-mps\n"),
            ("/proc/8/comm", "nvidia-cuda-mps\n"),
            ("/proc/9/comm", "nvidia-persiste\n"),
            ("/proc/self/comm", "nvidia-cuda-mps\n"),
            ("/tmp/nvidia-mps/control", ""),
        ]);
        let pipes = Some(root.path().join("tmp/nvidia-mps"));
        assert_eq!(machine.mps(None), Mps { processes: vec![8, 71], pipes });
    }

    #[test]
    fn the_environment_may_put_the_pipes_elsewhere() {
        let (root, machine) = made(&[("/tmp/nvidia-mps/control", ""), ("/elsewhere/control", "")]);
        let elsewhere = root.path().join("elsewhere");
        assert_eq!(machine.mps(Some(elsewhere.as_os_str())).pipes, Some(elsewhere));
        assert_eq!(machine.mps(Some(OsStr::new("/nowhere"))).pipes, None);
    }

    #[test]
    fn without_a_service_nothing_is_seen() {
        let (_root, machine) = made(&[("/proc/1/comm", "init\n")]);
        assert_eq!(machine.mps(None), Mps::default());
    }
}
