//! What there is to say at one moment.

use board::Figures;
use model::{Class, Nanos};

/// Everything that is exported.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Of ebb.
    pub version: String,
    pub gpus: Vec<Gpu>,
    pub disconnects: Disconnects,
    pub health: Health,
    pub reload: Reload,
}

/// One GPU on which there is a tenant, or has been one since the daemon began.
#[derive(Clone, Debug)]
pub struct Gpu {
    /// Its number, as NVIDIA's tools count them. `None`: nobody here counts this one.
    pub index: Option<u32>,
    pub uuid: String,
    pub domain: String,
    pub policy: String,
    pub clients: Clients,
    /// Processes that use it and are no tenants. `None`: that cannot be known here.
    pub unmanaged: Option<u64>,
    /// Time for which no tenant had work on it.
    pub idle: Nanos,
    /// GPU time of best-effort tenants, those that are forgotten too.
    pub harvested: Nanos,
    /// How often a tenant came to be counted together with others, because its user has too many names.
    pub gathered: u64,
    /// What was counted by everybody who was ever on it, those that are forgotten too.
    pub all: Box<Figures>,
    pub tenants: Vec<Tenant>,
}

/// Processes that have a seat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clients {
    pub latency: u64,
    pub best_effort: u64,
}

/// A tenant on a GPU, in one class: all its processes together, those that have ended too.
#[derive(Clone, Debug)]
pub struct Tenant {
    /// Unique among those of the GPU that have the same class.
    pub name: String,
    pub class: Class,
    pub user: u32,
    /// What it is now, if any process of it is there.
    pub now: Option<Now>,
    pub figures: Box<Figures>,
}

/// What holds while a tenant has processes on the GPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Now {
    pub weight: u32,
    pub priority: u32,
    pub slo: Option<Nanos>,
    /// Of the process that is slowed down most.
    pub slowdown: Option<Slowdown>,
    /// `None`: nobody accounts for memory.
    pub memory: Option<Memory>,
}

/// How long requests take, over what they take alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowdown {
    pub p50: f64,
    pub p99: f64,
}

/// Device memory of a tenant on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub used: u64,
    pub limit: Option<u64>,
}

/// Processes that had a seat and are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disconnects {
    /// Their program ended in the ordinary way.
    pub exit: u64,
    /// They were killed, or ended in the middle.
    pub death: u64,
    /// They broke the rules of the connection.
    pub expelled: u64,
}

/// What is not as it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The shared domain's service is down.
    pub mps: bool,
    /// A best-effort tenant cannot be stopped by the means of its domain.
    pub rung: bool,
    /// A tenant has shown no life for some time.
    pub silent: bool,
}

/// How the configuration was last read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reload {
    pub successful: bool,
    /// When it was last read with success, in seconds since 1970.
    pub at: f64,
}
