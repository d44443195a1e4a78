//! Verdicts for programs. The keys are described in `docs/guard.md` and stay what they are.

use guard::{Finding, Verdict};
use telemetry::KernelReading;

use super::account::{Kind, Sum, finding, sorted, sums, verdict};
use super::found::Found;
use crate::json::Json;

pub fn all(found: &[Found]) -> Json {
    Json::object([("processes", Json::List(found.iter().map(process).collect()))])
}

fn process(found: &Found) -> Json {
    let reading = &found.reading;
    Json::object([
        ("pid", reading.pid.into()),
        ("program", reading.program.as_str().into()),
        ("started_ns", reading.started.into()),
        ("alive", found.is_alive.into()),
        ("domain", found.seat.as_ref().map(|seat| seat.domain.as_str()).into()),
        ("rung", found.seat.as_ref().map(|seat| seat.rung.as_str()).into()),
        ("totals", totals(&reading.kernels)),
        ("kernels", Json::List(sorted(&reading.kernels).into_iter().map(kernel).collect())),
    ])
}

/// What the kernels of each kind of verdict come to.
pub fn totals(kernels: &[KernelReading]) -> Json {
    let total = |(kind, sum): (Kind, Sum)| {
        Json::object([
            ("verdict", kind.name().into()),
            ("kernels", sum.kernels.into()),
            ("launches", sum.launches.into()),
            ("guarded", sum.guarded.into()),
            ("cut", sum.cut.into()),
            ("gpu_ns", sum.gpu_ns.into()),
        ])
    };
    Json::List(sums(kernels).into_iter().map(total).collect())
}

fn kernel(kernel: &KernelReading) -> Json {
    let described = Json::object([
        ("name", kernel.name.as_str().into()),
        ("module", format!("{:032x}", kernel.module_hash).into()),
        ("launches", kernel.launches.into()),
        ("in_graphs", kernel.in_graphs.into()),
    ]);
    described.and(judgement(kernel))
}

/// What is known about stopping a kernel, wherever a kernel is described.
pub fn judgement(kernel: &KernelReading) -> [(&'static str, Json); 12] {
    let reason = match verdict(kernel) {
        Some(Verdict::Refuse(reason)) => Some(reason),
        _ => None,
    };
    let finding = finding(kernel);
    let cuts = match finding {
        Some(Finding::Equal { cuts }) => Some(u64::from(cuts)),
        _ => None,
    };
    let known = |time: u64| Some(time).filter(|&time| time > 0);
    [
        ("verdict", Kind::of(kernel).name().into()),
        ("reason", reason.map(|reason| reason.name()).into()),
        ("sentence", reason.map(|reason| reason.sentence()).into()),
        ("trial", finding.map(Finding::name).into()),
        ("trial_cuts", cuts.into()),
        ("certificate_ns", known(kernel.certificate_ns).into()),
        ("block_ns", known(kernel.block_ns).into()),
        ("guarded", kernel.guarded.into()),
        ("original", kernel.launches.saturating_sub(kernel.guarded).into()),
        ("cut", kernel.cut.into()),
        ("samples", kernel.samples.into()),
        ("gpu_ns", kernel.gpu_ns().into()),
    ]
}
