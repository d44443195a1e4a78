//! The report as a page: the daemon, each GPU, each tenant on it, and what is not as it should be.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use daemon::report::{AloneSamples, Daemon, Decision, Gpu, Policy, Process, Report, Requests, Times};
use model::{Bytes, Domain, Kind, Nanos};

use crate::users::UserNames;

/// Writing to a string cannot fail.
macro_rules! line {
    ($out:expr, $($format:tt)*) => {
        writeln!($out, $($format)*).expect("a string takes everything")
    };
}

pub fn text(report: &Report, names: &UserNames) -> String {
    let mut out = String::new();
    let daemon = &report.daemon;
    let uptime = Nanos(daemon.uptime_ns);
    line!(out, "daemon {} for the {}, in {}, for {uptime}", daemon.pid, daemon.scope, daemon.folder);
    line!(out, "{}", configuration(daemon));
    if let Some(metrics) = &daemon.metrics {
        let dashboard = daemon.dashboard.as_ref().map(|url| format!(", dashboard at {url}"));
        line!(out, "metrics at {metrics}{}", dashboard.unwrap_or_default());
    }
    if let Some(choice) = &daemon.domain_choice {
        line!(out, "chose the {} domain: {}", daemon.domain, choice.reason);
    }
    if let Some(mps) = &daemon.mps {
        let state = if mps.up { "up" } else { "down" };
        let (faults, restarts) = (times(mps.faults), times(mps.restarts));
        line!(out, "MPS {state} in {}; faults: {faults}, started anew: {restarts}", mps.pipes);
    }
    if report.gpus.iter().all(|gpu| gpu.processes.is_empty()) {
        line!(out, "no tenants");
    }
    for gpu in report.gpus.iter().filter(|gpu| !gpu.processes.is_empty()) {
        write_gpu(&mut out, gpu, names);
    }
    if !report.sentences.is_empty() {
        line!(out, "");
    }
    report.sentences.iter().for_each(|sentence| line!(out, "{sentence}"));
    out
}

/// Which configuration is in force. What is wrong with a newer one is a sentence at the end.
fn configuration(daemon: &Daemon) -> String {
    let number = daemon.config_generation;
    let from = match daemon.config_files.as_slice() {
        [] => "no file".to_owned(),
        files => files.join(", "),
    };
    match daemon.config_ok {
        true => format!("configuration {number}, read {} ago: {from}", Nanos(daemon.config_age_ns)),
        false => format!("configuration {number}, the last good one: {from}"),
    }
}

fn write_gpu(out: &mut String, gpu: &Gpu, names: &UserNames) {
    let settings = &gpu.settings;
    line!(out, "\n{}", gpu.uuid);
    if let Some(user) = gpu.user {
        line!(out, "  board     of user {} alone", names.full(user));
    }
    line!(out, "  domain    {}", gpu.domain);
    if let Some(policy) = &gpu.policy {
        line!(out, "  policy    {}", describe(policy));
    }
    // In the shared domain nobody needs the token.
    if gpu.domain != Domain::Shared.to_string() {
        match &gpu.token {
            Some(holder) => {
                line!(out, "  token     {} ({}) for {}", holder.name, holder.pid, Nanos(holder.held_ns));
            }
            None => line!(out, "  token     free"),
        }
        line!(
            out,
            "  settings  quantum {}, idle {}, grace {}",
            Nanos(settings.quantum_ns),
            Nanos(settings.idle_ns),
            Nanos(settings.grace_ns)
        );
    }
    // Tenants in the order in which their first processes came.
    let mut order: Vec<&str> = Vec::new();
    let mut tenants: BTreeMap<&str, Vec<&Process>> = BTreeMap::new();
    for process in &gpu.processes {
        let members = tenants.entry(&process.tenant).or_default();
        if members.is_empty() {
            order.push(&process.tenant);
        }
        members.push(process);
    }
    for tenant in order {
        let members = &tenants[tenant];
        line!(out, "\n  tenant {tenant} {}, user {}", members[0].name, names.full(members[0].user));
        line!(
            out,
            "  {:>8}  {:12} {:>6} {:>8}  {:8} {:7} {:>10} {:>10} {:>6}",
            "pid",
            "class",
            "weight",
            "priority",
            "state",
            "rung",
            "slice",
            "GPU time",
            "share"
        );
        members.iter().for_each(|process| write_process(out, process));
    }
}

