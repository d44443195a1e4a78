//! The bars that the design sets, and whether what was measured meets them.
//!
//! A bar is judged only by what is in the archive. What the lab does not measure says so, with the command that does.

use model::Nanos;
use results::Archive;

use crate::numbers::{NONE, count, finite, grouped, many, percent, time, times};
use crate::summary::{Summary, pairs};
use crate::view::{Scenario, View};

/// p99 over alone: mean and worst over all pairs.
pub const OVER_ALONE: (f64, f64) = (1.02, 1.05);
/// Attainment lost against alone.
pub const LOST: f64 = 0.005;
/// Best-effort throughput of the ideal, mean.
pub const OF_IDEAL: f64 = 0.95;
/// Stop latency of any kernel, p99, in microseconds of a GPU that is not slowed down.
pub const STOP_US: f64 = 150.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Met,
    Missed,
    /// Nothing in the archive to judge by.
    Open,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::Missed => "missed",
            Verdict::Open => "not measured here",
        }
    }

    fn when(met: bool) -> Verdict {
        if met { Verdict::Met } else { Verdict::Missed }
    }
}

pub struct Bar {
    pub figure: &'static str,
    pub best_known: &'static str,
    pub bar: &'static str,
    pub measured: String,
    pub verdict: Verdict,
}

/// The table of the design for one of our modes.
pub fn bars(view: &View, mode: &str) -> Vec<Bar> {
    let pairs = pairs(view);
    let summary = Summary::of(pairs.iter().copied(), mode);
    vec![
        overhead(&summary),
        attainment(&summary),
        throughput(&summary),
        open(
            "stop latency, p99, kernels under guard",
            "Hummingbird < 140 µs mean; XSched 32 µs (GV100, idempotent kernels only)",
            "≤ 15 µs + the running block",
            "the guard belongs to the shared domain",
        ),
        stop(view, mode),
        open(
            "cost per launch, latency / best-effort",
            "XSched: a thread hop",
            "≤ 0.1 / ≤ 0.5 µs",
            "measured by cargo xtask bench-shim",
        ),
        open(
            "GPU time under guard or switch",
            "Tally 0 (no PTX)",
            "100%",
            "no record of it in a result file",
        ),
        changed(view, mode),
    ]
}

fn open(figure: &'static str, best_known: &'static str, bar: &'static str, why: &str) -> Bar {
    Bar { figure, best_known, bar, measured: why.into(), verdict: Verdict::Open }
}

fn overhead(summary: &Summary) -> Bar {
    let figure = "p99 from arrival over alone, mean / worst over all pairs";
    let (best_known, bar) = ("Tally 1.048× / 1.099× (A100, service time)", "≤ 1.02× / ≤ 1.05×");
    if summary.over_alone.is_none() && summary.overloaded == 0 {
        return open(figure, best_known, bar, NONE);
    }
    let mean = summary.over_alone.map_or(NONE.into(), |spread| times3(spread.mean));
    let worst = match summary.over_alone {
        Some(spread) if summary.overloaded == 0 => times3(spread.worst),
        _ => format!("overload in {}", summary.overloaded),
    };
    let met = summary.overloaded == 0
        && summary
            .over_alone
            .is_some_and(|spread| spread.mean <= OVER_ALONE.0 && spread.worst <= OVER_ALONE.1);
    let measured = format!("{mean} / {worst} over {}", many(summary.cases, "pair"));
    Bar { figure, best_known, bar, measured, verdict: Verdict::when(met) }
}

/// Bars of a few hundredths want a third decimal.
fn times3(ratio: f64) -> String {
    if ratio < 2.0 { format!("{}×", grouped(ratio, 3)) } else { times(ratio) }
}

fn attainment(summary: &Summary) -> Bar {
    let (figure, best_known) = ("SLO attainment lost against alone, worst pair", "Hummingbird < 1 point");
    let bar = "< 0.5 point";
    let Some(lost) = summary.lost else { return open(figure, best_known, bar, NONE) };
    let points = |share: f64| grouped(share * 100.0, 2);
    let measured = format!("{} points (mean {})", points(lost.worst), points(lost.mean));
    Bar { figure, best_known, bar, measured, verdict: Verdict::when(lost.worst < LOST) }
}

fn throughput(summary: &Summary) -> Bar {
    let (figure, best_known, bar) =
        ("best-effort throughput of ideal, mean over all pairs", "Tally 88%", "≥ 95%");
    let Some(share) = summary.of_ideal else { return open(figure, best_known, bar, NONE) };
    let measured = format!("{} (worst {})", percent(share.mean), percent(share.worst));
    Bar { figure, best_known, bar, measured, verdict: Verdict::when(share.mean >= OF_IDEAL) }
}

fn stop(view: &View, mode: &str) -> Bar {
    let figure = "stop latency, p99, any kernel, worst scenario";
    let (best_known, bar) = ("GPreempt ~100 to 200 µs, patched driver", "≤ 150 µs, stock driver");
    let stretch = |scenario: &Scenario| scenario.record.slowdown.max(1e-9);
    // A burst with gaps is stopped for again after each of them.
    let stops_once =
        |scenario: &&Scenario| !scenario.record.tenants.iter().any(|t| t.workload.contains("-gap"));
    let worst = view
        .scenarios()
        .filter(stops_once)
        .filter_map(|scenario| {
            let p99 = scenario.stops(mode)?.quantiles.p99;
            Some(p99.map_or(f64::INFINITY, Nanos::as_micros_f64) / stretch(scenario))
        })
        .reduce(f64::max);
    let Some(worst) = worst else { return open(figure, best_known, bar, "the suite micro was not run") };
    Bar { figure, best_known, bar, measured: finite(worst, time), verdict: Verdict::when(worst <= STOP_US) }
}

fn changed(view: &View, mode: &str) -> Bar {
    let summary = Summary::of(view.scenarios(), mode);
    let checked = summary.requests + summary.iterations;
    let unchecked = match summary.unchecked {
        0 => String::new(),
        some => format!(", {} could not be checked", count(some)),
    };
    let bar = Bar {
        figure: "results changed by sharing",
        best_known: "Hummingbird, Tally swap in CUTLASS",
        bar: "none, bit for bit",
        measured: format!("{} of {}{unchecked}", count(summary.wrong), count(checked)),
        verdict: Verdict::when(summary.wrong == 0),
    };
    if checked == 0 { Bar { verdict: Verdict::Open, measured: NONE.into(), ..bar } } else { bar }
}

/// What a reader must know before judging by the bars.
pub fn caveat(archive: &Archive) -> Option<&'static str> {
    let soft = archive.machines.iter().any(|machine| machine.device.kind == "soft");
    soft.then_some(
        "These figures are of the software GPU, where time is stretched and the costs of hardware are simulated with \
         those measured on an H200. They show that the machinery does what it should; the bars are meant for a GPU.",
    )
}
