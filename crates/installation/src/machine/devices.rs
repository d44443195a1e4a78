//! Device nodes: what a program must be able to open to reach a GPU.

use std::fs::OpenOptions;
use std::io;
use std::path::PathBuf;

use super::Machine;

/// A device node that is there.
#[derive(Debug)]
pub struct Node {
    pub path: PathBuf,
    /// Why it cannot be opened, if so.
    pub refusal: Option<io::Error>,
}

/// The nodes through which NVIDIA's driver is reached.
#[derive(Debug, Default)]
pub struct Devices {
    /// `/dev/nvidiactl`.
    pub control: Option<Node>,
    /// `/dev/nvidia-uvm`, for unified memory, without which CUDA does not start.
    pub uvm: Option<Node>,
    /// `/dev/nvidia0` and so on, by number.
    pub gpus: Vec<Node>,
    /// `/dev/dxg`, the way to the GPU inside Windows' Linux subsystem, which has none of the others.
    pub windows: Option<Node>,
}

impl Devices {
    pub fn all(&self) -> impl Iterator<Item = &Node> {
        [&self.control, &self.uvm, &self.windows].into_iter().flatten().chain(&self.gpus)
    }
}

impl Machine {
    pub fn devices(&self) -> Devices {
        let mut numbers: Vec<u32> = self
            .place("/dev")
            .read_dir()
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("nvidia")?.parse().ok())
            .collect();
        numbers.sort_unstable();
        Devices {
            control: self.node("/dev/nvidiactl"),
            uvm: self.node("/dev/nvidia-uvm"),
            gpus: numbers.iter().filter_map(|number| self.node(&format!("/dev/nvidia{number}"))).collect(),
            windows: self.node("/dev/dxg"),
        }
    }

    fn node(&self, path: &str) -> Option<Node> {
        let path = self.place(path);
        path.exists().then(|| {
            let refusal = OpenOptions::new().read(true).write(true).open(&path).err();
            Node { path, refusal }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::made;
    use super::*;
    use std::path::Path;

    fn name(node: &Node) -> &Path {
        Path::new(node.path.file_name().unwrap())
    }

    #[test]
    fn gpus_are_the_numbered_nodes_in_order() {
        let files = ["nvidia10", "nvidia2", "nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "null"];
        let files: Vec<_> = files.iter().map(|name| (format!("/dev/{name}"), "")).collect();
        let files: Vec<_> = files.iter().map(|(path, content)| (path.as_str(), *content)).collect();
        let (_root, machine) = made(&files);
        let devices = machine.devices();
        let gpus: Vec<_> = devices.gpus.iter().map(name).collect();
        assert_eq!(gpus, [Path::new("nvidia0"), Path::new("nvidia2"), Path::new("nvidia10")]);
        assert!(devices.control.is_some() && devices.uvm.is_some() && devices.windows.is_none());
        assert!(devices.all().all(|node| node.refusal.is_none()));
    }

    #[test]
    fn a_node_that_cannot_be_opened_says_why() {
        // A folder can be opened for writing by nobody, not even by root, who may open everything else.
        let (_root, machine) = made(&[("/dev/nvidiactl/inside", "")]);
        assert!(machine.devices().control.unwrap().refusal.is_some());
    }

    #[test]
    fn a_machine_without_any_has_none() {
        assert_eq!(made(&[]).1.devices().all().count(), 0);
    }
}
