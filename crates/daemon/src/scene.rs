//! What is shown: two reports that follow each other, as rows.
//!
//! A report has totals; a live view wants rates, so each row compares a process with itself a moment ago. The time between
//! two reports is the daemon's own, which both of them carry: how long the answers were under way makes no difference.
//! Rows are tenants. Of what their processes do, rates are summed; of what they promise, the worst counts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::report::{AloneSamples, Counters, Gpu, Policy, Process, Report, State};
use model::{Domain, Nanos};

/// Everything on the screen that comes from the daemon.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// The daemon's process, whom it serves, and for how long.
    pub daemon: (u32, String, Nanos),
    /// The time between the two reports; nothing where there was only one.
    pub elapsed: Option<Nanos>,
    /// Those that have tenants.
    pub gpus: Vec<GpuRows>,
    pub sentences: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GpuRows {
    pub uuid: String,
    pub domain: String,
    /// Its policy, with the level where that has one.
    pub policy: Option<String>,
    /// Who has the token: nobody needs it in the shared domain.
    pub token: Option<Option<String>>,
    /// The part of the time in which nobody here had work on it.
    pub idle: Option<f64>,
    /// Somebody works by the board alone, or without the MPS that the domain needs.
    pub degraded: bool,
    pub tenants: Vec<Tenant>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// As `ebb pause` takes it.
    pub number: String,
    pub name: String,
    /// Whose it is.
    pub user: u32,
    pub figures: Figures,
    pub processes: Vec<Member>,
}

/// A process of a tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub pid: u32,
    pub program: String,
    pub figures: Figures,
}

/// What there is to say of a process, and in the same words of a tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    pub class: String,
    pub lowered: bool,
    pub state: State,
    pub priority: u32,
    pub weight: u32,
    pub rates: Option<Rates>,
    /// Of a latency tenant.
    pub service: Option<Service>,
    /// Of a best-effort tenant.
    pub stop: Option<Stop>,
    pub wait_p99: Option<Nanos>,
    /// What it has of the GPU's memory, and what it may have.
    pub memory: Option<(u64, Option<u64>)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Of the time between two reports, the part for which work was on the GPU.
    pub gpu: f64,
    /// Per second.
    pub launches: f64,
    pub preemptions: f64,
}

/// How long a latency tenant's requests take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Service {
    pub objective: Option<Nanos>,
    pub p99: Option<Nanos>,
    /// At p99, in thousandths of what they take alone.
    pub slowdown: Option<u64>,
    /// How many requests alone there are to go by, as long as those are too few.
    pub alone_samples: Option<AloneSamples>,
    pub unattainable: bool,
}

/// What has become of an objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Kept,
    Missed,
    /// It would be missed alone too.
    Unattainable,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Kept => "kept",
            Verdict::Missed => "missed",
            Verdict::Unattainable => "unattainable",
        }
    }
}

impl Service {
    pub fn of(process: &Process) -> Service {
        let requests = process.requests.as_ref();
        // What was lately says more than what was ever.
        let lately = requests.and_then(|requests| requests.all.p99_ns);
        let unknown = requests.filter(|requests| requests.alone.p99_ns.is_none());
        Service {
            objective: process.slo_p99_ns.map(Nanos),
            p99: lately.or(process.bursts.p99_ns).map(Nanos),
            slowdown: requests.and_then(|requests| requests.slowdown_p99_permille),
            alone_samples: unknown
                .map(|requests| requests.alone_samples)
                .filter(|samples| samples.needed > 0),
            unattainable: process.unattainable_p99_ns.is_some(),
        }
    }

    /// What has become of the objective, over the recent requests.
    pub fn verdict(&self) -> Option<Verdict> {
        let late = self.p99? > self.objective?;
        Some(match (late, self.unattainable) {
            (false, _) => Verdict::Kept,
            (true, false) => Verdict::Missed,
            (true, true) => Verdict::Unattainable,
        })
    }
}

