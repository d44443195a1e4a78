//! The lines of a result file.
//!
//! Every line is one JSON object with a tag `record`. Times are whole microseconds and end in `_us`; those of a run
//! count from its begin. Fields that are not known are passed over, so that a newer file with more in it can be read;
//! a change of meaning raises [`SCHEMA`].

use std::collections::BTreeMap;

use model::{Class, Nanos};
use serde::{Deserialize, Serialize};

/// The version of the file's meaning.
pub const SCHEMA: u32 = 1;

/// The mode in which each tenant has the device to itself.
pub const ALONE: &str = "alone";
/// The mode in which all latency tenants run and no best-effort one.
pub const LATENCY_ONLY: &str = "latency-only";

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    Machine(Machine),
    Scenario(Scenario),
    Calibration(Calibration),
    Run(Run),
    Failure(Failure),
    Absent(Absent),
}

/// Where and by what the records that follow were measured: one for each invocation of the lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub schema: u32,
    /// RFC 3339, UTC.
    pub at: String,
    pub ebb: Build,
    pub host: Host,
    pub device: Device,
    /// Versions, by the names the libraries give themselves.
    #[serde(default)]
    pub libraries: BTreeMap<String, String>,
    pub command: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Build {
    pub version: String,
    /// `None` where the sources were no checkout.
    pub commit: Option<String>,
    pub dirty: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    pub cpu: String,
    pub cores: u32,
    pub memory_gib: f64,
    pub kernel: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// `gpu` or `soft`.
    pub kind: String,
    pub name: String,
    pub driver: String,
    pub sms: u32,
    pub memory_gib: f64,
    /// By how much time is stretched; 1 on a GPU.
    pub slowdown: f64,
}

/// A scenario as it was resolved for this device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    pub suite: String,
    pub name: String,
    /// Of the resolved file: runs of two digests are never mixed.
    pub digest: String,
    pub title: String,
    #[serde(default)]
    pub source: Option<String>,
    #[serde(default)]
    pub about: Option<String>,
    pub duration_us: u64,
    pub warmup_us: u64,
    pub repetitions: u32,
    pub seed: u64,
    pub slowdown: f64,
    pub tenants: Vec<Tenant>,
    /// The modes wanted, as [`crate::mode`] writes them.
    pub modes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tenant {
    pub name: String,
    #[serde(with = "class")]
    pub class: Class,
    /// The id of its workload.
    pub workload: String,
    /// In words, such as `poisson at load 0.5`.
    pub arrival: String,
    /// Requests per second; `None` in a closed loop.
    pub rate: Option<f64>,
    #[serde(default)]
    pub slo: Slo,
}

/// What a latency tenant wants. A request is in time if it keeps every limit that is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slo {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<u64>,
    /// A multiple of the tenant's own p99 alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone_p99: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpot_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone_ttft_p99: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone_tpot_p99: Option<f64>,
}

/// What a workload can do on this device by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    pub workload: String,
    /// In a closed loop.
    pub per_s: f64,
    pub gpu_us: f64,
}

/// One scenario in one mode once; in the mode `alone`, one tenant of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub id: String,
    pub suite: String,
    pub scenario: String,
    pub mode: String,
    pub repetition: u32,
    /// Which place it had among the runs of its repetition.
    pub order: u32,
    pub at: String,
    pub seed: u64,
    /// What is due before is not counted.
    pub warmup_us: u64,
    /// What is due from here on is not counted.
    pub until_us: u64,
    pub wall_s: f64,
    pub tenants: Vec<TenantRun>,
    /// What `ebb status -o json` said at the end.
    #[serde(default)]
    pub ebb: Option<serde_json::Value>,
    /// In the mode `alone`: every `suite/scenario/tenant` that this run serves. Empty means only its own.
    #[serde(default, rename = "for", skip_serializing_if = "Vec::is_empty")]
    pub serves: Vec<String>,
    /// Which of [`Archive::machines`](crate::Archive) it was measured on; not in the file, where it follows from order.
    #[serde(skip)]
    pub machine: usize,
}

