//! What the daemon reports: the boards, read at one moment, for programs and for those who print.
//!
//! One declaration serves both ends of the socket. Times are whole nanoseconds and shares thousandths, so that every
//! number is an integer. Keys are added, never renamed.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub version: String,
    pub daemon: Daemon,
    pub gpus: Vec<Gpu>,
    /// What is not as it should be, for people.
    pub sentences: Vec<String>,
}

impl Report {
    /// On one line.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("strings and integers can be written")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Daemon {
    pub pid: u32,
    /// Another one with each start, 16 hexadecimal digits.
    pub generation: String,
    pub scope: String,
    pub folder: String,
    pub uptime_ns: u64,
    /// Where the configuration is, whether or not there is a file.
    pub configuration: Option<String>,
    /// The files that were read, in their order.
    #[serde(default)]
    pub config_files: Vec<String>,
    /// How many different configurations have been in force since the start, this one included.
    #[serde(default)]
    pub config_generation: u64,
    /// Whether the files, as they were last read, are in force.
    #[serde(default)]
    pub config_ok: bool,
    /// Why not.
    #[serde(default)]
    pub config_error: Option<String>,
    /// When what is in force was last read, in nanoseconds since 1970.
    #[serde(default)]
    pub config_loaded_ns: u64,
    /// How long ago that is.
    #[serde(default)]
    pub config_age_ns: u64,
    /// Registrations that were not granted since the start.
    pub refused: u64,
    /// Connections that were closed since the start, of somebody who may not connect or has too many.
    #[serde(default)]
    pub turned_away: u64,
    /// Messages that were too long, or none at all.
    #[serde(default)]
    pub malformed: u64,
    /// How tenants share a GPU here.
    #[serde(default)]
    pub domain: String,
    /// Why that, where the daemon was to choose.
    #[serde(default)]
    pub domain_choice: Option<DomainChoice>,
    /// The daemon's own MPS, in the shared domain of a real GPU.
    #[serde(default)]
    pub mps: Option<Mps>,
    /// How long ago it was looked who else is on the GPUs. That is done when somebody asks, at most every two seconds, and
    /// what is reported is what was found last; `null`: not yet.
    #[serde(default)]
    pub survey_age_ns: Option<u64>,
    /// Where metrics are served, if they are.
    #[serde(default)]
    pub metrics: Option<String>,
    /// Where the dashboard is, if there is one.
    #[serde(default)]
    pub dashboard: Option<String>,
}

/// A key of the configuration that is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// With its table: `token.quantum`. Every rule about ceilings is a `ceiling`, in the order in which they are asked.
    pub key: String,
    pub value: String,
    /// File and line; `null` is the default.
    pub from: Option<String>,
}

/// Why a daemon chose its domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainChoice {
    /// In a word, as `docs/policies.md` lists them.
    pub why: String,
    /// And in a sentence.
    pub reason: String,
}

/// NVIDIA's multi-process service, as the daemon keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mps {
    pub pipes: String,
    pub up: bool,
    /// Faults of one client that took the others along.
    pub faults: u64,
    /// How often it had to be started anew.
    pub restarts: u64,
    /// Who ended with the last fault.
    pub victims: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// As NVIDIA's tools write it.
    pub uuid: String,
    #[serde(default)]
    pub domain: String,
    pub settings: Settings,
    /// Which policy decides, and how its dials stand now.
    #[serde(default)]
    pub policy: Option<Policy>,
    /// Whose the board is, where it is one user's alone; `null`: it is for all users of the GPU.
    #[serde(default)]
    pub user: Option<u32>,
    /// How often somebody had written over what only the daemon writes on the board.
    #[serde(default)]
    pub tampered: u64,
    /// Who may put best-effort work on the GPU now.
    pub token: Option<Holder>,
    pub processes: Vec<Process>,
    /// Processes on this GPU that are not tenants here; `null`: it is not known.
    #[serde(default)]
    pub strangers: Option<Vec<Stranger>>,
}

/// A process on a GPU that is not a tenant here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stranger {
    pub pid: u32,
    pub user: u32,
    pub user_name: Option<String>,
    pub command: String,
    /// What it has of the GPU's memory, where that is told.
    pub memory_bytes: Option<u64>,
    /// Whether it has work for the GPU, now or lately; `null`: nobody can tell.
    pub active: Option<bool>,
    /// Which part of the last seconds it was on the GPU, in permille; `null`: nobody can tell.
    #[serde(default)]
    pub gpu_permille: Option<u32>,
    /// Whether it runs under another ebb; `null`: it may not be looked into.
    pub under_ebb: Option<bool>,
    /// Its class there; `null`: it has none, or has not begun.
    #[serde(default)]
    pub class: Option<String>,
    /// The folder of the daemon that it was told of.
    pub daemon: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub quantum_ns: u64,
    pub in_flight_ns: u64,
    pub idle_ns: u64,
    pub grace_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub kind: String,
    /// How bold the controller of `slo` is: nought to `highest_level`. `null`: this policy has none.
    pub level: Option<u32>,
    pub highest_level: u32,
    pub quiet_ns: u64,
    pub threshold_ns: u64,
    pub in_flight_ns: u64,
    pub beside_ns: u64,
    /// On how many of a hundred SMs longer work may run beside a request.
    pub confine_percent: u32,
    /// Of requests, how many are seen alone.
    pub solo_share_permille: u32,
    pub tolerance_permille: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub name: String,
    pub held_ns: u64,
}

