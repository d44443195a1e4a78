//! What a demo says in the end.

use std::fmt::{self, Display, Formatter};

use anyhow::{Result, bail, ensure};
use daemon::report::Process;
use lab::{Outcome, Report, Scene};
use model::{Class, Nanos};
use softgpu::card::Defaults;
use telemetry::Reading;

use super::bars::{self, Bar};
use super::stage::Sharing;
use crate::json::Json;

/// One line of the table.
pub struct Row {
    pub name: &'static str,
    pub scene: Scene,
    pub sharing: Sharing,
    /// What came of all rounds together, and of each.
    pub outcome: Outcome,
    rounds: Vec<Outcome>,
    /// Who sat at the board in the middle of each round.
    seats: Vec<Process>,
}

impl Row {
    pub fn new(
        name: &'static str,
        scene: Scene,
        sharing: Sharing,
        outcome: Outcome,
        seats: Vec<Process>,
    ) -> Row {
        Row { name, scene, sharing, outcome: outcome.clone(), rounds: vec![outcome], seats }
    }

    /// Another round of the same.
    pub fn add(&mut self, round: Outcome, seats: Vec<Process>) {
        self.outcome.add(&round);
        self.rounds.push(round);
        self.seats.extend(seats);
    }
}

/// A request is in time if it takes no longer than so many hundredths of what 99 of 100 take alone.
pub const IN_TIME: u64 = 120;

/// What a request of a scene may take, once the tenant has been seen alone.
pub fn objective(rows: &[Row], scene: Scene) -> Option<Nanos> {
    let p99 = latency_alone(rows, scene)?.p99();
    (p99 > Nanos::ZERO).then(|| Nanos(p99.0 * IN_TIME / 100))
}

/// The latency tenant of a scene alone.
fn latency_alone(rows: &[Row], scene: Scene) -> Option<&Report> {
    let alone = |row: &&Row| row.scene == scene && row.outcome.best_effort.is_empty();
    rows.iter().find(alone)?.outcome.latency.as_ref()
}

/// How many times the p99 of one report is that of another.
fn ratio(report: &Report, alone: &Report) -> Option<f64> {
    let alone = alone.p99().as_secs_f64();
    (alone > 0.0).then(|| report.p99().as_secs_f64() / alone)
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
        self.rows.iter().flat_map(|row| row.rounds.iter().flat_map(Outcome::reports))
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

    /// Whether every tenant that should be under ebb was, and best-effort work could be stopped.
    pub fn check_seats(&self) -> Result<()> {
        for row in self.under_ebb() {
            let (seats, tenants) = (row.seats.len(), tenants(row));
            ensure!(seats == tenants, "only {seats} of {tenants} tenants had a seat in `{}`", row.name);
        }
        match self.seats().find(|seat| !can_be_stopped(seat)) {
            None => Ok(()),
            Some(seat) => bail!("{} could not be stopped: {}", seat.name, seat.reason),
        }
    }

    fn under_ebb(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.sharing == Sharing::Ebb)
    }

    fn seats(&self) -> impl Iterator<Item = &Process> {
        self.rows.iter().flat_map(|row| &row.seats)
    }

    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    pub fn latency_alone(&self, scene: Scene) -> Option<&Report> {
        latency_alone(&self.rows, scene)
    }

    /// How many times the p99 of the latency tenant alone a row's is.
    pub fn slowdown(&self, row: &Row) -> Option<f64> {
        ratio(row.outcome.latency.as_ref()?, self.latency_alone(row.scene)?)
    }

    /// The same for each round of a row that was measured in turn with the latency tenant alone.
    pub fn slowdowns_by_round(&self, row: &Row) -> Vec<f64> {
        let alone = self.row(bars::LAUNCH_BOUND).map_or(&[][..], |alone| &alone.rounds);
        let pairs = row.rounds.iter().zip(alone);
        pairs.filter_map(|(round, alone)| ratio(round.latency.as_ref()?, alone.latency.as_ref()?)).collect()
    }

    /// Which share of a tenant's requests were in time.
    pub fn attainment(&self, scene: Scene, report: &Report) -> Option<f64> {
        report.latencies.within(objective(&self.rows, scene)?)
    }

    /// What best-effort work would get if the latency tenant took nothing but the time for which it keeps the GPU busy
    /// when it is alone.
    fn ideal(&self, scene: Scene) -> Option<f64> {
        let alone = self.rows.iter().find(|row| row.scene == scene && row.outcome.latency.is_none())?;
        Some(alone.outcome.best_effort_rate()? * (1.0 - self.latency_alone(scene)?.busy_share()))
    }

    /// The share of that which a row's best-effort tenants got together.
    pub fn share_of_ideal(&self, row: &Row) -> Option<f64> {
        row.outcome.latency.as_ref()?;
        let ideal = self.ideal(row.scene).filter(|&ideal| ideal > 0.0)?;
        Some(row.outcome.best_effort_rate()? / ideal)
    }

    pub fn json(&self) -> Json {
        let rows = self.rows.iter().map(|row| {
            let report = row.outcome.latency.as_ref();
            let in_time = report.and_then(|report| self.attainment(row.scene, report));
            Json::object([
                ("phase", row.name.into()),
                ("scene", row.scene.to_string().into()),
                ("latency", report.map(tenant).into()),
                ("best_effort", Json::list(row.outcome.best_effort.iter().map(tenant))),
                ("p99_to_alone_permille", self.slowdown(row).map(permille).into()),
                ("in_time_permille", in_time.map(permille).into()),
                ("share_of_ideal_permille", self.share_of_ideal(row).map(permille).into()),
                ("rounds", (row.rounds.len() as u64).into()),
            ])
        });
        let bars = bars::judged(self);
        Json::object([
            ("phases", Json::list(rows)),
            ("bars", Json::list(bars.iter().map(Bar::json))),
            ("tenants", (self.reports().count() as u64).into()),
            ("attached", (self.launches.len() as u64).into()),
            ("launches", self.launches.iter().sum::<u64>().into()),
            ("seated", (self.seats().count() as u64).into()),
        ])
    }
}