/// How a best-effort tenant leaves the GPU, and how long that takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    pub rung: String,
    pub p99: Option<Nanos>,
}

impl Scene {
    /// `before` is left out of account if another daemon made it, or the same moment.
    pub fn new(before: Option<&Report>, now: &Report) -> Scene {
        let same = |before: &&Report| before.daemon.generation == now.daemon.generation;
        let before = before.filter(same);
        let elapsed = before.map(|before| Nanos(now.daemon.uptime_ns) - Nanos(before.daemon.uptime_ns));
        let before = before.zip(elapsed.filter(|elapsed| *elapsed > Nanos::ZERO));
        let mps_down = now.daemon.mps.as_ref().is_some_and(|mps| !mps.up);
        let gpus = now.gpus.iter().filter(|gpu| !gpu.processes.is_empty());
        Scene {
            daemon: (now.daemon.pid, now.daemon.scope.clone(), Nanos(now.daemon.uptime_ns)),
            elapsed: before.map(|(_, elapsed)| elapsed),
            gpus: gpus.map(|gpu| GpuRows::new(before, gpu, mps_down)).collect(),
            sentences: now.sentences.clone(),
        }
    }

    pub fn tenants(&self) -> usize {
        self.gpus.iter().map(|gpu| gpu.tenants.len()).sum()
    }
}

impl GpuRows {
    fn new(before: Option<(&Report, Nanos)>, gpu: &Gpu, mps_down: bool) -> GpuRows {
        let earlier = before.and_then(|(report, elapsed)| {
            Some((
                report.gpus.iter().find(|earlier| earlier.uuid == gpu.uuid && earlier.user == gpu.user)?,
                elapsed,
            ))
        });
        let tenants = tenants(earlier, gpu);
        let known = tenants.iter().filter_map(|tenant| tenant.figures.rates);
        let busy: f64 = known.map(|rates| rates.gpu).sum();
        let shared = is_shared(gpu);
        GpuRows {
            uuid: gpu.uuid.clone(),
            domain: gpu.domain.clone(),
            policy: gpu.policy.as_ref().map(policy),
            token: (!shared).then(|| gpu.token.as_ref().map(|holder| holder.name.clone())),
            // Whoever is on the GPU at once is counted twice: then there is at least this much idle time.
            idle: earlier.map(|_| (1.0 - busy).max(0.0)),
            degraded: gpu.processes.iter().any(|process| process.daemon_lost) || (shared && mps_down),
            tenants,
        }
    }
}

fn is_shared(gpu: &Gpu) -> bool {
    gpu.domain == Domain::Shared.to_string()
}

fn policy(policy: &Policy) -> String {
    match policy.level {
        Some(level) => format!("{} level {level}/{}", policy.kind, policy.highest_level),
        None => policy.kind.clone(),
    }
}

/// In the order in which their first processes came.
fn tenants(earlier: Option<(&Gpu, Nanos)>, gpu: &Gpu) -> Vec<Tenant> {
    let mut order: Vec<&str> = Vec::new();
    let mut members: BTreeMap<&str, Vec<&Process>> = BTreeMap::new();
    for process in &gpu.processes {
        if !members.contains_key(process.tenant.as_str()) {
            order.push(&process.tenant);
        }
        members.entry(&process.tenant).or_default().push(process);
    }
    let member = |process: &&Process| {
        let rates = earlier.and_then(|(gpu, elapsed)| rates(gpu, process, elapsed));
        let mut figures = figures(rates, process);
        // In the shared domain nobody takes turns, so only its work tells that a best-effort tenant is there.
        let at_work = figures.stop.is_some() && rates.is_some_and(|rates| rates.gpu > 0.0);
        if is_shared(gpu) && figures.state == State::Idle && at_work {
            figures.state = State::Running;
        }
        Member { pid: process.pid, program: process.program.clone(), figures }
    };
    let tenant = |number: &str| {
        let processes: Vec<Member> = members[number].iter().map(member).collect();
        Tenant {
            number: number.to_owned(),
            name: members[number][0].name.clone(),
            user: members[number][0].user,
            figures: together(&processes),
            processes,
        }
    };
    order.into_iter().map(tenant).collect()
}