/// One process on one GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    pub user: u32,
    /// 16 hexadecimal digits; the processes of one `ebb run` have the same.
    pub tenant: String,
    pub name: String,
    pub program: String,
    pub seat: u16,
    pub class: String,
    pub weight: u32,
    pub priority: u32,
    pub slo_p99_ns: Option<u64>,
    /// It asked for more than it may have.
    pub lowered: bool,
    pub asked: Asked,
    pub state: State,
    pub rung: String,
    /// The reason for the rung: one word, and a sentence.
    pub why: String,
    pub reason: String,
    /// More about the reason, such as a status of the driver; nought if there is none.
    pub detail: u32,
    /// Of a latency tenant: how long its requests take, lately and alone.
    #[serde(default)]
    pub requests: Option<Requests>,
    /// What has become of the objective, over the recent requests: `kept`, `missed` or `unattainable`. `null`: there is none, or
    /// no request yet.
    #[serde(default)]
    pub objective: Option<String>,
    /// Of a latency tenant whose objective is missed and cannot be kept even alone: what 99 of 100 requests take then.
    #[serde(default)]
    pub unattainable_p99_ns: Option<u64>,
    /// Of a best-effort tenant: what was last decided about it.
    #[serde(default)]
    pub decision: Option<Decision>,
    /// The timeslice that was set; `null` means the driver's own.
    pub slice_ns: Option<u64>,
    /// Of a best-effort tenant: `short`, `lengthened` or `starving`.
    #[serde(default)]
    pub slice_state: String,
    /// What it has of the GPU's memory.
    #[serde(default)]
    pub memory_used_bytes: u64,
    /// What all processes of its tenant may have together; `null`: there is no limit.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// Of the GPU time of all on this GPU, in thousandths.
    pub share_permille: u64,
    /// Since it last showed life; `null`: it never has.
    pub heartbeat_age_ns: Option<u64>,
    pub daemon_lost: bool,
    pub counters: Counters,
    pub bursts: Times,
    pub waits: Times,
    pub handovers: Times,
    /// From a stop to the last block that ran.
    #[serde(default)]
    pub guard_stops: Times,
}

/// How long the requests of a latency tenant take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// Lately, whoever ran beside them.
    pub all: Times,
    /// Of those that had the GPU to themselves; until it is known, a count and no times.
    pub alone: Times,
    /// How many of those there are to go by.
    #[serde(default)]
    pub alone_samples: AloneSamples,
    /// What they take, in thousandths of what they take alone; `null`: one of the two is not known yet.
    pub slowdown_p50_permille: Option<u64>,
    pub slowdown_p99_permille: Option<u64>,
    /// Whether they wait in line, or are steps of something longer, so that `slo` lets nobody run beside them.
    #[serde(default)]
    pub in_line: bool,
}

/// How many requests alone there are to go by, and how many it takes to say something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AloneSamples {
    pub seen: u64,
    pub needed: u64,
}

impl AloneSamples {
    /// "not known yet (37 of 100)"
    pub fn words(&self) -> String {
        format!("not known yet ({} of {})", self.seen, self.needed)
    }
}

/// Why a best-effort tenant may run, or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// In a word, and in a sentence.
    pub why: String,
    pub reason: String,
    /// It may start what leaves the GPU as fast as this: nought is nothing, `null` anything.
    pub longest_ns: Option<u64>,
}

/// What a process asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub class: String,
    pub weight: u32,
    pub priority: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Stands still because somebody said so.
    Paused,
    /// Has the token.
    Holding,
    /// Wants the token.
    Waiting,
    /// A latency tenant in the middle of a burst.
    Running,
    Idle,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            State::Paused => "paused",
            State::Holding => "holding",
            State::Waiting => "waiting",
            State::Running => "running",
            State::Idle => "idle",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    pub submissions: u64,
    #[serde(default)]
    pub launches: u64,
    pub gpu_ns: u64,
    /// Time for which it had work that could have been on the GPU.
    #[serde(default)]
    pub pending_ns: u64,
    pub held_ns: u64,
    pub wait_ns: u64,
    pub waits: u64,
    pub passes: u64,
    pub stops_hold: u64,
    #[serde(default)]
    pub stops_guard: u64,
    #[serde(default)]
    pub cut: u64,
    #[serde(default)]
    pub relaunched: u64,
    #[serde(default)]
    pub confined: u64,
    #[serde(default)]
    pub rounds: u64,
    #[serde(default)]
    pub watchdog: u64,
    pub stops_switch: u64,
    pub preempted: u64,
    pub taken_over: u64,
    pub lost: u64,
    pub bursts: u64,
    pub burst_ns: u64,
    pub bursts_unended: u64,
    #[serde(default)]
    pub marked: u64,
    pub slo_missed: u64,
    pub daemon_losses: u64,
    pub refusals: u64,
    /// Times that its timeslice was lengthened because nothing got done with the short one.
    #[serde(default)]
    pub slices_lengthened: u64,
    /// Allocations that would have gone beyond the limit of memory.
    #[serde(default)]
    pub memory_denials: u64,
}

/// A histogram in three numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    pub count: u64,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
}
