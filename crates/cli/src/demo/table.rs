//! What a demo says in the end.

use std::fmt::{self, Display, Formatter};

use anyhow::{Result, bail, ensure};
use daemon::report::Process;
use lab::{Outcome, Report};
use model::Class;
use softgpu::card::Defaults;
use telemetry::Reading;

use super::stage::Sharing;
use crate::json::Json;

/// One line of the table.
pub struct Row {
    pub name: &'static str,
    pub sharing: Sharing,
    pub outcome: Outcome,
    /// Who sat at the board in the middle of the phase.
    pub seats: Vec<Process>,
}

pub struct Table {
    rows: Vec<Row>,
    /// How often the shim saw each process launch something.
    launches: Vec<u64>,
    card: Option<Defaults>,
}

impl Table {
    pub fn new(rows: Vec<Row>, readings: Vec<Reading>, card: Option<Defaults>) -> Table {
        let launches = readings.iter().map(Reading::kernels_run).filter(|&launches| launches > 0);
        Table { rows, launches: launches.collect(), card }
    }

    pub fn reports(&self) -> impl Iterator<Item = &Report> {
        self.rows.iter().flat_map(|row| row.outcome.reports())
    }

    /// Whether ebb stood in front of the driver in every tenant.
    pub fn check_attachment(&self) -> Result<()> {
        let (attached, tenants) = (self.launches.len(), self.reports().count());
        ensure!(
            attached == tenants,
            "only {attached} of {tenants} tenants were attached; `ebb doctor --device soft` says why"
        );
        Ok(())
    }

    /// Whether every tenant that should be under ebb was, and best-effort work could be stopped in the middle.
    pub fn check_seats(&self) -> Result<()> {
        for row in self.under_ebb() {
            let (seats, tenants) = (row.seats.len(), tenants(row));
            ensure!(seats == tenants, "only {seats} of {tenants} tenants had a seat in `{}`", row.name);
        }
        match self.seats().find(|seat| !stops_anywhere(seat)) {
            None => Ok(()),
            Some(seat) => bail!("{} could not be stopped by a switch: {}", seat.name, seat.reason),
        }
    }

    fn under_ebb(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.sharing == Sharing::Ebb)
    }

    fn seats(&self) -> impl Iterator<Item = &Process> {
        self.rows.iter().flat_map(|row| &row.seats)
    }

    /// The latency tenant alone.
    fn latency_alone(&self) -> Option<&Report> {
        self.rows.iter().find(|row| row.outcome.best_effort.is_empty())?.outcome.latency.as_ref()
    }

    /// How many times the p99 of the latency tenant alone a row's is.
    fn slowdown(&self, row: &Row) -> Option<f64> {
        let alone = self.latency_alone()?.p99.as_secs_f64();
        let latency = row.outcome.latency.as_ref()?;
        (alone > 0.0).then(|| latency.p99.as_secs_f64() / alone)
    }

    /// What best-effort work would get if the latency tenant took nothing but the time for which it keeps the GPU busy
    /// when it is alone.
    fn ideal(&self) -> Option<f64> {
        let alone = self.rows.iter().find(|row| row.outcome.latency.is_none())?;
        Some(alone.outcome.best_effort_rate()? * (1.0 - self.latency_alone()?.busy_share()))
    }

    /// The share of that which a row's best-effort tenants got together.
    fn share_of_ideal(&self, row: &Row) -> Option<f64> {
        row.outcome.latency?;
        let ideal = self.ideal().filter(|&ideal| ideal > 0.0)?;
        Some(row.outcome.best_effort_rate()? / ideal)
    }

    pub fn json(&self) -> Json {
        let rows = self.rows.iter().map(|row| {
            let report = row.outcome.latency.as_ref();
            Json::object([
                ("phase", row.name.into()),
                ("latency", report.map(tenant).into()),
                ("best_effort", Json::list(row.outcome.best_effort.iter().map(tenant))),
                ("p99_to_alone_permille", self.slowdown(row).map(permille).into()),
                ("share_of_ideal_permille", self.share_of_ideal(row).map(permille).into()),
            ])
        });
        Json::object([
            ("phases", Json::list(rows)),
            ("tenants", (self.reports().count() as u64).into()),
            ("attached", (self.launches.len() as u64).into()),
            ("launches", self.launches.iter().sum::<u64>().into()),
            ("seated", (self.seats().count() as u64).into()),
        ])
    }
}