/// How fast a process's counters rose. A process that was not there, or has begun anew, has none yet.
fn rates(earlier: &Gpu, process: &Process, elapsed: Nanos) -> Option<Rates> {
    let same = |other: &&Process| (other.pid, other.seat) == (process.pid, process.seat);
    let then = &earlier.processes.iter().find(same)?.counters;
    let now = &process.counters;
    let seconds = elapsed.as_secs_f64();
    let risen = |then: u64, now: u64| Some(now.checked_sub(then)? as f64 / seconds);
    Some(Rates {
        gpu: risen(then.gpu_ns, now.gpu_ns)? * 1e-9,
        launches: risen(then.submissions, now.submissions)?,
        preemptions: risen(preempted(then), preempted(now))?,
    })
}

/// How often a tenant had to make room for latency tenants, in either domain.
pub fn preempted(counters: &Counters) -> u64 {
    counters.preempted.saturating_add(counters.stops_guard)
}

fn figures(rates: Option<Rates>, process: &Process) -> Figures {
    let latency = process.class == model::Class::Latency.to_string();
    Figures {
        class: process.class.clone(),
        lowered: process.lowered,
        state: process.state,
        priority: process.priority,
        weight: process.weight,
        rates,
        service: latency.then(|| Service::of(process)),
        stop: (!latency).then(|| stop(process)),
        wait_p99: process.waits.p99_ns.map(Nanos),
        memory: memory(process),
    }
}

/// In the shared domain from a stop to the last block, in the isolated one what it takes to give a turn away.
fn stop(process: &Process) -> Stop {
    let p99 = process.guard_stops.p99_ns.or(process.handovers.p99_ns);
    Stop { rung: process.rung.clone(), p99: p99.map(Nanos) }
}

/// Who has none and may have any has nothing to show.
fn memory(process: &Process) -> Option<(u64, Option<u64>)> {
    let (used, limit) = (process.memory_used_bytes, process.memory_limit_bytes);
    (used > 0 || limit.is_some()).then_some((used, limit))
}

/// The processes of one tenant as one.
fn together(processes: &[Member]) -> Figures {
    let all = || processes.iter().map(|member| &member.figures);
    let first = &processes[0].figures;
    let rates = all().filter_map(|figures| figures.rates).reduce(|sum, more| Rates {
        gpu: sum.gpu + more.gpu,
        launches: sum.launches + more.launches,
        preemptions: sum.preemptions + more.preemptions,
    });
    let memory = all().filter_map(|figures| figures.memory).reduce(|(used, limit), (more, other)| {
        // The limit is the tenant's, not each process's.
        (used.saturating_add(more), limit.max(other))
    });
    Figures {
        class: first.class.clone(),
        lowered: all().any(|figures| figures.lowered),
        state: all().map(|figures| figures.state).min_by_key(|state| rank(*state)).unwrap_or(first.state),
        priority: first.priority,
        weight: first.weight,
        rates,
        service: all().filter_map(|figures| figures.service).max_by_key(badness),
        stop: all().filter_map(|figures| figures.stop.clone()).max_by_key(|stop| stop.p99),
        wait_p99: all().filter_map(|figures| figures.wait_p99).max(),
        memory,
    }
}

/// A tenant is as lively as its liveliest process.
pub fn rank(state: State) -> u8 {
    match state {
        State::Holding => 0,
        State::Running => 1,
        State::Waiting => 2,
        State::Paused => 3,
        State::Idle => 4,
    }
}

fn badness(service: &Service) -> (Option<Verdict>, Option<Nanos>, Reverse<Option<Nanos>>) {
    (service.verdict(), service.p99, Reverse(service.objective))
}
