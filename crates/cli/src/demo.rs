//! `ebb demo`: the main job on the software GPU, small enough for any laptop.
//!
//! A latency tenant answers requests, a best-effort tenant computes without end; first each alone, then both
//! together, one context at a time as a stock driver shares a GPU, and then both at once. Every figure is
//! measured in this run. The tenants are commands under `ebb run` like any other, and their ledgers must show it.

use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use lab::{Experiment, Job, Phase, PhaseResult, Report};
use model::Domain;

use crate::arguments::{DemoOptions, Output, TenantOptions};
use crate::run::folder::RunFolder;

/// One line of the table.
struct Row {
    name: &'static str,
    result: PhaseResult,
}

pub fn run(options: &DemoOptions) -> Result<()> {
    let phases = [
        ("latency alone", Phase::LatencyAlone, Domain::Isolated),
        ("best-effort alone", Phase::BestEffortAlone, Domain::Isolated),
        ("together, time-sliced", Phase::Together, Domain::Isolated),
        ("together, concurrent", Phase::Together, Domain::Shared),
    ];
    let cards = Cards::new()?;
    let ledgers = RunFolder::create()?;
    let bar = bar(phases.len() as u64 * 100);
    let mut rows = Vec::new();
    for (index, (name, phase, domain)) in phases.into_iter().enumerate() {
        bar.set_message(name);
        let experiment = experiment(options, &ledgers, &cards, domain)?;
        let base = index as u64 * 100;
        let result = experiment.run(phase, &mut |_, percent| bar.set_position(base + percent))?;
        bar.set_position(base + 100);
        rows.push(Row { name, result });
    }
    bar.finish_and_clear();
    let attachment = Attachment::read(&ledgers, &rows);
    match options.output {
        Output::Text => print_table(&rows, &attachment),
        Output::Json => print_json(&rows, &attachment),
    }
    ensure!(reports(&rows).all(|report| report.all_right()), "some results were wrong, see the table");
    attachment.check()
}

fn reports(rows: &[Row]) -> impl Iterator<Item = &Report> {
    rows.iter().flat_map(|row| [&row.result.latency, &row.result.best_effort]).flatten()
}

/// Whether ebb stood in front of the driver in every tenant.
struct Attachment {
    tenants: usize,
    attached: usize,
    launches: u64,
}

impl Attachment {
    fn read(ledgers: &RunFolder, rows: &[Row]) -> Attachment {
        let (readings, _) = ledgers.readings();
        let launches = readings.iter().map(telemetry::Reading::kernels_run);
        Attachment {
            tenants: reports(rows).count(),
            attached: launches.clone().filter(|&launches| launches > 0).count(),
            launches: launches.sum(),
        }
    }

    fn check(&self) -> Result<()> {
        let Attachment { tenants, attached, .. } = self;
        ensure!(
            attached == tenants,
            "only {attached} of {tenants} tenants were attached; `ebb doctor --device soft` says why"
        );
        Ok(())
    }
}

/// The hidden verb: one tenant, talking to the demo that started it.
pub fn tenant(options: &TenantOptions) -> Result<()> {
    let span = Duration::from_secs_f64(options.seconds);
    let job = Job { class: options.class, span, seed: options.seed };
    let mut commands = BufReader::new(io::stdin());
    lab::serve(&options.driver, job, &mut commands, &mut io::stdout())?;
    Ok(())
}

fn experiment(
    options: &DemoOptions,
    ledgers: &RunFolder,
    cards: &Cards,
    domain: Domain,
) -> Result<Experiment> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is not text");
    let device = match &options.driver {
        Some(driver) => ["--driver".to_owned(), text(driver)?],
        None => ["--device".to_owned(), "soft".to_owned()],
    };
    let tenant = ["tenant", "--driver", "libcuda.so.1"].map(str::to_owned);
    // Plain time-slicing is what is shown here, so nobody takes turns.
    let arguments = ["run", "--no-daemon"].map(str::to_owned).into_iter().chain(device);
    Ok(Experiment {
        arguments: arguments.chain(["--".to_owned(), text(&program)?]).chain(tenant).collect(),
        program,
        environment: vec![
            ("EBB_RUN".to_owned(), text(ledgers.path())?),
            ("EBB_SOFTGPU".to_owned(), cards.name(domain)),
            ("EBB_SOFTGPU_DOMAIN".to_owned(), domain.to_string()),
        ],
        span: Duration::from_secs_f64(options.seconds),
        seed: options.seed,
    })
}