/// What one tenant did in a run. The n-th entry of every list belongs to the n-th request or iteration; lists are
/// shorter than `due_us` where requests stayed unserved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TenantRun {
    pub name: String,
    #[serde(with = "class")]
    pub class: Class,
    pub workload: String,
    /// GPU time of one request or iteration with no host in between.
    pub gpu_us: f64,
    /// `None` in a closed loop.
    pub due_us: Option<Vec<u64>>,
    pub start_us: Vec<u64>,
    pub end_us: Vec<u64>,
    /// Which of them gave a wrong answer.
    #[serde(default)]
    pub wrong: Vec<usize>,
    /// A digest of each iteration's result, which depends only on its number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// When the first token was there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_us: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<u32>,
    /// The SLO that it told ebb, where it told one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo_us: Option<u64>,
}

/// A run that came to nothing. A later run of the same id supersedes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub id: String,
    pub suite: String,
    pub scenario: String,
    pub mode: String,
    pub repetition: u32,
    /// Whose fault it was, where one tenant is to blame.
    #[serde(default)]
    pub tenant: Option<String>,
    pub reason: String,
}

/// A mode that was wanted and cannot be had here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Absent {
    pub mode: String,
    /// `None`: in no suite.
    #[serde(default)]
    pub suite: Option<String>,
    /// `None`: in no scenario.
    #[serde(default)]
    pub scenario: Option<String>,
    pub reason: String,
}

/// Times in files are allegations: one that does not fit is as long as can be said.
pub(crate) fn nanos(us: u64) -> Nanos {
    Nanos(us.saturating_mul(1_000))
}

impl Run {
    /// What is wrong with its times, if anything is: a length of nothing, or a moment that no run can have.
    pub fn fault(&self) -> Option<String> {
        /// A month: far beyond any run, and far from where sums of times would overflow.
        const LATEST_US: u64 = 31 * 24 * 3_600 * 1_000_000;
        if self.until_us <= self.warmup_us {
            return Some(format!("{} counts no time: its warm-up is not over before its end", self.id));
        }
        let late = |tenant: &&TenantRun| {
            let due = tenant.due_us.iter().flatten();
            let times = due.chain(&tenant.start_us).chain(&tenant.end_us).chain(&tenant.first_us);
            times.chain([&self.until_us]).any(|time| *time > LATEST_US)
        };
        let whose = self.tenants.iter().find(late);
        whose.map(|tenant| format!("{} has a time of {} that is beyond a month", self.id, tenant.name))
    }

    /// The length of the counted time in seconds.
    pub fn window_s(&self) -> f64 {
        self.until_us.saturating_sub(self.warmup_us) as f64 * 1e-6
    }

    /// The names under which this run may be asked for: `suite/scenario/tenant` of every tenant it speaks of.
    pub fn names(&self) -> Vec<String> {
        if !self.serves.is_empty() {
            return self.serves.clone();
        }
        let full = |tenant: &TenantRun| format!("{}/{}/{}", self.suite, self.scenario, tenant.name);
        self.tenants.iter().map(full).collect()
    }

    /// Whether it was measured for a scenario, as its own or as one of those it serves.
    pub fn is_of(&self, suite: &str, scenario: &str) -> bool {
        match self.serves.is_empty() {
            true => self.suite == suite && self.scenario == scenario,
            false => self.serves.iter().any(|name| is_tenant_of(name, suite, scenario)),
        }
    }

    /// It is not of that scenario any more. Whether it is of none then.
    pub(crate) fn forget(&mut self, suite: &str, scenario: &str) -> bool {
        if self.serves.is_empty() {
            return self.is_of(suite, scenario);
        }
        self.serves.retain(|name| !is_tenant_of(name, suite, scenario));
        self.serves.is_empty()
    }
}

/// Whether a name, of a suite, a scenario and a tenant, is of that scenario.
fn is_tenant_of(name: &str, suite: &str, scenario: &str) -> bool {
    let mut parts = name.splitn(3, '/');
    parts.next() == Some(suite) && parts.next() == Some(scenario)
}

/// `model` knows no file format; its words are what files say.
mod class {
    use model::Class;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(class: &Class, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(class)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Class, D::Error> {
        std::borrow::Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
