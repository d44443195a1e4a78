//! What the lab and a worker say to each other: JSON, one object to a line, orders on standard input and replies on
//! standard output.
//!
//! A worker may be written in any language, so every word is here and nowhere else on this side. Times in replies are
//! microseconds from `begin_ns`, a moment of the machine's monotonic clock that all workers of a run are given: whoever
//! is late in hearing it is late by his own clock, too.

use std::collections::BTreeMap;

use model::Class;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The file a worker is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    pub tenants: Vec<TenantSpec>,
    /// Every length of time of the workloads times this.
    pub slowdown: f64,
    /// Models so small that they run anywhere, to try.
    pub tiny: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TenantSpec {
    pub name: String,
    pub class: String,
    /// As the scenario has it, with every default filled in.
    pub workload: Value,
    pub stream: Stream,
}

/// The priority of the stream that a tenant works in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    High,
    Normal,
    Low,
}

/// The word for a class in specifications and records.
pub fn class_word(class: Class) -> String {
    class.to_string()
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Order<'a> {
    /// A closed loop, to learn how many requests a tenant can serve.
    Calibrate { tenant: usize, seconds: f64 },
    /// Back to the first weights and the first input.
    Prepare { tenant: usize },
    Run {
        tenant: usize,
        begin_ns: u64,
        /// When requests arrive; nothing for a closed loop.
        due_us: Option<&'a [u64]>,
        until_us: u64,
        drain_us: u64,
    },
    /// Which kernels a request consists of.
    Record { tenant: usize },
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "say", rename_all = "lowercase")]
pub enum Reply {
    Ready(Ready),
    Calibrated { tenant: usize, per_s: f64, count: u64 },
    Prepared { tenant: usize },
    Ran(Ran),
    Recorded { tenant: usize, profile: Value },
    Error { tenant: Option<usize>, reason: String },
}

impl Reply {
    /// Whom it is about; an error of a worker as a whole is about its first tenant as much as about any other.
    pub fn tenant(&self) -> usize {
        match self {
            Reply::Ready(_) => 0,
            Reply::Calibrated { tenant, .. }
            | Reply::Prepared { tenant }
            | Reply::Recorded { tenant, .. }
            | Reply::Ran(Ran { tenant, .. }) => *tenant,
            Reply::Error { tenant, .. } => tenant.unwrap_or(0),
        }
    }
}

/// A worker has loaded everything and waits for orders.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Ready {
    pub tenants: Vec<ReadyTenant>,
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    #[serde(default)]
    pub gpu: Gpu,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct ReadyTenant {
    /// GPU time of one request or iteration, with no host in between.
    pub gpu_us: f64,
    #[serde(default)]
    pub load_s: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Gpu {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub sms: u32,
}

/// What came of a run: the n-th entries belong to the n-th request or iteration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Ran {
    pub tenant: usize,
    pub start_us: Vec<u64>,
    pub end_us: Vec<u64>,
    #[serde(default)]
    pub wrong: Vec<u64>,
    pub checks: Option<Vec<String>>,
    pub first_us: Option<Vec<u64>>,
    pub tokens: Option<Vec<u64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_written_as_workers_read_them() {
        let text = |order: &Order<'_>| serde_json::to_string(order).unwrap();
        assert_eq!(text(&Order::Prepare { tenant: 1 }), r#"{"do":"prepare","tenant":1}"#);
        let run = Order::Run { tenant: 0, begin_ns: 9, due_us: Some(&[1, 2]), until_us: 30, drain_us: 4 };
        assert_eq!(
            text(&run),
            r#"{"do":"run","tenant":0,"begin_ns":9,"due_us":[1,2],"until_us":30,"drain_us":4}"#
        );
        let closed = Order::Run { tenant: 0, begin_ns: 9, due_us: None, until_us: 30, drain_us: 4 };
        assert!(text(&closed).contains(r#""due_us":null"#));
    }

    #[test]
    fn replies_are_read_with_what_they_may_leave_out() {
        let read = |text: &str| serde_json::from_str::<Reply>(text).unwrap();
        let Reply::Ran(ran) = read(r#"{"say":"ran","tenant":1,"start_us":[1],"end_us":[2]}"#) else {
            panic!("a reply to a run is one")
        };
        assert_eq!((ran.tenant, ran.start_us, ran.checks), (1, vec![1], None));
        let error = read(r#"{"say":"error","reason":"no such model"}"#);
        assert_eq!(error, Reply::Error { tenant: None, reason: "no such model".to_owned() });
        let Reply::Ready(ready) = read(r#"{"say":"ready","tenants":[{"gpu_us":934.5,"load_s":7.1}]}"#) else {
            panic!("a worker that is ready says so")
        };
        assert_eq!(ready.tenants[0].gpu_us, 934.5);
    }
}
