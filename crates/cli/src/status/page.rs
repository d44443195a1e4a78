//! The report as a page: the daemon, each GPU, each tenant on it, and what is not as it should be.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use daemon::report::{Gpu, Process, Report, Times};
use model::{Domain, Nanos};

/// Writing to a string cannot fail.
macro_rules! line {
    ($out:expr, $($format:tt)*) => {
        writeln!($out, $($format)*).expect("a string takes everything")
    };
}

pub fn text(report: &Report) -> String {
    let mut out = String::new();
    let daemon = &report.daemon;
    let uptime = Nanos(daemon.uptime_ns);
    line!(out, "daemon {} for the {}, in {}, for {uptime}", daemon.pid, daemon.scope, daemon.folder);
    if let Some(mps) = &daemon.mps {
        let state = if mps.up { "up" } else { "down" };
        let (faults, restarts) = (times(mps.faults), times(mps.restarts));
        line!(out, "MPS {state} in {}; faults: {faults}, started anew: {restarts}", mps.pipes);
    }
    if report.gpus.iter().all(|gpu| gpu.processes.is_empty()) {
        line!(out, "no tenants");
    }
    for gpu in report.gpus.iter().filter(|gpu| !gpu.processes.is_empty()) {
        write_gpu(&mut out, gpu);
    }
    if !report.sentences.is_empty() {
        line!(out, "");
    }
    report.sentences.iter().for_each(|sentence| line!(out, "{sentence}"));
    out
}

fn write_gpu(out: &mut String, gpu: &Gpu) {
    let settings = &gpu.settings;
    line!(out, "\n{}", gpu.uuid);
    line!(out, "  domain    {}", gpu.domain);
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
            "  settings  quantum {}, in flight {}, idle {}, grace {}",
            Nanos(settings.quantum_ns),
            Nanos(settings.in_flight_ns),
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
        line!(out, "\n  tenant {tenant} {}", members[0].name);
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
    }
    if counters.waits + counters.passes > 0 {
        let (held, waited) = (Nanos(counters.held_ns), Nanos(counters.wait_ns));
        details.push(format!(
            "held the token for {held}, waited {} for {waited}{}",
            times(counters.waits),
            spread(&process.waits)
        ));
    }
    if counters.bursts > 0 {
        let unended = match counters.bursts_unended {
            0 => String::new(),
            some => format!("; {some} whose end was not seen"),
        };
        details.push(format!("{} bursts{}{unended}", counters.bursts, spread(&process.bursts)));
    }
    if let Some(slo) = process.slo_p99_ns {
        let (bursts, missed) = (counters.bursts, counters.slo_missed);
        details.push(format!("p99 should be below {}: missed by {missed} of {bursts} bursts", Nanos(slo)));
    }
    if counters.taken_over + counters.lost > 0 {
        let (over, lost) = (times(counters.taken_over), times(counters.lost));
        details.push(format!("took the token from the silent {over}, lost it by silence {lost}"));
    }
    details
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
