//! The processes of a report, one to a line.

use std::fmt::Write as _;

use daemon::report::{Process, Report};
use model::Nanos;

use super::page::{class, share};
use crate::json::Json;
use crate::users::UserNames;

pub fn text(report: &Report, names: &UserNames) -> String {
    let mut out = String::new();
    let mut line = |cells: [&str; 10]| {
        let [pid, user, tenant, name, class, state, rung, time, share, gpu] = cells;
        let line = format!(
            "{pid:>8}  {user:10}  {tenant:16}  {name:16} {class:12}  {state:8} {rung:7} {time:>10} {share:>8}  {gpu}"
        );
        writeln!(out, "{}", line.trim_end()).expect("a string takes everything");
    };
    line(["pid", "user", "tenant", "name", "class", "state", "rung", "GPU time", "share", "GPU"]);
    for (gpu, process) in processes(report) {
        line([
            &process.pid.to_string(),
            &names.short(process.user),
            &process.tenant,
            &process.name,
            &class(process),
            process.state.word(),
            &process.rung,
            &Nanos(process.counters.gpu_ns).to_string(),
            &share(process.share_permille),
            gpu,
        ]);
    }
    if processes(report).any(|(_, process)| process.lowered) {
        out.push_str("\n* less than it asked for; `ebb status` says more\n");
    }
    out
}

pub fn json(report: &Report) -> Json {
    let process = |(gpu, process): (&str, &Process)| {
        Json::object([
            ("pid", process.pid.into()),
            ("user", process.user.into()),
            ("tenant", process.tenant.as_str().into()),
            ("name", process.name.as_str().into()),
            ("program", process.program.as_str().into()),
            ("class", process.class.as_str().into()),
            ("lowered", process.lowered.into()),
            ("state", process.state.word().into()),
            ("rung", process.rung.as_str().into()),
            ("why", process.why.as_str().into()),
            ("gpu", gpu.into()),
            ("gpu_ns", process.counters.gpu_ns.into()),
            ("share_permille", process.share_permille.into()),
            ("memory_used_bytes", process.memory_used_bytes.into()),
            ("memory_limit_bytes", process.memory_limit_bytes.into()),
        ])
    };
    Json::object([("processes", Json::list(processes(report).map(process)))])
}

fn processes(report: &Report) -> impl Iterator<Item = (&str, &Process)> {
    report.gpus.iter().flat_map(|gpu| gpu.processes.iter().map(|process| (gpu.uuid.as_str(), process)))
}
