//! What is known of a process.

use std::collections::BTreeMap;

use telemetry::Event;

/// A process, and what it wrote down.
#[derive(Clone, Debug, Default)]
pub struct Source {
    pub pid: u32,
    /// As the tenant is called, or the program where it has no name.
    pub name: String,
    /// Which GPU each of its posts is on.
    pub gpus: BTreeMap<u8, [u8; 16]>,
    /// The names of kernels by their places in the ledger.
    pub kernels: BTreeMap<u32, String>,
    pub events: Vec<Event>,
    /// Events that were overwritten before they were read.
    pub lost: u64,
}

impl Source {
    pub fn gpu(&self, event: &Event) -> Option<[u8; 16]> {
        self.gpus.get(&event.post).copied()
    }

    pub fn kernel(&self, index: u32) -> String {
        match self.kernels.get(&index) {
            Some(name) => name.clone(),
            None if index == telemetry::NO_KERNEL => "a kernel".to_owned(),
            None => format!("kernel {index}"),
        }
    }

    /// For people.
    pub fn title(&self) -> String {
        if self.name.is_empty() { format!("process {}", self.pid) } else { self.name.clone() }
    }
}
