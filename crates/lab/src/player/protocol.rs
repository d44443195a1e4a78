//! The lab's words from the worker's side: what a player is told, and what it says.

use std::collections::BTreeMap;

use scenario::Workload;
use serde::{Deserialize, Serialize};

use crate::crew::Stream;

/// The file that a player is started with.
#[derive(Clone, Debug, Deserialize)]
pub struct Spec {
    pub tenants: Vec<TenantSpec>,
    #[serde(default = "as_it_is")]
    pub slowdown: f64,
}

fn as_it_is() -> f64 {
    1.0
}

#[derive(Clone, Debug, Deserialize)]
pub struct TenantSpec {
    pub name: String,
    pub class: String,
    pub workload: Workload,
    pub stream: Stream,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum Order {
    Calibrate {
        tenant: usize,
        seconds: f64,
    },
    Prepare {
        tenant: usize,
    },
    Run {
        tenant: usize,
        begin_ns: u64,
        /// When requests arrive; nothing for a closed loop.
        due_us: Option<Vec<u64>>,
        until_us: u64,
        drain_us: u64,
    },
    Record {
        tenant: usize,
    },
}

impl Order {
    pub fn tenant(&self) -> usize {
        match self {
            Order::Calibrate { tenant, .. }
            | Order::Prepare { tenant }
            | Order::Run { tenant, .. }
            | Order::Record { tenant } => *tenant,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "say", rename_all = "lowercase")]
pub enum Reply {
    Ready {
        tenants: Vec<ReadyTenant>,
        versions: BTreeMap<&'static str, String>,
        gpu: Gpu,
    },
    Calibrated {
        tenant: usize,
        per_s: f64,
        count: usize,
    },
    Prepared {
        tenant: usize,
    },
    Ran {
        tenant: usize,
        #[serde(flatten)]
        ran: Ran,
    },
    Error {
        #[serde(skip_serializing_if = "Option::is_none")]
        tenant: Option<usize>,
        reason: String,
    },
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReadyTenant {
    pub gpu_us: f64,
    pub load_s: f64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Gpu {
    pub name: String,
    pub sms: u32,
}

/// What came of a run: the n-th entries belong to the n-th request or iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ran {
    pub start_us: Vec<u64>,
    pub end_us: Vec<u64>,
    pub wrong: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_us: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Vec<u64>>,
}