fn tenants(row: &Row) -> usize {
    row.outcome.reports().count()
}

/// A best-effort tenant must be stoppable in the middle of a kernel; a latency tenant is never stopped.
fn stops_anywhere(seat: &Process) -> bool {
    seat.class != Class::BestEffort.to_string() || seat.rung == "switch"
}

/// Thousandths, so that every number is a whole one.
fn permille(ratio: f64) -> u64 {
    (ratio * 1000.0).round() as u64
}

fn tenant(report: &Report) -> Json {
    Json::object([
        ("done", report.done.into()),
        ("right", report.right.into()),
        ("p50_ns", report.p50.0.into()),
        ("p99_ns", report.p99.0.into()),
        ("max_ns", report.max.0.into()),
        ("busy_ns", report.busy.0.into()),
        ("span_ns", report.span.0.into()),
    ])
}

impl Display for Table {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let heads = ["requests", "p50", "p99", "max", "p99/alone", "it/s", "of ideal"];
        line(out, "", &heads.map(str::to_owned), "results")?;
        for row in &self.rows {
            let right = row.outcome.reports().all(Report::all_right);
            line(out, row.name, &self.cells(row), if right { "right" } else { "WRONG" })?;
        }
        let busy = self.latency_alone().map_or(0.0, Report::busy_share) * 100.0;
        writeln!(
            out,
            "\nLatency counts from scheduled arrival; every block of every launch was checked to have run once.\n\
             Ideal: best-effort alone, less the {busy:.0}% of the time for which the requests keep the GPU busy."
        )?;
        if let Some(Defaults { sms, timeslice, switch_cost, .. }) = &self.card {
            writeln!(
                out,
                "Software GPU: {sms} SMs, slices of {} µs, {} µs for each switch of contexts, as measured on an H200.",
                timeslice.as_micros_f64(),
                switch_cost.as_micros_f64(),
            )?;
        }
        let (attached, all) = (self.launches.len(), self.reports().count());
        let launches: u64 = self.launches.iter().sum();
        let (seats, seated) = (self.seats().count(), self.under_ebb().map(tenants).sum::<usize>());
        writeln!(
            out,
            "Under ebb: {seats} of {seated} tenants seated, best-effort work stopped by context switch."
        )?;
        writeln!(out, "Attached: {attached} of {all} tenants, {launches} launches counted.")
    }
}

impl Table {
    fn cells(&self, row: &Row) -> [String; 7] {
        let latency = |cell: fn(&Report) -> String| row.outcome.latency.as_ref().map(cell);
        let milliseconds = |time: model::Nanos| format!("{:.2} ms", time.as_secs_f64() * 1e3);
        let cells = [
            latency(|report| report.done.to_string()),
            row.outcome.latency.map(|report| milliseconds(report.p50)),
            row.outcome.latency.map(|report| milliseconds(report.p99)),
            row.outcome.latency.map(|report| milliseconds(report.max)),
            self.slowdown(row).map(|times| format!("{times:.2}x")),
            row.outcome.best_effort_rate().map(|rate| format!("{rate:.1}")),
            self.share_of_ideal(row).map(|share| format!("{:.0}%", share * 100.0)),
        ];
        cells.map(|cell| cell.unwrap_or_else(|| "–".to_owned()))
    }
}

fn line(out: &mut Formatter<'_>, name: &str, cells: &[String; 7], end: &str) -> fmt::Result {
    write!(out, "{name:22}")?;
    for (cell, width) in cells.iter().zip([9, 10, 10, 10, 10, 7, 9]) {
        write!(out, " {cell:>width$}")?;
    }
    writeln!(out, "  {end}")
}