fn write_process(out: &mut String, process: &Process) {
    let slice = process.slice_ns.map_or("default".to_owned(), |slice| Nanos(slice).to_string());
    line!(
        out,
        "  {:>8}  {:12} {:>6} {:>8}  {:8} {:7} {:>10} {:>10} {:>6}",
        process.pid,
        class(process),
        process.weight,
        process.priority,
        process.state.word(),
        process.rung,
        slice,
        Nanos(process.counters.gpu_ns).to_string(),
        share(process.share_permille)
    );
    for sentence in details(process) {
        line!(out, "  {:>8}  {sentence}", "");
    }
}

/// A star says that more was asked for.
pub fn class(process: &Process) -> String {
    format!("{}{}", process.class, if process.lowered { "*" } else { "" })
}

pub fn share(permille: u64) -> String {
    format!("{}.{} %", permille / 10, permille % 10)
}

/// What counters tell, in words; what is zero is left out.
fn details(process: &Process) -> Vec<String> {
    let counters = &process.counters;
    let mut details = vec![format!("{}, {}", process.program, process.reason)];
    details.extend(memory(process));
    let stops = counters.stops_hold + counters.stops_switch;
    if stops + counters.preempted > 0 {
        details.push(format!(
            "stopped {} between launches, {} in a kernel; preempted {}",
            times(counters.stops_hold),
            times(counters.stops_switch),
            times(counters.preempted)
        ));
    }
    if counters.stops_guard > 0 {
        details.push(format!(
            "stopped {} between blocks{}",
            times(counters.stops_guard),
            spread(&process.guard_stops)
        ));
        let hung = match counters.watchdog {
            0 => String::new(),
            some => format!("; {} blocks waited for some that were turned away", times(some)),
        };
        details.push(format!(
            "{} launches cut, {} made again in {} rounds{hung}",
            counters.cut, counters.relaunched, counters.rounds
        ));
        if counters.confined > 0 {
            details.push(format!("{} of them beside requests, on some of the SMs", counters.confined));
        }
    }
    if counters.waits + counters.passes > 0 {
        let (held, waited) = (Nanos(counters.held_ns), Nanos(counters.wait_ns));
        details.push(format!(
            "held the token for {held}, waited {} for {waited}{}",
            times(counters.waits),
            spread(&process.waits)
        ));
    }
    if counters.slices_lengthened > 0 {
        details.push(format!("its timeslice was lengthened {}", times(counters.slices_lengthened)));
    }
    if counters.bursts > 0 {
        let unended = match counters.bursts_unended {
            0 => String::new(),
            some => format!("; {some} whose end was not seen"),
        };
        let marked = match counters.marked {
            0 => String::new(),
            some => format!(", {some} of them marked as requests"),
        };
        details.push(format!("{} bursts{marked}{}{unended}", counters.bursts, spread(&process.bursts)));
    }
    details.extend(process.requests.as_ref().and_then(slowdown));
    if let Some(slo) = process.slo_p99_ns {
        let (bursts, missed) = (counters.bursts, counters.slo_missed);
        let alone = process.unattainable_p99_ns.map(|alone| format!(", alone p99 is {}", Nanos(alone)));
        let lately = match process.objective.as_deref() {
            Some(word) => format!("{word} lately{}; ", alone.unwrap_or_default()),
            None => String::new(),
        };
        details.push(format!(
            "p99 should be below {}: {lately}missed by {missed} of {bursts} bursts in all",
            Nanos(slo)
        ));
    }
    details.extend(process.decision.as_ref().map(decided));
    if counters.taken_over + counters.lost > 0 {
        let (over, lost) = (times(counters.taken_over), times(counters.lost));
        details.push(format!("took the token from the silent {over}, lost it by silence {lost}"));
    }
    details
}

