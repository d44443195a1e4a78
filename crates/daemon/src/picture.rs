//! What a page about the daemon is drawn from, taken at one moment by its one thread.
//!
//! A report has a histogram as three numbers, which is right for a line of text; who draws a curve needs all of it.

use board::Snapshot;
use model::Nanos;

use crate::report::Report;

#[derive(Clone, Debug)]
pub struct Picture {
    pub report: Report,
    /// When, by the clock of boards and events, and in nanoseconds since 1970.
    pub at: Nanos,
    pub unix_ns: u64,
    /// Of latency tenants.
    pub bursts: Vec<Bursts>,
    /// The numbers of GPUs, as NVIDIA's tools count them, where somebody counts.
    pub indices: Vec<(String, u32)>,
}

/// How long the requests of a latency tenant took on a GPU, those of all its processes together.
#[derive(Clone, Debug)]
pub struct Bursts {
    pub gpu: String,
    pub tenant: String,
    pub times: Snapshot,
}

/// What a policy has said, by the number that an event has for it: in a word, and in a sentence.
pub fn reason(number: u8) -> Option<(&'static str, &'static str)> {
    let why = policy::Why::ALL.get(usize::from(number)).copied()?;
    Some((why.name(), crate::registry::sentence(why)))
}