fn tenants(row: &Row) -> usize {
    row.rounds.iter().flat_map(Outcome::reports).count()
}

/// A best-effort tenant must be stoppable, in the middle of a kernel or between its blocks; a latency tenant is never stopped.
fn can_be_stopped(seat: &Process) -> bool {
    seat.class != Class::BestEffort.to_string() || matches!(&*seat.rung, "switch" | "guard")
}

/// Thousandths, so that every number is a whole one.
pub fn permille(ratio: f64) -> u64 {
    (ratio * 1000.0).round() as u64
}

fn tenant(report: &Report) -> Json {
    Json::object([
        ("done", report.done.into()),
        ("right", report.right.into()),
        ("p50_ns", report.latency(0.5).0.into()),
        ("p99_ns", report.p99().0.into()),
        ("max_ns", report.latency(1.0).0.into()),
        ("busy_ns", report.busy.0.into()),
        ("span_ns", report.span.0.into()),
    ])
}

impl Display for Table {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let heads = ["requests", "p50", "p99", "max", "p99/alone", "in time", "it/s", "of ideal"];
        line(out, "", &heads.map(str::to_owned), "results")?;
        for row in &self.rows {
            let right = row.outcome.reports().all(Report::all_right);
            line(out, row.name, &self.cells(row), if right { "right" } else { "WRONG" })?;
        }
        writeln!(out)?;
        bars::judged(self).iter().try_for_each(|bar| writeln!(out, "{bar}"))?;
        self.explain(out)
    }
}

impl Table {
    fn cells(&self, row: &Row) -> [String; 8] {
        let latency = row.outcome.latency.as_ref();
        let at = |share| latency.map(|report| format!("{:.2} ms", report.latency(share).as_secs_f64() * 1e3));
        let percent = |share: f64| format!("{:.0}%", share * 100.0);
        let in_time = latency.and_then(|report| self.attainment(row.scene, report));
        let cells = [
            latency.map(|report| report.done.to_string()),
            at(0.5),
            at(0.99),
            at(1.0),
            self.slowdown(row).map(|times| format!("{times:.2}x")),
            in_time.map(|share| format!("{:.1}%", share * 100.0)),
            row.outcome.best_effort_rate().map(|rate| format!("{rate:.1}")),
            self.share_of_ideal(row).map(percent),
        ];
        cells.map(|cell| cell.unwrap_or_else(|| "–".to_owned()))
    }

    /// How all of it was measured.
    fn explain(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let busy = |scene| self.latency_alone(scene).map_or(0.0, Report::busy_share) * 100.0;
        writeln!(
            out,
            "\nLatency counts from scheduled arrival; every block of every launch was checked to have run once.\n\
             In time: within {:.1} times the p99 alone. Ideal: best-effort alone, less the time for which requests keep the GPU\n\
             busy ({:.0}%; launch-bound {:.0}%).",
            IN_TIME as f64 / 100.0,
            busy(Scene::Bursts),
            busy(Scene::LaunchBound),
        )?;
        self.explain_rounds(out)?;
        if let Some(Defaults { sms, timeslice, switch_cost, .. }) = &self.card {
            writeln!(
                out,
                "Software GPU: {sms} SMs, slices of {} µs, {} µs for each switch of contexts, as measured on an H200;\n\
                 for launch-bound requests a smaller one in the shared domain, with `beside` set. No request is kept alone\n\
                 to learn what it takes alone (`solo_share = 0`): phases are too short for that.",
                timeslice.as_micros_f64(),
                switch_cost.as_micros_f64(),
            )?;
        }
        let (attached, all) = (self.launches.len(), self.reports().count());
        let launches: u64 = self.launches.iter().sum();
        let (seats, seated) = (self.seats().count(), self.under_ebb().map(tenants).sum::<usize>());
        writeln!(
            out,
            "Under ebb: {seats} of {seated} tenants seated, best-effort work stopped by context switch or between blocks."
        )?;
        writeln!(out, "Attached: {attached} of {all} tenants, {launches} launches counted.")
    }
}

impl Table {
    /// What the bar on launch-bound requests is the median of.
    fn explain_rounds(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Some(row) = self.row(bars::IN_GAPS) else { return Ok(()) };
        let count = |round: &Outcome| round.latency.as_ref().map_or(0, |report| report.done).to_string();
        let counts: Vec<String> = row.rounds.iter().map(count).collect();
        let slowdowns = self.slowdowns_by_round(row);
        let slowdowns: Vec<String> = slowdowns.iter().map(|times| format!("{:.1}%", times * 100.0)).collect();
        writeln!(
            out,
            "Launch-bound requests ran alone and in company in turn, in {} rounds ({} requests in company). Their p99 was {} of that\n\
             alone in the same round; the bar is on the median. Lines of the table hold all rounds.",
            row.rounds.len(),
            counts.join(", "),
            slowdowns.join(", "),
        )
    }
}

fn line(out: &mut Formatter<'_>, name: &str, cells: &[String; 8], end: &str) -> fmt::Result {
    write!(out, "{name:22}")?;
    for (cell, width) in cells.iter().zip([8, 9, 9, 9, 9, 7, 6, 8]) {
        write!(out, " {cell:>width$}")?;
    }
    writeln!(out, "  {end}")
}