/// What it has of the GPU's memory, and what its tenant may have.
fn memory(process: &Process) -> Option<String> {
    let (used, limit) = (Bytes(process.memory_used_bytes), process.memory_limit_bytes.map(Bytes));
    let denied = match process.counters.memory_denials {
        0 => String::new(),
        some => format!("; more was denied {}", times(some)),
    };
    match limit {
        Some(limit) => Some(format!("has {used} of the {limit} of memory that its tenant may have{denied}")),
        None => (used != Bytes::ZERO || !denied.is_empty()).then(|| format!("has {used} of memory{denied}")),
    }
}

/// A policy with the dials that it goes by.
fn describe(policy: &Policy) -> String {
    let kind = policy.kind.parse::<Kind>().unwrap_or_default();
    let mut dials = vec![format!("quiet {}", Nanos(policy.quiet_ns))];
    if matches!(kind, Kind::Gaps | Kind::Slo) {
        dials.push(format!("gaps from {}", Nanos(policy.threshold_ns)));
    }
    dials.push(format!("in flight {}", Nanos(policy.in_flight_ns)));
    if kind == Kind::Slo {
        dials.push(match policy.beside_ns {
            0 => "nothing beside".to_owned(),
            beside => format!("blocks up to {} beside", Nanos(beside)),
        });
        if policy.confine_percent > 0 {
            dials.push(format!("longer ones on {}% of the SMs", policy.confine_percent));
        }
        dials.push(format!("tolerance {}", share(u64::from(policy.tolerance_permille))));
    }
    dials.push(format!("{} of requests alone", share(u64::from(policy.solo_share_permille))));
    let level = policy.level.map(|level| format!(", level {level} of {}", policy.highest_level));
    format!("{}{}: {}", policy.kind, level.unwrap_or_default(), dials.join(", "))
}

/// How much slower requests are than alone.
fn slowdown(requests: &Requests) -> Option<String> {
    let ratio = |permille: u64| format!("{}.{:02}", permille / 1_000, permille % 1_000 / 10);
    let (all, alone) = (&requests.all, &requests.alone);
    let line = if requests.in_line { "; they wait in line" } else { "" };
    if let (Some(p50), Some(p99)) = (requests.slowdown_p50_permille, requests.slowdown_p99_permille) {
        let counts = format!("{} requests against {} alone", all.count, alone.count);
        let spread = spread(alone);
        return Some(format!(
            "takes {} times as long as alone at p50, {} at p99 ({counts}{spread}){line}",
            ratio(p50),
            ratio(p99)
        ));
    }
    let alone = match requests.alone_samples {
        AloneSamples { needed: 0, .. } => "not yet seen alone".to_owned(),
        samples => format!("what they take alone is {}", samples.words()),
    };
    (all.count > 0).then(|| format!("{} requests{}; {alone}{line}", all.count, spread(all)))
}

/// What was last decided about a best-effort tenant.
fn decided(decision: &Decision) -> String {
    let may = match decision.longest_ns {
        None => "may start anything".to_owned(),
        Some(0) => "may start nothing".to_owned(),
        Some(longest) => format!("may start what stops within {}", Nanos(longest)),
    };
    format!("{may}: {} ({})", decision.reason, decision.why)
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

fn spread(times: &Times) -> String {
    match (times.p50_ns, times.p99_ns) {
        (Some(p50), Some(p99)) => format!(", p50 {}, p99 {}", Nanos(p50), Nanos(p99)),
        _ => String::new(),
    }
}