/// The demo's own cards, one for each way of sharing, so that it disturbs no other software GPU. Their files go
/// when the demo ends; those of a demo that was killed go when the next one starts.
struct Cards {
    folder: PathBuf,
}

const CARD_PREFIX: &str = "softgpu-demo-";

impl Cards {
    fn new() -> Result<Cards> {
        let cards = Cards { folder: installation::runtime::folder()? };
        cards.remove(|pid| !Path::new("/proc").join(pid).exists());
        Ok(cards)
    }

    fn name(&self, domain: Domain) -> String {
        format!("demo-{}-{domain}", std::process::id())
    }

    /// Removes the cards of the demos whose process is chosen. What cannot be removed does no harm.
    fn remove(&self, chosen: impl Fn(&str) -> bool) {
        for entry in self.folder.read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.strip_prefix(CARD_PREFIX)?.split('-').next());
            if pid.is_some_and(&chosen) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for Cards {
    fn drop(&mut self) {
        let own = std::process::id().to_string();
        self.remove(|pid| pid == own);
    }
}

fn bar(length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:24} [{bar:40}] {percent:>3}%  {elapsed}");
    let bar = ProgressBar::new(length);
    bar.set_style(style.expect("the template is valid").progress_chars("=> "));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn print_table(rows: &[Row], attachment: &Attachment) {
    println!(
        "{:24} {:>9} {:>10} {:>10} {:>12} {:>10}  results",
        "", "requests", "p50", "p99", "best-effort", "it/s"
    );
    for Row { name, result } in rows {
        let latency = |cell: fn(&Report) -> String| result.latency.as_ref().map_or("–".to_owned(), cell);
        let best_effort =
            |cell: fn(&Report) -> String| result.best_effort.as_ref().map_or("–".to_owned(), cell);
        println!(
            "{name:24} {:>9} {:>10} {:>10} {:>12} {:>10}  {}",
            latency(|report| report.done.to_string()),
            latency(|report| report.p50.to_string()),
            latency(|report| report.p99.to_string()),
            best_effort(|report| report.done.to_string()),
            best_effort(|report| format!("{:.1}", report.rate())),
            if all_right(result) { "right" } else { "WRONG" },
        );
    }
    println!(
        "\nLatency counts from scheduled arrival; every block of every launch was checked to have run once."
    );
    let Attachment { tenants, attached, launches } = attachment;
    println!("Attached: {attached} of {tenants} tenants, {launches} launches counted.");
}

fn all_right(result: &PhaseResult) -> bool {
    [result.latency, result.best_effort].iter().flatten().all(Report::all_right)
}

fn print_json(rows: &[Row], attachment: &Attachment) {
    let tenant = |report: &Option<Report>| match report {
        None => "null".to_owned(),
        Some(report) => format!(
            "{{\"done\":{},\"right\":{},\"p50_ns\":{},\"p99_ns\":{},\"max_ns\":{},\"per_second\":{:.3}}}",
            report.done,
            report.right,
            report.p50.0,
            report.p99.0,
            report.max.0,
            report.rate()
        ),
    };
    let row = |row: &Row| {
        let (latency, best_effort) = (tenant(&row.result.latency), tenant(&row.result.best_effort));
        format!("{{\"phase\":\"{}\",\"latency\":{latency},\"best_effort\":{best_effort}}}", row.name)
    };
    let Attachment { tenants, attached, launches } = attachment;
    println!(
        "{{\"phases\":[{}],\"tenants\":{tenants},\"attached\":{attached},\"launches\":{launches}}}",
        rows.iter().map(row).collect::<Vec<_>>().join(",")
    );
}
